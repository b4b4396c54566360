package pool_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/pool"
)

// weather is what installs of a version are like.
type weather int

const (
	fine weather = iota
	// impossible: they cannot begin, until the pool or what it names is corrected.
	impossible
	// failing: each attempt fails, and another follows.
	failing
	// slow: they take many passes.
	slow
	weathers
)

// storm simulates a pool for which little works: installs cannot begin, fail forever or take long,
// resumes hang, deletions fail for a while, claims always wait, and users edit the pool all the
// time.
type storm struct {
	*world
	// of is the weather of each version, hung the clusters that never come up, age how many
	// times each has been moved on.
	of   map[string]weather
	hung map[string]bool
	age  map[string]int
	// listed are the customizations of the inventory, of those that there are, and used is
	// by which cluster.
	listed map[string]bool
	used   map[string]string
	found  map[string]int
}

func newStorm(r *rand.Rand, found map[string]int) *storm {
	s := &storm{
		world: newWorld(r), of: map[string]weather{"v1": weather(r.IntN(int(weathers)))}, hung: map[string]bool{},
		age: map[string]int{}, listed: map[string]bool{}, used: map[string]string{}, found: found,
	}
	s.Settings.MaxConcurrent = ptr(1)
	if r.IntN(2) == 0 {
		s.Settings.Inventory = true
	}
	return s
}

const customizations = 8

// edit changes one setting; it may ask for what cannot be.
func (s *storm) edit() {
	switch s.rand.IntN(9) {
	case 0:
		s.Settings.Size = s.rand.IntN(5)
	case 1:
		s.Settings.RunningCount = s.rand.IntN(5)
	case 2:
		s.Settings.MaxSize = s.number(6)
	case 3:
		s.Settings.MaxConcurrent = s.number(3)
	case 4, 5:
		s.Settings.Version = fmt.Sprintf("v%d", s.rand.IntN(4))
		if _, known := s.of[s.Settings.Version]; !known {
			s.of[s.Settings.Version] = weather(s.rand.IntN(int(weathers)))
		}
	case 6:
		name := fmt.Sprintf("e%d", s.rand.IntN(customizations))
		s.listed[name] = !s.listed[name]
	case 7:
		s.Settings.ResumeTimeout = []time.Duration{0, 4 * time.Minute, 20 * time.Minute}[s.rand.IntN(3)]
	case 8:
		s.Settings.Blocked = []string{"", "no image set"}[s.rand.IntN(2)]
	}
	s.say("settings %+v", s.Settings)
}

func (s *storm) number(most int) *int {
	if s.rand.IntN(3) == 0 {
		return nil
	}
	return ptr(s.rand.IntN(most))
}

// books keeps the inventory as package inventory does: what is free, and which unclaimed
// clusters have to go.
func (s *storm) books() {
	s.Settings.Free = nil
	for name, by := range s.used {
		if !slices.ContainsFunc(s.Members, func(m pool.Member) bool { return m.Name == by }) {
			delete(s.used, name)
		}
	}
	for i := range customizations {
		if name := fmt.Sprintf("e%d", i); s.Settings.Inventory && s.listed[name] && s.used[name] == "" {
			s.Settings.Free = append(s.Settings.Free, name)
		}
	}
	for i := range s.Members {
		m := &s.Members[i]
		m.Withdrawn = ""
		for name, by := range s.used {
			if by == m.Name && s.Settings.Inventory && !s.listed[name] && m.Claim == "" {
				m.Withdrawn = name + " was taken off"
			}
		}
	}
}

// move moves one cluster on, as far as it gets.
func (s *storm) move(i int, well bool) {
	m := &s.Members[i]
	s.age[m.Name]++
	w := s.of[m.Version]
	switch {
	case m.Deleting && !well && s.rand.IntN(3) == 0:
		m.DeletionError = "no credentials"
	case m.Deleting:
		m.DeletionError = ""
		s.Members = slices.Delete(s.Members, i, i+1)
	case m.GaveUp:
	case !m.Installed && w == impossible:
		m.RequirementsUnmet = "a typo"
	case !m.Installed && w == failing:
		m.Failing = s.age[m.Name]%2 == 0 // an attempt, a pause, an attempt
	case !m.Installed && w == slow && s.age[m.Name] < 6:
	case !m.Installed:
		m.Installed, m.Failing, m.RequirementsUnmet = true, false, ""
		m.Running = m.Wanted != pool.Hibernating
		if !well && s.rand.IntN(4) == 0 {
			s.hung[m.Name] = true
		}
	case m.Wanted == pool.Hibernating:
		m.Running, m.ResumingSince, m.MachinesFailed, m.PowerFailed = false, time.Time{}, false, false
	case m.Running:
	case m.ResumingSince.IsZero():
		m.ResumingSince = s.Now
	case s.hung[m.Name]:
		m.PowerFailed = s.age[m.Name]%3 == 0
	default:
		m.Running, m.ResumingSince, m.PowerFailed = true, time.Time{}, false
	}
}

// pass is a pass of the pool, with what must hold of each.
func (s *storm) pass(t *testing.T, lossy bool) pool.Plan {
	t.Helper()
	s.books()
	p := pool.Decide(s.Snapshot)
	s.check(t, p)
	s.honest(t, p)
	s.prompt(t, p)
	for _, st := range p.Steps {
		if lossy && s.rand.IntN(20) == 0 {
			s.say("lost: %s", st)
			continue
		}
		s.say("%s", st)
		before := len(s.Members)
		s.step(t, st)
		if len(s.Members) > before && st.Customization != "" {
			s.used[st.Customization] = s.Members[before].Name
		}
	}
	return p
}

// honest: a pool does not say that it is settled while something is missing, and does not
// wait without saying for what.
func (s *storm) honest(t *testing.T, p pool.Plan) {
	t.Helper()
	r := p.Report
	switch r.Progress {
	case pool.Settled:
		if r.Waiting > 0 || r.UnclaimedCount() != s.Settings.Size || r.Count[pool.Broken] > 0 || len(r.Refused) > 0 || r.Count[pool.Deleting] > 0 {
			s.fail(t, "it says that it is settled: %s, with %v, waiting %d", r.Words, r.Count, r.Waiting)
		}
	case pool.Held:
		if r.Blocked == "" || len(p.StepsOf(pool.Create))+len(p.StepsOf(pool.Delete)) > 0 {
			s.fail(t, "it is held by %q, and does %s", r.Blocked, p)
		}
		s.found["held"]++
	}
}

// prompt checks that the pass does everything that needs no permission: it does not cut a resume
// short, claims start the existing standby clusters, and a released cluster does not wait for an
// install.
func (s *storm) prompt(t *testing.T, p pool.Plan) {
	t.Helper()
	told := map[string]pool.Verb{}
	for _, st := range p.Steps {
		told[st.Cluster] = st.Verb
	}
	asleep, awake, going, released := 0, 0, 0, 0
	for _, m := range s.Members {
		resumes := m.Installed && !m.Running && m.Wanted == pool.Running && !m.ResumingSince.IsZero()
		switch phase := m.Phase(&s.Settings, s.Now); {
		case told[m.Name] == pool.Hibernate && resumes:
			s.fail(t, "%s resumes and is put to sleep", m.Name)
		case phase == pool.Deleting || told[m.Name] == pool.Delete:
			going++
		case phase == pool.Claimed:
			if !slices.ContainsFunc(s.Claims, func(c pool.Claim) bool { return c.Name == m.Claim && !c.Deleting }) && m.Unreadable == "" {
				released++
			}
		case phase == pool.Standby && (m.Wanted == pool.Running || told[m.Name] == pool.Start):
			awake++
		case phase == pool.Standby && !m.PowerFailed:
			asleep++
		}
	}
	if asleep > 0 && awake < p.Report.Waiting {
		s.fail(t, "%d claims wait, %d clusters come up and %d sleep: %s", p.Report.Waiting, awake, asleep, p)
	}
	if most := s.Settings.MaxConcurrent; released > 0 && (most == nil || *most > 0) && going == 0 {
		s.fail(t, "%d released clusters are left, and nothing is deleted: %s", released, p)
	}
}

func (s *storm) fail(t *testing.T, format string, args ...any) {
	t.Helper()
	t.Fatalf(format+"\n%+v\nmembers %+v\nclaims %+v\n%s", append(args, s.Settings, s.Members, s.Claims, strings.Join(s.log[max(0, len(s.log)-60):], "\n"))...)
}

// rage is one step of the storm.
func (s *storm) rage(t *testing.T) {
	t.Helper()
	s.Now = s.Now.Add(time.Duration(s.rand.IntN(300)) * time.Second)
	s.edit()
	if !slices.ContainsFunc(s.Claims, func(c pool.Claim) bool { return c.Cluster == "" && !c.Deleting }) || s.rand.IntN(6) == 0 {
		s.serial++
		s.Claims = append(s.Claims, pool.Claim{Name: fmt.Sprintf("x%d", s.serial), Created: s.Now})
	}
	if len(s.Claims) > 0 && s.rand.IntN(4) == 0 {
		s.Claims[s.rand.IntN(len(s.Claims))].Deleting = true
	}
	for range 1 + s.rand.IntN(4) {
		if n := len(s.Members); n > 0 {
			s.move(s.rand.IntN(n), false)
		}
	}
	s.settleClaims()
	s.pass(t, true)
}

// relent makes what is asked for possible again, by the least that a user can do: the pool's
// version is corrected, or what it names is, limits are wide enough, maxConcurrent is 1.
func (s *storm) relent() (byVersion bool) {
	byVersion = s.rand.IntN(2) == 0
	if byVersion {
		s.Settings.Version = "good"
		s.of["good"] = []weather{fine, slow}[s.rand.IntN(2)]
	} else {
		s.of[s.Settings.Version] = []weather{fine, slow}[s.rand.IntN(2)]
	}
	s.Settings.Blocked, s.Settings.MaxSize, s.Settings.MaxConcurrent = "", nil, ptr(1)
	s.Settings.Size = min(s.Settings.Size, customizations/2)
	for i := range customizations {
		s.listed[fmt.Sprintf("e%d", i)] = true
	}
	for len(s.Claims) > 0 && s.Settings.Inventory && s.demand() > customizations { // more than the inventory can serve
		i := slices.IndexFunc(s.Claims, func(c pool.Claim) bool { return !c.Deleting })
		if i < 0 {
			break
		}
		s.Claims[i].Deleting = true
	}
	s.say("everything is possible again: %+v", s.Settings)
	return byVersion
}

// demand is how many clusters there have to be for all to be served.
func (s *storm) demand() int {
	n := s.Settings.Size
	for _, c := range s.Claims {
		if !c.Deleting {
			n++
		}
	}
	return n
}

// calm checks that all that is asked for happens in a bounded number of passes.
func (s *storm) calm(t *testing.T) {
	t.Helper()
	if s.Settings.ResumeTimeout == 0 { // without a timeout, the pool waits for a hanging resume forever, as requested
		s.hung = map[string]bool{}
	}
	// With maxConcurrent 1 each cluster goes, and its successor is installed, one at a time.
	bound := 40 + 20*(len(s.Members)+s.demand())
	for n := range bound {
		s.Now = s.Now.Add(time.Minute)
		for i := len(s.Members) - 1; i >= 0; i-- {
			s.move(i, true)
		}
		s.settleClaims()
		p := s.pass(t, false)
		if p.Report.Progress == pool.Settled && len(p.Steps) == 0 && s.still() && len(p.Report.Stale) == 0 {
			s.found["most passes"] = max(s.found["most passes"], n)
			s.asked(t, p.Report)
			return
		}
	}
	p := pool.Decide(s.Snapshot)
	s.fail(t, "after %d passes it is not settled: %s", bound, p.Report.Words)
}

func (s *storm) asked(t *testing.T, r pool.Report) {
	t.Helper()
	if r.Waiting > 0 || r.UnclaimedCount() != s.Settings.Size || r.Count[pool.Assignable] != min(s.Settings.RunningCount, s.Settings.Size) {
		s.fail(t, "settled with %+v", r)
	}
	for _, c := range s.Claims {
		if c.Deleting {
			s.fail(t, "claim %s is not released", c.Name)
		}
	}
}

// TestWhatBecomesPossibleHappens: whatever a pool, its installs and its users went through,
// once what is asked for is possible it happens, with maxConcurrent 1, in a bounded number of
// passes. And at any time a pool that does not get on says why.
func TestWhatBecomesPossibleHappens(t *testing.T) {
	s := *seed
	if s == 0 {
		s = uint64(time.Now().UnixNano())
	}
	found := map[string]int{}
	histories, done := 0, 0
	r := rand.New(rand.NewPCG(s, 2))
	for ; done < *steps; histories++ {
		w := newStorm(r, found)
		for range 3 { // possible, then impossible again, and so on
			for range 10 + r.IntN(40) {
				done++
				w.rage(t)
			}
			if w.relent() {
				found["corrected in the pool"]++
			}
			w.calm(t)
		}
	}
	t.Logf("-pool.seed=%d: %d histories, %d steps; %v", s, histories, done, found)
}
