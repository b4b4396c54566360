package ladder

import (
	"flag"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/sizing"
)

var seedFlag = flag.Uint64("ladder.seed", 0, "seed of random pools; 0 chooses one")

func newRand(t *testing.T) *rand.Rand {
	t.Helper()
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-ladder.seed=%d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// given is a pool with three spares, the first of which replaces a running cluster most of the time.
func given() Snapshot {
	frozen := 0.4
	return Snapshot{
		Standby: 3, Prices: sizing.Prices{Running: 1.2, Hibernating: 0.1, Frozen: &frozen}, Known: true,
		Durations: sizing.Durations{Resume: 45 * time.Second, Shallow: sizing.PerShallowDepth[time.Duration]{Freeze: 2 * time.Second, Suspend: 20 * time.Second}},
		Worth:     sizing.PerShallowDepth[[]float64]{Freeze: []float64{0.9, 0.2, 0.05}, Suspend: []float64{0.4, 0.1, 0.001}},
	}
}

func price(x float64) *float64 { return &x }

func TestTheLadderThatPays(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Snapshot)
		want   string
		says   string
	}{
		"a frozen one pays":                     {func(s *Snapshot) { s.Prices.Suspended = price(0.5) }, "freeze:1,stop", "1 frozen, 2 stopped: a resume from freeze takes 2s in place of 45s, and the last one is worth 90% of a running cluster, for 0.4 in place of 0.1 an hour"},
		"a suspended one that costs as little":  {func(*Snapshot) {}, "freeze:1,suspend:1,stop", "1 frozen, 1 suspended, 1 stopped"},
		"no depth that costs too much":          {func(s *Snapshot) { s.Prices.Frozen, s.Prices.Suspended = price(1.2), price(1.2) }, "stop", "3 stopped: none at depth freeze, and the last one is worth 90% of a running cluster, for 1.2 in place of 0.1"},
		"without prices, all that are worth it": {func(s *Snapshot) { s.Prices = sizing.Prices{} }, "freeze:3,stop", "3 frozen: "},
		"a depth that was refused":              {func(s *Snapshot) { s.Refused.Freeze, s.Prices.Suspended = true, price(0.6) }, "stop", "3 stopped: the platform has put no further cluster to sleep at depth freeze"},
		"what sleeps at a depth stays there":    {func(s *Snapshot) { s.Refused.Freeze, s.Sleeping.Freeze = true, 1 }, "freeze:1,suspend:1,stop", "no further cluster"},
		"a resume that takes as long":           {func(s *Snapshot) { s.Durations.Shallow.Freeze, s.Worth.Freeze = s.Durations.Resume, nil }, "suspend:2,stop", "a resume from freeze takes 45s, and one from stop 45s"},
		"one depth is measured at a time": {func(s *Snapshot) {
			s.Durations.Shallow, s.Worth = sizing.PerShallowDepth[time.Duration]{}, sizing.PerShallowDepth[[]float64]{}
		}, "freeze:1,stop", "1 frozen, 2 stopped: one sleeps at depth freeze to measure a resume from there"},
		"also if all places are taken":               {func(s *Snapshot) { s.Durations.Shallow.Freeze, s.Worth.Freeze, s.Worth.Suspend[2] = 0, nil, 0.1 }, "freeze:1,suspend:2,stop", "1 frozen, 2 suspended: one sleeps at depth freeze to measure"},
		"none to measure that costs as much as runs": {func(s *Snapshot) { s.Durations.Shallow.Freeze, s.Worth.Freeze, s.Prices.Frozen = 0, nil, price(1.2) }, "suspend:2,stop", "2 suspended, 1 stopped: a resume from suspend"},
		"no spares": {func(s *Snapshot) { s.Standby = 0 }, "stop", "0 stopped"},
		"while nothing is known, the ladder in effect": {func(s *Snapshot) {
			s.Known, s.Worth, s.Current = false, sizing.PerShallowDepth[[]float64]{}, &Counts{Suspend: 2}
		}, "suspend:2,stop", "too little is known about the demand"},
		"claims that may wait": {func(s *Snapshot) { s.Worth = sizing.PerShallowDepth[[]float64]{} }, "stop", "claims may wait for a resume from stop"},
	} {
		t.Run(name, func(t *testing.T) {
			s := given()
			c.change(&s)
			p := Decide(s)
			if p.String() != c.want || !strings.Contains(p.Reason, c.says) {
				t.Errorf("%s because %q, want %s because %q", p, p.Reason, c.want, c.says)
			}
		})
	}
}

// randomSnapshot has worths that fall, as those of sizing.SleepWorth do.
func randomSnapshot(r *rand.Rand) Snapshot {
	s := Snapshot{
		Standby: r.IntN(8), Known: r.IntN(8) > 0, Prices: sizing.Prices{Running: 0.1 + r.Float64(), Hibernating: r.Float64() / 5},
		Durations: sizing.Durations{Resume: time.Duration(1+r.IntN(600)) * time.Second},
		Sleeping:  Counts{Freeze: r.IntN(3), Suspend: r.IntN(3)},
		Refused:   sizing.PerShallowDepth[bool]{Freeze: r.IntN(4) == 0, Suspend: r.IntN(4) == 0},
	}
	if r.IntN(6) == 0 {
		s.Prices = sizing.Prices{}
	} else {
		s.Prices.Frozen, s.Prices.Suspended = price(r.Float64()), price(r.Float64())
	}
	if r.IntN(2) == 0 {
		s.Current = &Counts{Freeze: r.IntN(5), Suspend: r.IntN(5)}
	}
	for _, depth := range sizing.ShallowDepths() {
		if r.IntN(4) == 0 {
			continue
		}
		wake := time.Duration(1+r.IntN(900)) * time.Second
		*s.Durations.Shallow.Of(depth) = wake
		for v := r.Float64(); s.Known && wake < s.Durations.Resume && len(*s.Worth.Of(depth)) < s.Standby; v *= r.Float64() {
			*s.Worth.Of(depth) = append(*s.Worth.Of(depth), v)
		}
	}
	return s
}

func TestRandomPools(t *testing.T) {
	r := newRand(t)
	for range 20_000 {
		s := randomSnapshot(r)
		p := Decide(s)
		total := p.Counts.Freeze + p.Counts.Suspend
		switch {
		case total > s.Standby || p.Counts.Freeze < 0 || p.Counts.Suspend < 0:
			t.Fatalf("%s has more than %d: %+v", p, s.Standby, s)
		case p.Reason == "":
			t.Fatalf("%s has no reason: %+v", p, s)
		}
		for _, depth := range sizing.ShallowDepths() {
			checkDepth(t, s, p, depth)
		}
		again := s
		again.Current = &p.Counts
		if q := Decide(again); q.Counts != p.Counts {
			t.Fatalf("%s becomes %s without a change: %+v", p, q, s)
		}
		checkDearer(t, r, s)
	}
}

func checkDepth(t *testing.T, s Snapshot, p Plan, depth cloud.Depth) {
	t.Helper()
	n, wake := *p.Counts.Of(depth), *s.Durations.Shallow.Of(depth)
	if *s.Refused.Of(depth) && n > *s.Sleeping.Of(depth) {
		t.Fatalf("%s, and the platform has refused depth %s: %+v", p, depth, s)
	}
	if s.Known && wake == 0 && n > 1 {
		t.Fatalf("%s, and no resume from %s was measured: %+v", p, depth, s)
	}
	if s.Known && wake >= s.Durations.Resume && n > 0 {
		t.Fatalf("%s, and a resume from %s is no shorter: %+v", p, depth, s)
	}
}

// checkDearer raises the prices of both shallow depths by the same amount: no spare sleeps less deeply then.
func checkDearer(t *testing.T, r *rand.Rand, s Snapshot) {
	t.Helper()
	isExploring := s.Durations.Shallow.Freeze == 0 || s.Durations.Shallow.Suspend == 0
	if s.Prices.Frozen == nil || !s.Known || isExploring {
		return
	}
	more := r.Float64()
	dearer := s
	dearer.Current = nil
	plain := Decide(dearer)
	dearer.Prices.Frozen, dearer.Prices.Suspended = price(*s.Prices.Frozen+more), price(*s.Prices.Suspended+more)
	q := Decide(dearer)
	if q.Counts.Freeze > plain.Counts.Freeze || q.Counts.Freeze+q.Counts.Suspend > plain.Counts.Freeze+plain.Counts.Suspend {
		t.Fatalf("%s becomes %s if shallow sleep costs %g more: %+v", plain, q, more, s)
	}
}
