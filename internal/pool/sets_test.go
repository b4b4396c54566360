package pool_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/claimqueue"
	"hotspare.io/hotspare/internal/claimset"
	"hotspare.io/hotspare/internal/pool"
)

// createSet creates a set, and its claims a moment later, in any order.
func (w *world) createSet() {
	w.serial++
	set := pool.ClaimSet{Name: fmt.Sprintf("s%d", w.serial), Created: w.Now, Size: 1 + w.rand.IntN(4)}
	w.sets = append(w.sets, set)
	w.completeSets()
	w.setPriority(pool.Claim{Set: set}, w.priority())
	w.say("ClaimSet %s of %d", set.Name, set.Size)
}

// completeSets creates the claims that sets lack, as their controller does, until one of them has a cluster.
func (w *world) completeSets() {
	w.sets = slices.DeleteFunc(w.sets, func(s pool.ClaimSet) bool { return w.isBegun(s.Name) && w.countUnserved(s.Name) == 0 })
	for _, set := range w.sets {
		if w.isBegun(set.Name) {
			continue
		}
		priority := 0
		for _, c := range w.Claims {
			if c.Set.Name == set.Name {
				priority = c.Priority
			}
		}
		for i := range set.Size {
			name := fmt.Sprintf("%s-%d", set.Name, i)
			if !slices.ContainsFunc(w.Claims, func(c pool.Claim) bool { return c.Name == name }) {
				w.Claims = append(w.Claims, pool.Claim{Name: name, Created: w.Now.Add(time.Duration(w.rand.IntN(3)) * time.Second), Set: set, Priority: priority})
			}
		}
	}
}

func (w *world) deleteSet(set pool.ClaimSet) {
	w.say("ClaimSet %s is deleted", set.Name)
	for i := range w.Claims {
		w.Claims[i].Deleting = w.Claims[i].Deleting || w.Claims[i].Set.Name == set.Name
	}
	w.sets = slices.DeleteFunc(w.sets, func(s pool.ClaimSet) bool { return s.Name == set.Name })
}

// setPriority sets the priority of a claim, or of all claims of its set.
func (w *world) setPriority(c pool.Claim, priority int) {
	for i := range w.Claims {
		if w.Claims[i].Name == c.Name || c.Set.Name != "" && w.Claims[i].Set.Name == c.Set.Name {
			w.Claims[i].Priority = priority
		}
	}
}

func (w *world) hasCluster(c pool.Claim) bool {
	return c.Cluster != "" || slices.ContainsFunc(w.Members, func(m pool.Member) bool { return m.Claim == c.Name })
}

// isBegun reports whether a claim of the set has a cluster.
func (w *world) isBegun(set string) bool {
	return slices.ContainsFunc(w.Claims, func(c pool.Claim) bool { return c.Set.Name == set && !c.Deleting && w.hasCluster(c) })
}

func (w *world) countUnserved(set string) int {
	n := 0
	for _, c := range w.Claims {
		if c.Set.Name == set && !c.Deleting && !w.hasCluster(c) {
			n++
		}
	}
	return n
}

// checkSets checks that no set is served in part: of a set without clusters, a plan serves all claims or none.
func (w *world) checkSets(t *testing.T, p pool.Plan) {
	t.Helper()
	served := map[pool.ClaimSet]int{}
	for _, s := range p.StepsOf(pool.Bind) {
		c := w.Claims[slices.IndexFunc(w.Claims, func(c pool.Claim) bool { return c.Name == s.Claim })]
		if c.Set.Name != "" && s.Cause == pool.ClaimWaiting {
			served[c.Set]++
		}
	}
	w.checkFirstBindings(t, p)
	for set, n := range served {
		if n != set.Size && !w.isBegun(set.Name) {
			t.Fatalf("%d of %d claims of set %s get clusters\n%s\n%s", n, set.Size, set.Name, p, strings.Join(w.log, "\n"))
		}
	}
}

// checkFirstBindings checks that all bindings of a set follow that of its first claim, unless a claim of the set has a cluster.
func (w *world) checkFirstBindings(t *testing.T, p pool.Plan) {
	t.Helper()
	planned := map[string]bool{}
	for _, s := range p.StepsOf(pool.Bind) {
		planned[s.Claim] = true
	}
	for _, s := range p.StepsOf(pool.Bind) {
		set := w.Claims[slices.IndexFunc(w.Claims, func(c pool.Claim) bool { return c.Name == s.Claim })].Set.Name
		want := w.firstClaim(set)
		if set == "" || s.Claim == want || slices.ContainsFunc(w.Claims, func(c pool.Claim) bool { return c.Set.Name == set && !c.Deleting && c.Cluster != "" }) {
			want = ""
		}
		if s.After != want || want != "" && s.Cause == pool.ClaimWaiting && !planned[want] {
			t.Fatalf("the binding of claim %s of set %q follows %q, want %q\n%s\n%s", s.Claim, set, s.After, want, p, strings.Join(w.log, "\n"))
		}
	}
}

// firstClaim returns the first claim of a set that is not being deleted.
func (w *world) firstClaim(set string) string {
	first := ""
	for _, c := range w.Claims {
		if c.Set.Name == set && !c.Deleting && (first == "" || len(c.Name) < len(first) || len(c.Name) == len(first) && c.Name < first) {
			first = c.Name
		}
	}
	return first
}

// setClaims reads "x a/2 b/1": claims, and sets with that number of claims, a minute apart. "a/2:1" has one claim of two
// only, and the first claim of "a/2!" has cluster m.
func setClaims(text string) []pool.Claim {
	var out []pool.Claim
	for i, word := range strings.Fields(text) {
		at := noon.Add(time.Duration(i-100) * time.Minute)
		name, rest, isSet := strings.Cut(word, "/")
		if !isSet {
			out = append(out, pool.Claim{Name: name, Created: at})
			continue
		}
		var size, exist int
		begun := strings.HasSuffix(rest, "!")
		if _, err := fmt.Sscanf(strings.TrimSuffix(rest, "!"), "%d:%d", &size, &exist); err != nil {
			exist = size
		}
		for j := range exist {
			c := pool.Claim{Name: fmt.Sprintf("%s-%d", name, j), Created: at.Add(time.Hour), Set: pool.ClaimSet{Name: name, Created: at, Size: size}}
			if begun && j == 0 {
				c.Cluster = "m"
			}
			out = append(out, c)
		}
	}
	return out
}

func TestSetsAreServedTogether(t *testing.T) {
	for name, tc := range map[string]struct {
		set     func(*pool.Settings)
		members string
		claims  string
		want    string
		aside   string
	}{
		"all at once":                                     {nil, "a:assignable b:assignable", "s/2", "bind s-0 to a, bind s-1 to b", ""},
		"too few are kept":                                {nil, "a:assignable b:standby", "s/2", "start b", ""},
		"the claims behind it get none of them":           {nil, "a:assignable b:standby c:installing+run", "s/2 x", "start b", ""},
		"the claims before it get theirs":                 {nil, "a:assignable b:assignable", "x s/2", "bind x to a, create", ""},
		"it has the place of its creation":                {nil, "a:assignable b:assignable", "s/2 x", "bind s-0 to a, bind s-1 to b, create", ""},
		"two sets, one after the other":                   {nil, "a:assignable b:assignable c:assignable", "s/2 r/2", "bind s-0 to a, bind s-1 to b, create", ""},
		"one whose claims do not all exist does not wait": {nil, "a:assignable b:assignable", "s/2:1 x", "bind x to a", ""},
		"one that was served in part is first":            {nil, "m:claimed=s-0 a:assignable", "x s/3!", "bind s-1 to a, create, create", ""},
		"one larger than maxSize lets others pass":        {maxSize(2), "a:assignable b:assignable", "s/3 x", "bind x to a", "s: it needs 3 clusters, and maxSize is 2"},
		"one as large as maxSize waits":                   {maxSize(2), "a:assignable b:claimed=y", "s/2 y=b x", "", ""},
		"one larger than the inventory":                   {func(s *pool.Settings) { s.Inventory, s.Free = true, []string{"f"} }, "a:assignable", "s/3 x", "bind x to a", "s: it needs 3 clusters, and the inventory has customizations for 2"},
		"one larger than the platform":                    {func(s *pool.Settings) { s.Room, s.NoRoom = new(int), "no memory" }, "a:assignable", "s/2 x", "bind x to a", "s: it needs 2 clusters, and the platform has room for 1: no memory"},
		"a pool that cannot create clusters":              {func(s *pool.Settings) { s.Blocked = "no image set" }, "a:assignable", "s/2 x", "bind x to a", "s: it needs 2 clusters, and the pool has 1 that are free, and creates no more: no image set"},
		"a frozen pool":                                   {func(s *pool.Settings) { s.MaxConcurrent = new(int) }, "a:assignable", "s/2 x", "bind x to a", "s: it needs 2 clusters, and the pool has 1 that are free, and creates no more: maxConcurrent is 0"},
	} {
		t.Run(name, func(t *testing.T) {
			s := pool.Snapshot{Settings: settings(0, 0), Now: noon, Members: members(tc.members)}
			s.Settings.Size = 0
			if tc.set != nil {
				tc.set(&s.Settings)
			}
			for _, c := range setClaims(tc.claims) {
				if claim, cluster, served := strings.Cut(c.Name, "="); served {
					c.Name, c.Cluster = claim, cluster
				}
				s.Claims = append(s.Claims, c)
			}
			p := pool.Decide(s)
			var got []string
			for _, st := range p.StepsOf(pool.Bind, pool.Start, pool.Create) {
				text, _, _ := strings.Cut(st.String(), ": ")
				got = append(got, strings.Replace(text, "create a cluster", "create", 1))
			}
			if words := strings.Join(got, ", "); words != tc.want {
				t.Errorf("got %q, want %q\n%s", words, tc.want, p)
			}
			aside := ""
			for _, a := range p.Report.UnservableSets {
				aside += a.Set + ": " + a.Reason
			}
			if aside != tc.aside || strings.Contains(p.Report.Words, "cannot be served") != (tc.aside != "") {
				t.Errorf("set aside: %q, want %q; %s", aside, tc.aside, p.Report.Words)
			}
		})
	}
}

// A set that waits for places that never become free would keep the running clusters from everybody.
func TestClustersThatCannotBeRemovedLeaveNoPlaceForASet(t *testing.T) {
	for name, change := range map[string]func(*pool.Member){
		"a deletion that fails":   func(m *pool.Member) { m.Deleting, m.DeletionError = true, "no credentials" },
		"one that cannot be read": func(m *pool.Member) { m.Unreadable = "spec" },
		"a broken one that is protected": func(m *pool.Member) {
			m.GaveUp, m.Protected = true, true
		},
	} {
		s := pool.Snapshot{Settings: settings(0, 0), Now: noon, Members: members("a:assignable b:assignable c:standby"), Claims: setClaims("s/3 x")}
		maxSize(3)(&s.Settings)
		change(&s.Members[2])
		p := pool.Decide(s)
		if got := p.StepsOf(pool.Bind); len(got) != 1 || got[0].Claim != "x" {
			t.Errorf("%s: the claim behind the set does not get a cluster:\n%s", name, p)
		}
		if u := p.Report.UnservableSets; len(u) != 1 || u[0].Reason != "it needs 3 clusters, and maxSize is 3, and 1 cluster cannot be removed" {
			t.Errorf("%s: %+v", name, u)
		}
	}
}

// The pool assigns clusters to a set in the moment in which the set decides to move. Each writes a claim only if it is as it was
// read, in any order that their steps permit.
func TestASetThatMovesWhileItIsAssignedIsServedCompletelyOrNotAtAll(t *testing.T) {
	outcomes := map[int]int{}
	for range 500 {
		seed := rand.Uint64()
		r := rand.New(rand.NewPCG(seed, 4))
		size := 2 + r.IntN(12) // with more than ten, the order of the names is not that of the numbers
		spares, waiting := "", []claimset.Claim(nil)
		for i := range size {
			spares += fmt.Sprintf("m%d:assignable ", i)
			waiting = append(waiting, claimset.Claim{Name: fmt.Sprintf("s-%d", i), Pool: "old"})
		}
		r.Shuffle(size, func(i, j int) { waiting[i], waiting[j] = waiting[j], waiting[i] })
		assigns := pool.Decide(pool.Snapshot{Settings: settings(size, size), Now: noon, Members: members(spares), Claims: setClaims(fmt.Sprintf("s/%d", size))}).StepsOf(pool.Bind)
		moves := claimset.Decide(claimset.Snapshot{
			Now: noon, Name: "s", Size: size, Claims: waiting, Preferences: []claimset.Preference{{Pools: []string{"old", "new"}}},
			Pools: []claimset.Pool{{Name: "old"}, {Name: "new", Free: claimset.FreeClusters{Running: 99, Installed: 99}, Kept: claimset.FreeClusters{Running: 99, Installed: 99}}},
		}).Steps
		if len(assigns) != size || len(moves) != size {
			t.Fatalf("seed %d: %d assignments and %d deletions for %d claims", seed, len(assigns), len(moves), size)
		}
		written, assigned := map[string]bool{}, map[string]bool{}
		for len(assigns)+len(moves) > 0 {
			if due := dueSteps(assigns, assigned); len(due) > 0 && (len(moves) == 0 || r.IntN(2) == 0) {
				i := due[r.IntN(len(due))]
				assigned[assigns[i].Claim], written[assigns[i].Claim] = !written[assigns[i].Claim], true
				assigns = slices.Delete(assigns, i, i+1)
			} else if len(moves) > 0 {
				if written[moves[0].Claim] {
					moves = nil
					continue
				}
				written[moves[0].Claim], moves = true, moves[1:]
			} else {
				break // their step has failed
			}
		}
		n := 0
		for _, got := range assigned {
			if got {
				n++
			}
		}
		if n != 0 && n != size {
			t.Fatalf("seed %d: %d of %d claims have clusters", seed, n, size)
		}
		outcomes[min(n, 1)]++
	}
	if outcomes[0] == 0 || outcomes[1] == 0 {
		t.Errorf("only one of the two ever wins: %v", outcomes)
	}
}

// dueSteps returns the indexes of the steps that follow no other step, or one that has succeeded.
func dueSteps(steps []pool.Step, succeeded map[string]bool) []int {
	var out []int
	for i, s := range steps {
		if s.After == "" || succeeded[s.After] {
			out = append(out, i)
		}
	}
	return out
}

func maxSize(n int) func(*pool.Settings) { return func(s *pool.Settings) { s.MaxSize = &n } }

func TestTheEstimateOfASetIsThatOfItsLastCluster(t *testing.T) {
	s := pool.Snapshot{Settings: settings(0, 0), Now: noon, Members: members("a:assignable b:resuming=1m"), Claims: setClaims("s/2 x")}
	s.Members[0].ResumeTook = 3 * time.Minute
	queue := pool.Decide(s).Report.Queue
	if len(queue) != 3 || queue[0].Position != 1 || queue[1].Position != 2 || queue[0].Set != "s" || queue[2].Set != "" {
		t.Fatalf("the queue is %+v", queue)
	}
	for _, w := range queue[:2] {
		if got := w.Ready.Sub(noon); got != 2*time.Minute {
			t.Errorf("%s is expected in %s", w.Claim, got)
		}
	}
	if !queue[2].Ready.IsZero() {
		t.Errorf("nothing leads to a cluster for x, which is expected at %s", queue[2].Ready)
	}
}

// Without sets, clusters are assigned in the order of package claimqueue, whatever the claims are.
func TestWithoutSetsTheOrderIsThatOfTheQueue(t *testing.T) {
	for range 200 {
		seed := rand.Uint64()
		r := rand.New(rand.NewPCG(seed, 3))
		s := pool.Snapshot{Settings: settings(0, 0), Now: noon}
		var want []claimqueue.Entry
		for i := range 12 {
			c := pool.Claim{Name: fmt.Sprint("x", i), Created: noon.Add(-time.Duration(r.IntN(5)) * time.Minute), Priority: r.IntN(5) - 2}
			s.Claims = append(s.Claims, c)
			want = append(want, claimqueue.Entry{Name: c.Name, Created: c.Created, Priority: c.Priority})
		}
		slices.SortFunc(want, claimqueue.Compare)
		s.Members = members(strings.Repeat("m:assignable ", r.IntN(13)))
		for i := range s.Members {
			s.Members[i].Name = fmt.Sprint("m", i)
		}
		p := pool.Decide(s)
		binds := p.StepsOf(pool.Bind)
		if len(binds) != min(len(s.Members), len(want)) {
			t.Fatalf("seed %d: %d of %d clusters are assigned", seed, len(binds), len(s.Members))
		}
		for i, st := range binds {
			if st.Claim != want[i].Name {
				t.Fatalf("seed %d: claim %d is %s, want %s", seed, i, st.Claim, want[i].Name)
			}
		}
	}
}

// Sets and claims arrive for ever, faster than clusters become free, and steps are lost as by a kill. A unit, which is a
// set or a claim, is served at the latest when those that were before it have had their clusters, one after the other, and
// so it never waits for those that come later.
func TestNoSetStarves(t *testing.T) {
	const (
		clusters = 4
		held     = 3 // passes for which a claim keeps its cluster
	)
	for range 20 {
		seed := rand.Uint64()
		r := rand.New(rand.NewPCG(seed, 9))
		s := pool.Snapshot{Settings: settings(0, 0), Now: noon}
		s.Settings.MaxSize = new(clusters)
		serial, before, waited, since := 0, map[string]int{}, map[string]int{}, map[string]int{}
		unit := func(c pool.Claim) string {
			if c.Set.Name != "" {
				return c.Set.Name
			}
			return c.Name
		}
		for pass := range 300 {
			s.Now = s.Now.Add(time.Second)
			for len(s.Claims) < 20 {
				serial++
				name, size := fmt.Sprintf("x%d", serial), r.IntN(clusters+1)
				ahead := 0
				for _, c := range s.Claims {
					if c.Cluster == "" {
						ahead++
					}
				}
				before[name] = ahead + size
				at := s.Now.Add(time.Duration(serial) * time.Microsecond)
				if size == 0 {
					s.Claims = append(s.Claims, pool.Claim{Name: name, Created: at})
				}
				for i := range size {
					s.Claims = append(s.Claims, pool.Claim{Name: fmt.Sprintf("%s-%d", name, i), Created: at, Set: pool.ClaimSet{Name: name, Created: at, Size: size}})
				}
			}
			for len(s.Members) < clusters {
				serial++
				s.Members = append(s.Members, pool.Member{Name: fmt.Sprintf("m%d", serial), Created: s.Now, Installed: true, Running: true, Wanted: pool.Running, Version: "v1"})
			}
			for _, st := range pool.Decide(s).StepsOf(pool.Bind) {
				if r.IntN(10) == 0 {
					continue // lost
				}
				i := slices.IndexFunc(s.Claims, func(c pool.Claim) bool { return c.Name == st.Claim })
				j := slices.IndexFunc(s.Members, func(m pool.Member) bool { return m.Name == st.Cluster })
				s.Claims[i].Cluster, s.Members[j].Claim, since[st.Claim] = st.Cluster, st.Claim, pass
			}
			counted := map[string]bool{}
			for _, c := range s.Claims {
				if c.Cluster == "" && !counted[unit(c)] {
					counted[unit(c)] = true
					// A lost step costs a pass. A set makes the clusters before it wait for the last of them.
					if waited[unit(c)]++; waited[unit(c)] > (before[unit(c)]+clusters)*(held+3) {
						t.Fatalf("seed %d, pass %d: %s waits in pass %d, and %d claims were before it", seed, pass, unit(c), waited[unit(c)], before[unit(c)])
					}
				}
			}
			unserved := map[string]bool{} // a job waits for all clusters of its set, and then releases them
			for _, c := range s.Claims {
				unserved[unit(c)] = unserved[unit(c)] || c.Cluster == ""
			}
			s.Claims = slices.DeleteFunc(s.Claims, func(c pool.Claim) bool {
				if unserved[unit(c)] || pass-since[c.Name] < held {
					return false
				}
				s.Members = slices.DeleteFunc(s.Members, func(m pool.Member) bool { return m.Claim == c.Name })
				return true
			})
		}
	}
}
