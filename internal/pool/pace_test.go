package pool

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// One pool must not delay the others: new clusters wait in one queue for the controllers
// that install them.
func TestAPoolOfAnySizeCreatesNoMoreThanIsTaken(t *testing.T) {
	for name, tc := range map[string]struct {
		n, pending int
		of         Member
		fake       bool
		most       int
		next       time.Duration
	}{
		"few wait":                                 {n: 10, most: batchSize, next: nextBatchDelay},
		"many wait":                                {n: backlogLimit - 3, most: 3, next: nextStepDelay},
		"too many wait":                            {n: backlogLimit + 10, most: 0, next: nextStepDelay},
		"recorded names wait, too":                 {pending: backlogLimit, most: 0, next: nextStepDelay},
		"those whose install has begun do not":     {n: 500, of: Member{Begun: true}, most: batchSize, next: nextBatchDelay},
		"but fake ones are installed at once":      {n: 500, of: Member{Begun: true}, fake: true, most: 0, next: nextStepDelay},
		"unless they are paused":                   {n: 500, of: Member{Begun: true, Paused: "x"}, fake: true, most: batchSize, next: nextBatchDelay},
		"installed ones do not":                    {n: 500, of: Member{Begun: true, Installed: true}, fake: true, most: batchSize, next: nextBatchDelay},
		"nor does what was not taken for a minute": {n: 500, of: Member{Created: noon.Add(-backlogPeriod)}, fake: true, most: batchSize, next: nextBatchDelay},
	} {
		t.Run(name, func(t *testing.T) {
			s := Snapshot{Settings: Settings{Size: 1_000_000, Fake: tc.fake}, Pending: make([]string, tc.pending), Now: noon}
			for i := range tc.n {
				m := tc.of
				m.Name = fmt.Sprint("c", i)
				if m.Created.IsZero() {
					m.Created = noon
				}
				s.Members = append(s.Members, m)
			}
			checkPace(t, s, tc.most, tc.next)
		})
	}
}

// checkPace checks how many clusters a pass creates, and that the next pass begins then if
// the plan has more.
func checkPace(t *testing.T, s Snapshot, most int, next time.Duration) {
	t.Helper()
	p := Decide(s)
	if got := len(p.DueStepsOf(Create)); got != min(most, p.CountSteps(Create)) {
		t.Errorf("it creates %d of %d, want %d", got, p.CountSteps(Create), most)
	}
	if p.CountSteps(Create) > most && p.Next != next {
		t.Errorf("the next pass begins in %v, want %v", p.Next, next)
	}
}

func TestAPassDeletesABatch(t *testing.T) {
	for _, n := range []int{batchSize, batchSize + 1} {
		s := Snapshot{Settings: Settings{Deleting: true}, Now: noon}
		for i := range n {
			s.Members = append(s.Members, Member{Name: fmt.Sprint("c", i), Installed: true, Running: true})
		}
		p := Decide(s)
		if due := len(p.DueStepsOf(Delete)); p.CountSteps(Delete) != n || due != batchSize || (p.Next == nextStepDelay) != (n > batchSize) {
			t.Errorf("of %d it deletes %d now, and looks again in %v", p.CountSteps(Delete), due, p.Next)
		}
	}
}

func TestPace(t *testing.T) {
	for name, tc := range map[string]struct {
		size                            int
		assignable, installing, waiting int
		pending                         int
		served, created                 time.Duration // ago; 0 is never
		given                           int           // how many were served then; 0 is one
		earlier                         int           // how many were served between one and two burstPeriods ago
		most                            int
		next                            time.Duration
	}{
		"a new pool fills at full speed":                          {size: 100, most: batchSize, next: nextBatchDelay},
		"a pass that serves creates none":                         {size: 10, assignable: 9, waiting: 1, most: 0, next: nextStepDelay},
		"but for claims that still wait":                          {size: 10, assignable: 1, waiting: 2, most: batchSize, next: nextBatchDelay},
		"and not when half of the pool is gone":                   {size: 10, assignable: 5, waiting: 1, most: batchSize, next: nextBatchDelay},
		"after it, one at a time":                                 {size: 10, assignable: 5, served: time.Second, most: 1, next: nextStepDelay},
		"and that one is waited for":                              {size: 10, assignable: 5, installing: 1, served: time.Second, most: 0, next: nextStepDelay},
		"also when it has a name only":                            {size: 10, assignable: 5, pending: 1, served: time.Second, most: 0, next: nextStepDelay},
		"nor does another follow at once":                         {size: 10, assignable: 5, served: time.Second, created: time.Second, most: 0, next: nextStepDelay},
		"but a while later":                                       {size: 10, assignable: 5, served: time.Second, created: demandPeriod, most: 1, next: nextStepDelay},
		"until demand is over":                                    {size: 10, assignable: 5, served: demandPeriod, most: batchSize, next: nextBatchDelay},
		"a pool whose last running cluster was given is not slow": {size: 1, served: time.Second, most: batchSize, next: nextBatchDelay},
		"a burst that empties the pool is not disturbed":          {size: 100, served: time.Second, given: 100, most: 0, next: nextStepDelay},
		"but what was missing before is created":                  {size: 100, served: time.Second, given: 90, most: 10, next: nextStepDelay},
		"at full speed if it is much":                             {size: 100, served: time.Second, given: 50, most: batchSize, next: nextBatchDelay},
		"and all while a claim waits":                             {size: 100, waiting: 1, served: time.Second, given: 100, most: batchSize, next: nextBatchDelay},
		"and when the burst is over":                              {size: 100, served: burstPeriod, given: 100, most: batchSize, next: nextBatchDelay},
		"clusters that this pass gives count as well":             {size: 100, assignable: 20, waiting: 20, served: time.Second, given: 80, most: 0, next: nextStepDelay},
		"steady demand is no burst":                               {size: 100, served: time.Second, given: 60, earlier: 30, most: batchSize, next: nextBatchDelay},
		"but one that follows few claims is":                      {size: 100, served: time.Second, given: 95, earlier: 47, most: 5, next: nextStepDelay},
		"few claims are no burst":                                 {size: burstSize, served: time.Second, given: burstSize, most: batchSize, next: nextBatchDelay},
		"nor are those of the future":                             {size: 100, served: -time.Hour, given: 100, most: batchSize, next: nextBatchDelay},
		"a pool of size 0 creates what claims wait for":           {waiting: 3, served: time.Second, most: batchSize, next: nextBatchDelay},
	} {
		t.Run(name, func(t *testing.T) {
			s := Snapshot{Settings: Settings{Size: tc.size, RunningCount: tc.size}, Pending: make([]string, tc.pending), Now: noon}
			add := func(n int, m Member) {
				for range n {
					m.Name = fmt.Sprint("c", len(s.Members))
					s.Members = append(s.Members, m)
				}
			}
			add(tc.assignable, Member{Installed: true, Running: true, Wanted: Running})
			add(tc.installing, Member{Begun: true})
			for i := range max(1, tc.given) {
				if tc.served == 0 {
					break
				}
				name := fmt.Sprint("served", i)
				add(1, Member{Installed: true, Running: true, Claim: name, ClaimedAt: noon.Add(-tc.served)})
				s.Claims = append(s.Claims, Claim{Name: name, Cluster: s.Members[len(s.Members)-1].Name})
			}
			for i := range tc.earlier {
				name := fmt.Sprint("earlier", i)
				add(1, Member{Installed: true, Running: true, Claim: name, ClaimedAt: noon.Add(-burstPeriod)})
				s.Claims = append(s.Claims, Claim{Name: name, Cluster: s.Members[len(s.Members)-1].Name})
			}
			if tc.created > 0 {
				add(1, Member{Installed: true, Running: true, Claim: "other", Created: noon.Add(-tc.created)})
				s.Claims = append(s.Claims, Claim{Name: "other", Cluster: s.Members[len(s.Members)-1].Name})
			}
			for i := range tc.waiting {
				s.Claims = append(s.Claims, Claim{Name: fmt.Sprint("x", i), Created: noon})
			}
			checkPace(t, s, tc.most, tc.next)
		})
	}
}

// demand simulates a pool whose clusters are installed in one second, and claims that come in bursts or steadily.
type demand struct {
	Snapshot
	serial int
}

func (w *demand) pass(t *testing.T) Plan {
	t.Helper()
	p := Decide(w.Snapshot)
	w.checkWaiting(t, p)
	for _, s := range p.Steps {
		switch i := slices.IndexFunc(w.Members, func(m Member) bool { return m.Name == s.Cluster }); {
		case s.Later:
		case s.Verb == Bind:
			w.Members[i].Claim, w.Members[i].ClaimedAt = s.Claim, w.Now.Truncate(time.Second)
			c := slices.IndexFunc(w.Claims, func(c Claim) bool { return c.Name == s.Claim })
			w.Claims[c].Cluster = s.Cluster
		case s.Verb == Create:
			w.serial++
			w.Members = append(w.Members, Member{Name: fmt.Sprint("c", w.serial), Created: w.Now, Wanted: s.Power})
		}
	}
	if due := len(p.DueStepsOf(Create)); due < p.CountSteps(Create) && p.Next == 0 {
		t.Fatalf("it creates %d of %d clusters, and no pass follows", due, p.CountSteps(Create))
	}
	return p
}

// elapse lets time pass: clusters are installed, and those that were claimed for half a minute are gone.
func (w *demand) elapse(d time.Duration) {
	w.Now = w.Now.Add(d)
	for i := range w.Members {
		if m := &w.Members[i]; w.Now.Sub(m.Created) >= time.Second {
			m.Begun, m.Installed, m.Running, m.Wanted = true, true, true, Running
		}
	}
	w.Members = slices.DeleteFunc(w.Members, func(m Member) bool { return m.Claim != "" && w.Now.Sub(m.ClaimedAt) > 30*time.Second })
	w.Claims = slices.DeleteFunc(w.Claims, func(c Claim) bool {
		return c.Cluster != "" && !slices.ContainsFunc(w.Members, func(m Member) bool { return m.Name == c.Cluster })
	})
}

func (w *demand) claim(n int) {
	for range n {
		w.serial++
		w.Claims = append(w.Claims, Claim{Name: fmt.Sprint("x", w.serial), Created: w.Now})
	}
}

// checkWaiting fails if a plan delays creations while a claim waits.
func (w *demand) checkWaiting(t *testing.T, p Plan) {
	t.Helper()
	most := min(p.CountSteps(Create), batchSize, newDraft(w.Snapshot).backlogLeft())
	if due := len(p.DueStepsOf(Create)); p.Report.Waiting > 0 && due != most {
		t.Fatalf("%d claims wait, and it creates %d clusters, want %d", p.Report.Waiting, due, most)
	}
}

func TestBurstsDelayNoRefillForLong(t *testing.T) {
	seed, err := strconv.ParseUint(flag.Lookup("pool.seed").Value.String(), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if seed == 0 {
		seed = uint64(time.Now().UnixNano()) //nolint:gosec // any number is a seed
	}
	t.Logf("-pool.seed=%d", seed)
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a test
	// Waiting claims are served within a few seconds, 32 a second; the refill takes as long, after the delay.
	const quiet = burstPeriod + 15*time.Second
	bursts, kept := 0, 0
	for range 6 {
		size := 20 + r.IntN(100)
		w := &demand{Snapshot: Snapshot{Settings: Settings{Size: size, RunningCount: size}, Now: noon}}
		for range 4 {
			rate := r.IntN(15) // claims a second
			for range 10 * r.IntN(15) {
				if r.IntN(200) == 0 {
					w.claim(r.IntN(size))
				}
				if r.IntN(10) < rate {
					w.claim(1 + rate/10)
				}
				p := w.pass(t)
				if d := newDraft(w.Snapshot); d.isBurst(d.countGiven(burstPeriod)) {
					bursts++
					kept += p.CountSteps(Create) - len(p.DueStepsOf(Create))
				}
				w.elapse(100 * time.Millisecond)
			}
			if r.IntN(2) == 0 {
				w.claim(3 * size / 4)
			}
			for range 10 * int(quiet/time.Second) { // nobody claims
				w.pass(t)
				w.elapse(100 * time.Millisecond)
			}
			if p := Decide(w.Snapshot); p.Report.Count[Assignable] != size || p.CountSteps(Create) > 0 {
				t.Fatalf("%v after the last claim, the pool of %d has %d assignable clusters: %s", quiet, size, p.Report.Count[Assignable], p.Report.Words)
			}
		}
	}
	t.Logf("%d passes in bursts, which delayed %d creations", bursts, kept)
	if bursts == 0 || kept == 0 {
		t.Errorf("the histories have %d passes in bursts, which delayed %d creations: too few", bursts, kept)
	}
}
