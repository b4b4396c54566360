package pool_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hotspare.io/hotspare/internal/pool"
)

var (
	seed  = flag.Uint64("pool.seed", 0, "seed of the random histories; 0 takes one from the clock")
	steps = flag.Int("pool.steps", 20000, "how many passes the random histories have in all")
)

// world simulates a pool in which every step succeeds at once; the other controllers and the users
// are its random events.
type world struct {
	rand *rand.Rand
	pool.Snapshot
	// priorities is set if claims have priorities.
	priorities bool
	// sets are the ClaimSets that are not served yet; hasSets is set if there are any in this history.
	hasSets bool
	sets    []pool.ClaimSet
	serial  int
	log     []string
}

func newWorld(r *rand.Rand) *world {
	w := &world{rand: r}
	w.Now = noon
	w.priorities, w.hasSets = r.IntN(2) == 0, r.IntN(2) == 0
	w.Settings = pool.Settings{Size: r.IntN(6), RunningCount: r.IntN(4), Version: "v1"}
	if r.IntN(2) == 0 {
		w.Settings.MaxSize = ptr(r.IntN(12))
	}
	if r.IntN(2) == 0 {
		w.Settings.MaxConcurrent = ptr(1 + r.IntN(4))
	}
	if r.IntN(2) == 0 {
		w.Settings.ResumeTimeout = 20 * time.Minute
	}
	return w
}

func (w *world) say(format string, args ...any) { w.log = append(w.log, fmt.Sprintf(format, args...)) }

// happen is one random event that is not the pool's doing.
func (w *world) happen() {
	w.Now = w.Now.Add(time.Duration(w.rand.IntN(300)) * time.Second)
	w.blur()
	if w.rand.IntN(4) == 0 {
		w.edit()
	}
	switch w.rand.IntN(8) {
	case 0, 1:
		if w.hasSets && w.rand.IntN(2) == 0 {
			w.createSet()
			break
		}
		w.serial++
		w.Claims = append(w.Claims, pool.Claim{Name: fmt.Sprintf("x%d", w.serial), Created: w.Now, Priority: w.priority()})
	case 2:
		if len(w.sets) > 0 && w.rand.IntN(4) == 0 {
			w.deleteSet(w.sets[w.rand.IntN(len(w.sets))])
		} else if len(w.Claims) > 0 {
			w.Claims[w.rand.IntN(len(w.Claims))].Deleting = true
		}
	case 3:
		w.Settings.Size = w.rand.IntN(6)
	case 4:
		w.Settings.Version = fmt.Sprintf("v%d", w.rand.IntN(3))
	default:
		for range 3 {
			w.progress()
		}
	}
}

// edit edits one setting that a user can edit, or breaks or mends what the pool refers to.
func (w *world) edit() {
	limit := func(most int) *int {
		if w.rand.IntN(2) == 0 {
			return nil
		}
		return ptr(w.rand.IntN(most))
	}
	switch set := &w.Settings; w.rand.IntN(7) {
	case 0:
		set.RunningCount = w.rand.IntN(4)
	case 1:
		set.MaxSize = limit(12)
	case 2:
		set.MaxConcurrent = limit(4)
	case 3:
		set.ResumeTimeout = []time.Duration{0, 3 * time.Minute, 20 * time.Minute}[w.rand.IntN(3)]
	case 4:
		set.Blocked = map[bool]string{true: "no image set"}[set.Blocked == ""]
	case 5:
		set.Sources = fmt.Sprint("s", w.rand.IntN(3))
	default:
		if n := len(w.Members); n > 0 {
			m := &w.Members[w.rand.IntN(n)]
			m.Paused = map[bool]string{true: "pause"}[m.Paused == ""]
		}
	}
	w.say("edit: %+v", w.Settings)
}

// blur makes a member or a claim unreadable now and then, or readable again.
func (w *world) blur() {
	if n := len(w.Members); n > 0 && w.rand.IntN(30) == 0 {
		m := &w.Members[w.rand.IntN(n)]
		m.Unreadable = map[bool]string{true: "x"}[m.Unreadable == ""]
	}
	if n := len(w.Claims); n > 0 && w.rand.IntN(30) == 0 {
		c := &w.Claims[w.rand.IntN(n)]
		c.Unreadable = !c.Unreadable
	}
	if n := len(w.Claims); n > 0 && w.rand.IntN(10) == 0 {
		w.setPriority(w.Claims[w.rand.IntN(n)], w.priority())
	}
}

// priority is often that of another claim, and sometimes more minutes than the claims are apart.
func (w *world) priority() int {
	if !w.priorities {
		return 0
	}
	return []int{-100, -5, 0, 0, 5, 100}[w.rand.IntN(6)]
}

// progress moves one cluster on.
func (w *world) progress() {
	if len(w.Members) == 0 {
		return
	}
	i := w.rand.IntN(len(w.Members))
	m := &w.Members[i]
	switch bad := w.rand.IntN(12) == 0; {
	case m.Paused != "":
	case m.Deleting:
		w.Members = slices.Delete(w.Members, i, i+1)
	case !m.Installed && bad:
		m.GaveUp = true
	case !m.Installed && !m.GaveUp && w.rand.IntN(6) == 0:
		m.Failing = true
	case !m.Installed && !m.GaveUp:
		m.Installed, m.Failing = true, false
		m.Running = m.Wanted != pool.Hibernating
	case m.Wanted == pool.Hibernating:
		m.Running, m.ResumingSince = false, time.Time{}
	case m.Installed && !m.Running && m.ResumingSince.IsZero():
		m.ResumingSince = w.Now
	case m.Installed && !m.Running && bad:
		m.PowerFailed = true
	case m.Installed && !m.PowerFailed:
		m.Running, m.ResumingSince = true, time.Time{}
	}
	w.settleClaims()
}

// settleClaims lets claims go whose clusters are gone, as their controller does.
func (w *world) settleClaims() {
	w.Claims = slices.DeleteFunc(w.Claims, func(c pool.Claim) bool {
		return c.Deleting && !slices.ContainsFunc(w.Members, func(m pool.Member) bool { return m.Claim == c.Name })
	})
	w.completeSets()
}

// do carries out a plan; a step is lost now and then, as a crash would.
func (w *world) do(t *testing.T, p pool.Plan) {
	t.Helper()
	lost := map[string]bool{}
	for _, s := range p.Steps {
		if w.rand.IntN(20) == 0 || lost[s.After] {
			lost[s.Claim] = s.Claim != ""
			w.say("lost: %s", s)
			continue
		}
		w.say("%s", s)
		w.step(t, s)
	}
}

func (w *world) step(t *testing.T, s pool.Step) {
	t.Helper()
	i := slices.IndexFunc(w.Members, func(m pool.Member) bool { return m.Name == s.Cluster })
	if i >= 0 && w.Members[i].Unreadable != "" {
		t.Fatalf("%s touches what could not be read\n%s", s, strings.Join(w.log, "\n"))
	}
	switch s.Verb {
	case pool.Create:
		w.serial++
		w.Members = append(w.Members, pool.Member{Name: fmt.Sprintf("c%d", w.serial), Created: w.Now, Version: w.Settings.Version, Sources: w.Settings.Sources, Wanted: s.Power, WantedDepth: s.Depth})
	case pool.Delete:
		w.Members[i].Deleting = true
	case pool.Start:
		w.Members[i].Wanted = pool.Running
	case pool.Hibernate:
		w.Members[i].Wanted, w.Members[i].ResumingSince = pool.Hibernating, time.Time{}
	case pool.SetPosition:
		w.setPosition(t, s)
	case pool.Bind:
		w.bind(t, s, i)
	}
}

func (w *world) setPosition(t *testing.T, s pool.Step) {
	t.Helper()
	c := &w.Claims[slices.IndexFunc(w.Claims, func(c pool.Claim) bool { return c.Name == s.Claim })]
	if c.Cluster != "" || s.Position < 1 || s.Position > len(w.Claims) {
		t.Fatalf("%s: the claim is %+v of %d", s, *c, len(w.Claims))
	}
	c.Position, c.Ready, w.PositionsSetAt = s.Position, s.Ready, w.Now
}

func (w *world) bind(t *testing.T, s pool.Step, i int) {
	t.Helper()
	m := &w.Members[i]
	if m.Claim == "" && (!m.Running || m.Phase(&w.Settings, w.Now) != pool.Assignable) {
		t.Fatalf("%s: only a running cluster may be given away, this is %s", s, m.Phase(&w.Settings, w.Now))
	}
	if m.Claim != "" && m.Claim != s.Claim {
		t.Fatalf("%s: it belongs to %s", s, m.Claim)
	}
	m.Claim, m.Wanted = s.Claim, pool.Running
	j := slices.IndexFunc(w.Claims, func(c pool.Claim) bool { return c.Name == s.Claim })
	if c := w.Claims[j]; c.Deleting || c.Cluster != "" {
		t.Fatalf("%s: the claim is %+v", s, c)
	}
	if w.rand.IntN(10) > 0 { // else cut off between the two writes
		w.Claims[j].Cluster = m.Name
	}
}

// check is what must hold of every plan.
func (w *world) check(t *testing.T, p pool.Plan) {
	t.Helper()
	touched := map[string]pool.Verb{}
	for _, s := range p.Steps {
		if s.Cause == "" || s.Reason == "" {
			t.Fatalf("step %q has cause %q", s, s.Cause)
		}
		if was, again := touched[s.Cluster]; again && s.Cluster != "" && (was == pool.Bind || s.Verb == pool.Bind) {
			t.Fatalf("%s is bound and also %s", s.Cluster, s.Verb)
		}
		touched[s.Cluster] = s.Verb
	}
	creates := len(p.StepsOf(pool.Create))
	if most := w.Settings.MaxSize; most != nil && creates > 0 && len(w.Members)+creates > *most {
		t.Fatalf("%d exist, %d are created, maxSize is %d", len(w.Members), creates, *most)
	}
	w.checkConcurrency(t, p)
	w.checkQueue(t, p)
	w.checkSets(t, p)
	for _, s := range p.StepsOf(pool.Delete) {
		w.checkDeath(t, s)
	}
}

// checkQueue checks that no claim that waits counts as having come before one that gets a cluster, and that the
// positions are in the same order. A binding that has begun is completed whatever waits.
func (w *world) checkQueue(t *testing.T, p pool.Plan) {
	t.Helper()
	arrival := func(name string) time.Time {
		c := w.Claims[slices.IndexFunc(w.Claims, func(c pool.Claim) bool { return c.Name == name })]
		if c.Set.Name != "" {
			if w.isBegun(c.Set.Name) {
				return time.Time{} // the rest of a set is first, whatever waits
			}
			c.Created = c.Set.Created
		}
		return c.Created.Add(-time.Duration(c.Priority) * time.Minute)
	}
	var last time.Time
	advance := func(claim string) {
		if arrival(claim).Before(last) {
			t.Fatalf("claim %s is served after one that counts as having come later\n%s", claim, strings.Join(w.log, "\n"))
		}
		last = arrival(claim)
	}
	for _, s := range p.StepsOf(pool.Bind) {
		if s.Cause == pool.ClaimWaiting {
			advance(s.Claim)
		}
	}
	for _, wait := range p.Report.Queue {
		advance(wait.Claim)
	}
}

// beingInstalled: so a cluster counts against maxConcurrent before it is deleted, and after.
func beingInstalled(m pool.Member) bool {
	return !m.Installed && !m.GaveUp && !m.Deleting && m.Unreadable == ""
}

// checkConcurrency checks that the deletions and installs that the pool itself chooses stay within
// maxConcurrent. Deletions that a user asked for, by a release or a mark, do not wait for installs,
// and are limited only by the number of deletions.
func (w *world) checkConcurrency(t *testing.T, p pool.Plan) {
	t.Helper()
	most := w.Settings.MaxConcurrent
	if most == nil || w.Settings.Deleting {
		return
	}
	var installing, deleting, own, asked int
	for _, m := range w.Members {
		switch {
		case m.Deleting:
			deleting++
		case beingInstalled(m):
			installing++
		}
	}
	for _, s := range p.StepsOf(pool.Delete) {
		m := w.Members[slices.IndexFunc(w.Members, func(m pool.Member) bool { return m.Name == s.Cluster })]
		switch {
		case beingInstalled(m):
		case m.Marked || m.Claim != "":
			asked++
		default:
			own++
		}
	}
	creates := len(p.StepsOf(pool.Create))
	if n := installing + deleting + creates + own + asked; creates+own > 0 && n > *most {
		t.Fatalf("%d installed or destroyed at a time, %d of them begun now, maxConcurrent is %d", n, creates+own, *most)
	}
	if n := deleting + asked; asked > 0 && n > *most {
		t.Fatalf("%d destroyed at a time, maxConcurrent is %d", n, *most)
	}
}

// checkDeath: a cluster that somebody uses is never destroyed.
func (w *world) checkDeath(t *testing.T, s pool.Step) {
	t.Helper()
	m := w.Members[slices.IndexFunc(w.Members, func(m pool.Member) bool { return m.Name == s.Cluster })]
	for _, c := range w.Claims {
		if m.Claim == c.Name && !c.Deleting && (c.Cluster == "" || c.Cluster == m.Name) {
			t.Fatalf("%s: claim %s uses it", s, c.Name)
		}
	}
}

func TestHistories(t *testing.T) {
	s := *seed
	if s == 0 {
		s = uint64(time.Now().UnixNano())
	}
	t.Logf("-pool.seed=%d", s)
	r := rand.New(rand.NewPCG(s, 1))
	for done := 0; done < *steps; {
		w := newWorld(r)
		for range 60 {
			done++
			w.happen()
			p := pool.Decide(w.Snapshot)
			w.check(t, p)
			w.do(t, p)
		}
		w.converge(t)
		if t.Failed() {
			t.Fatalf("history:\n%s", strings.Join(w.log, "\n"))
		}
	}
}

// TestNewClustersHaveTheirPowerState checks in random histories that a new cluster is created with the power state that
// the next pass would set: that pass leaves it alone, if nothing happens meanwhile, and if no cluster was deleted whose
// place it takes.
func TestNewClustersHaveTheirPowerState(t *testing.T) {
	s := *seed
	if s == 0 {
		s = uint64(time.Now().UnixNano())
	}
	t.Logf("-pool.seed=%d", s)
	r := rand.New(rand.NewPCG(s, 2))
	checked := map[pool.Power]int{}
	for done := 0; done < *steps/4; {
		w := newWorld(r)
		w.Settings.Sleep = [][]pool.Rung{nil, {{Depth: pool.DepthFreeze, Count: ptr(1)}, {Depth: pool.DepthStop}}}[r.IntN(2)]
		w.Settings.Gates = []string{"", "", "g"}[r.IntN(3)]
		for range 30 {
			done++
			w.happen()
			p := pool.Decide(w.Snapshot)
			created := w.createAndDo(t, p)
			if len(p.StepsOf(pool.Delete)) > 0 {
				continue
			}
			for _, st := range pool.Decide(w.Snapshot).StepsOf(pool.Start, pool.Hibernate) {
				if power, isNew := created[st.Cluster]; isNew {
					t.Fatalf("%s was created with power state %q, and the next pass says: %s\n%s", st.Cluster, power, st, strings.Join(w.log, "\n"))
				}
			}
			for _, power := range created {
				checked[power]++
			}
		}
	}
	if checked[pool.Running] < *steps/200 || checked[pool.Hibernating] < *steps/200 || len(checked) != 2 {
		t.Errorf("the histories have created clusters with these power states: %v", checked)
	}
}

// createAndDo carries out all steps of a plan, and returns the power states of the clusters that it has created.
func (w *world) createAndDo(t *testing.T, p pool.Plan) map[string]pool.Power {
	t.Helper()
	created := map[string]pool.Power{}
	for _, s := range p.Steps {
		if s.Later {
			continue
		}
		w.say("%s", s)
		if w.step(t, s); s.Verb == pool.Create {
			created[w.Members[len(w.Members)-1].Name] = s.Power
		}
	}
	return created
}

// converge lets everything succeed from here on, and checks that the pool becomes
// what it is asked to be and then stays so.
func (w *world) converge(t *testing.T) {
	t.Helper()
	w.Settings.MaxSize, w.Settings.Blocked = nil, ""
	if most := w.Settings.MaxConcurrent; most != nil && *most == 0 {
		w.Settings.MaxConcurrent = nil
	}
	var p pool.Plan
	for range 200 {
		w.heal()
		p = pool.Decide(w.Snapshot)
		w.check(t, p)
		if len(p.Steps) == 0 && w.still() {
			break
		}
		for _, s := range p.Steps {
			w.say("%s", s)
			w.step(t, s)
		}
	}
	if len(p.Steps) > 0 {
		t.Errorf("the pool never settles: %s", p)
	}
	rep := p.Report
	for _, c := range w.Claims {
		if !c.Deleting && c.Cluster == "" && !slices.ContainsFunc(w.Members, func(m pool.Member) bool { return m.Claim == c.Name }) {
			t.Errorf("claim %+v was never served", c)
		}
	}
	if rep.Waiting > 0 || rep.UnclaimedCount() != w.Settings.Size || rep.Count[pool.Broken] > 0 || len(rep.Stale) > 0 {
		t.Errorf("settled with %+v, size is %d", rep, w.Settings.Size)
	}
	if want := min(w.Settings.RunningCount, w.Settings.Size); rep.Count[pool.Assignable] != want {
		t.Errorf("%d clusters run, want %d", rep.Count[pool.Assignable], want)
	}
}

// heal lets one thing happen to each cluster, as the other controllers would.
func (w *world) heal() {
	w.Now = w.Now.Add(time.Minute)
	w.Members = slices.DeleteFunc(w.Members, func(m pool.Member) bool { return m.Deleting })
	for i := range w.Members {
		m := &w.Members[i]
		m.Unreadable, m.Paused = "", ""
		m.Installed = m.Installed || !m.GaveUp
		m.Failing = m.Failing && !m.Installed
		if m.PowerFailed && w.Settings.ResumeTimeout == 0 {
			m.PowerTimedOut = true // somebody gives up on it
		}
		m.Running = m.Installed && m.Wanted != pool.Hibernating && !m.PowerFailed
		if m.Running {
			m.ResumingSince = time.Time{}
		}
		if m.PowerFailed && m.ResumingSince.IsZero() {
			m.PowerFailed = false
		}
	}
	for i := range w.Claims {
		w.Claims[i].Unreadable = false
	}
	w.settleClaims()
}

// still reports whether heal would change nothing.
func (w *world) still() bool {
	for _, m := range w.Members {
		if m.Deleting || m.Running == (m.Wanted == pool.Hibernating) {
			return false
		}
	}
	return true
}

func TestThePlanDoesNotDependOnTheOrderOfTheLists(t *testing.T) {
	s := pool.Snapshot{
		Settings: settings(3, 1), Now: noon,
		Members: members("a:standby+stale b:assignable c:installing d:broken e:claimed=z f:resuming=11m g:standby"),
		Claims:  claims("z=e y x"),
	}
	want := pool.Decide(s)
	r := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		r.Shuffle(len(s.Members), func(i, j int) { s.Members[i], s.Members[j] = s.Members[j], s.Members[i] })
		r.Shuffle(len(s.Claims), func(i, j int) { s.Claims[i], s.Claims[j] = s.Claims[j], s.Claims[i] })
		if diff := cmp.Diff(want, pool.Decide(s)); diff != "" {
			t.Fatal(diff)
		}
	}
}
