package simulate

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/pool"
	"hotspare.io/hotspare/internal/sizing"
)

func TestTheBestStaticSettingIsTheSmallestThatServes(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for range 10 {
		trace := randomTrace(r, 300, 120+900*r.Float64())
		o := span(trace)
		s, best := BestStatic(trace, o, 0.9, 0)
		if best.Within < 0.9 {
			t.Errorf("%+v serves %g", s, best.Within)
		}
		if s.Running == 0 {
			continue
		}
		less := s
		less.Running--
		if got := ReplayAny(trace, Static(less), o, 0); got.Within >= 0.9 {
			t.Errorf("%d serve %g as well, and %d were chosen", less.Running, got.Within, s.Running)
		}
		_, weekly := BestWeekly(trace, o, 0.9, 0, time.UTC)
		if weekly.Within < 0.9 || weekly.Hours.RunningIdle > 1.1*best.Hours.RunningIdle {
			t.Errorf("weekly serves %g with %g idle hours, static %g with %g", weekly.Within, weekly.Hours.RunningIdle, best.Within, best.Hours.RunningIdle)
		}
	}
}

func TestWhatIsCounted(t *testing.T) {
	at := time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC).Unix()
	trace := Trace{Claims: []Claim{{Arrived: at}, {Arrived: at + 60}, {Arrived: at + 3600}}}
	o := span(trace)
	o.To = trace.Begin().Add(2 * time.Hour)
	got := ReplayAny(trace, Static{Running: 1, Size: 2}, o, 4*time.Minute)
	// The second claim waits for the resume that the first one began; the install that replaces the
	// first cluster is done by the time of the third.
	want := Waits{P50: 0, P90: 240, P99: 240, Max: 240}
	if got.Claims != 3 || got.Immediate != 2.0/3 || got.Within != 1 || got.Waits != want || got.Installs != 3 || got.Unserved != 0 {
		t.Errorf("%+v", got)
	}
	h := got.Hours
	if sum := h.RunningIdle + h.Resuming + h.Hibernating + h.Installing; sum < 4 || sum > 4.2 {
		t.Errorf("%g cluster-hours in two hours of a pool of two: %+v", sum, h)
	}
	if cost := h.RunningIdle + h.Resuming + h.Installing + 0.1*h.Hibernating; cost != got.Cost {
		t.Errorf("cost %g, want %g", got.Cost, cost)
	}
}

func TestAFailedResumeIsReplaced(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	trace := randomTrace(r, 200, 1200)
	o := span(trace)
	o.FailedResumes, o.FailedInstalls, o.Seed = 0.2, 0.1, 3
	got := ReplayAny(trace, Static{Running: 3, Size: 8}, o, 0)
	if got.Unserved > 0 || got.Immediate < 0.5 || got.Installs <= got.Claims {
		t.Errorf("%+v", got)
	}
}

func TestMaxSizeMakesClaimsWaitForReleases(t *testing.T) {
	at := time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC).Unix()
	trace := Trace{Claims: []Claim{{Arrived: at, Held: 7200}, {Arrived: at + 60, Held: 60}}}
	o, one := span(trace), 1
	o.MaxSize = &one
	o.To = trace.Begin().Add(5 * time.Hour)
	got := ReplayAny(trace, Static{Running: 1, Size: 1}, o, 0)
	if want := 7200.0 - 60 + 40*60; got.Waits.Max != want || got.Unserved != 0 {
		t.Errorf("waited %g, want %g: %+v", got.Waits.Max, want, got)
	}
}

// A cluster that sleeps at a shallow depth serves the next claim soon: auto runs fewer clusters, and as many claims get
// one at once.
func TestALadderOfDepthsSavesRunningClusters(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 0))
	var trace Trace
	for at, i := float64(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Unix()), 0; i < 3000; i++ {
		at += r.ExpFloat64() * 900 // a burst within two seconds would need clusters that run
		trace.Claims = append(trace.Claims, Claim{Arrived: int64(at)})
	}
	replay := func(text string) Result {
		o := span(trace)
		frozen := 0.4
		o.Prices.Frozen = &frozen
		o.From, o.ResumeFrom = trace.Begin().AddDate(0, 0, 14), map[string]Duration{pool.DepthFreeze: {Median: 2 * time.Second}}
		var err error
		if o.Sleep, err = pool.ParseLadder(text); err != nil {
			t.Fatal(err)
		}
		a := &Auto{Given: sizing.Snapshot{Static: sizing.Setting{Running: 4, Size: 12}, Objective: sizing.Objective{Share: 0.98}, Durations: o.Durations()}}
		return Replay(trace, a, o, 0)
	}
	with, without := replay("freeze:4,stop"), replay("stop")
	if with.Hours.RunningIdle > 0.8*without.Hours.RunningIdle || with.Immediate < 0.97 {
		t.Errorf("freeze:4,stop: %.0f idle hours, %.4f at once; stop: %.0f, %.4f", with.Hours.RunningIdle, with.Immediate, without.Hours.RunningIdle, without.Immediate)
	}
	h := with.Hours
	if want := h.RunningIdle + h.Resuming + h.Installing + 0.1*(h.Hibernating-h.Shallow.Freeze) + 0.4*h.Shallow.Freeze; math.Abs(with.Cost-want) > 1e-6*want {
		t.Errorf("it costs %g, want %g", with.Cost, want)
	}
	if h.Shallow.Freeze <= 0 || h.Shallow.Freeze > h.Hibernating || h.Shallow.Suspend != 0 || without.Hours.Shallow.Freeze != 0 {
		t.Errorf("%+v, and without a ladder %+v", h, without.Hours)
	}
}

// Auto never asks for more than one step down a minute, and keeps the owner's limits, on any trace.
func TestAutoKeepsItsLimitsOnRandomTraces(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for round := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, round))
		trace := randomTrace(r, 3000, 60+1800*r.Float64())
		w := &watched{t: t, Auto: Auto{Given: sizing.Snapshot{
			Static: sizing.Setting{Running: 2, Size: 4}, Objective: sizing.Objective{Share: 0.9 + 0.099*r.Float64()},
			Durations: sizing.Durations{Resume: 5 * time.Minute, Install: 40 * time.Minute},
			Limits:    sizing.Limits{Running: sizing.Range{Min: r.IntN(2), Max: 5 + r.IntN(5)}, Size: sizing.Range{Min: 2, Max: 20}},
		}}}
		ReplayAny(trace, w, span(trace), 0)
		if w.decisions < 1000 {
			t.Errorf("only %d decisions", w.decisions)
		}
	}
}

func TestWhetherAClaimWasInTimeIsLearnedByTheObjective(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 0))
	trace := randomTrace(r, 2000, 1800)
	const maxWait = 6 * time.Minute
	a := &Auto{Given: sizing.Snapshot{
		Static: sizing.Setting{Running: 0, Size: 30}, Objective: sizing.Objective{Share: 0.99, MaxWait: maxWait},
		Durations: sizing.Durations{Resume: 5 * time.Minute, Install: 40 * time.Minute},
		Limits:    sizing.Limits{Size: sizing.Range{Min: 30}},
	}}
	got := ReplayAny(trace, a, span(trace), maxWait)
	if seen := a.Last.Coverage.Seen; got.Immediate > 0.5 || got.Within < 0.95 || seen < 0.95 {
		t.Errorf("%.3f of the claims were served at once, %.3f in time, and the policy has learned %.3f", got.Immediate, got.Within, seen)
	}
}

func TestTheBudgetOfAPolicyIsSpentAtItsPrices(t *testing.T) {
	trace := randomTrace(rand.New(rand.NewPCG(12, 0)), 500, 3600)
	replay := func(limit float64) Result {
		o := span(trace)
		o.Prices = sizing.Prices{}
		a := &Auto{Given: sizing.Snapshot{
			Static: sizing.Setting{Running: 5, Size: 10}, Objective: sizing.Objective{Share: 0.99},
			Limits: sizing.Limits{Prices: sizing.Prices{Running: 1, Hibernating: 0.1}, Budget: sizing.Budget{Set: true, Limit: limit}},
		}}
		return ReplayAny(trace, a, o, 0)
	}
	poor, rich := replay(200).Hours.RunningIdle, replay(1e6).Hours.RunningIdle
	if days := trace.Claims[len(trace.Claims)-1].Arrived - trace.Claims[0].Arrived; poor > 0.2*rich || poor > 260*(float64(days)/86400/28+1) {
		t.Errorf("with a budget of 200 a month at 1 an hour, clusters ran for %.0f hours in %d days; without one for %.0f", poor, days/86400, rich)
	}
}

type watched struct {
	Auto
	t         *testing.T
	last      sizing.Setting
	lowered   time.Time
	decisions int
}

func (w *watched) Decide(s Seen) sizing.Setting {
	next := w.Auto.Decide(s)
	if w.decisions++; w.decisions > 1 && next.Running < w.last.Running {
		if next.Running < w.last.Running-1 || s.Now.Sub(w.lowered) < sizing.DefaultInterval || s.Waiting > 0 {
			w.t.Fatalf("from %+v to %+v at %s, %d wait", w.last, next, s.Now, s.Waiting)
		}
		w.lowered = s.Now
	}
	l := w.Given.Limits
	if next.Running < l.Running.Min || next.Running > l.Running.Max || next.Size > l.Size.Max || next.Running > next.Size {
		w.t.Fatalf("%+v passes %+v", next, l)
	}
	w.last = next
	return next
}

func TestTheSearchFindsTheSmallestFromAnyGuess(t *testing.T) {
	for most := 1; most < 40; most++ {
		for want := range most + 1 {
			for guess := -1; guess <= most+1; guess++ {
				calls := 0
				got := searchFrom(guess, most, func(n int) bool {
					if n < 0 || n >= most {
						t.Fatalf("%d is not below %d", n, most)
					}
					calls++
					return n >= want
				})
				if got != want || guess == want && calls > 2 || calls > 12 {
					t.Fatalf("from %d up to %d: %d after %d calls, want %d", guess, most, got, calls, want)
				}
			}
		}
	}
}

// Claims that never get a cluster are late, whenever they have arrived; those from before the results do not count.
func TestClaimsThatAreNeverServedAreLate(t *testing.T) {
	const year = 365 * 24 * 3600
	var tr Trace
	for i := range int64(100) {
		tr.Claims = append(tr.Claims, Claim{Arrived: i * 3600, Held: year})
	}
	one := 1
	o := Options{Resume: Duration{Median: 5 * time.Minute}, Install: Duration{Median: 40 * time.Minute}, MaxSize: &one, From: time.Unix(90*3600, 0), To: time.Unix(100*3600, 0)}
	got := Replay(tr, Static{Running: 1, Size: 1}, o, 10*time.Minute)
	if got.Claims != 10 || got.Unserved != 10 || got.Within != 0 || got.Immediate != 0 {
		t.Errorf("%d claims, %d of them unserved, %g in time, %g at once", got.Claims, got.Unserved, got.Within, got.Immediate)
	}
}

// A backlog is served after the end, and its waits count, however long it is.
func TestALongBacklogIsServedAfterTheEnd(t *testing.T) {
	var tr Trace
	for range 1200 {
		tr.Claims = append(tr.Claims, Claim{Arrived: 0, Held: 60})
	}
	most := 2
	o := Options{Resume: Duration{Median: time.Minute}, Install: Duration{Median: time.Minute}, MaxSize: &most, From: time.Unix(0, 0), To: time.Unix(1, 0)}
	if got := Replay(tr, Static{Running: 1, Size: 1}, o, 0); got.Unserved != 0 || got.Waits.Max < 3600 {
		t.Errorf("%d of %d claims unserved, the longest wait is %gs", got.Unserved, got.Claims, got.Waits.Max)
	}
}

// If claims may wait as long as a resume takes, no cluster needs to run.
func TestNobodyRunsClustersForClaimsThatMayWait(t *testing.T) {
	var tr Trace
	for i := range int64(500) {
		tr.Claims = append(tr.Claims, Claim{Arrived: i * 7200})
	}
	o := Options{Resume: Duration{Median: 5 * time.Minute}, Install: Duration{Median: 40 * time.Minute}, From: time.Unix(0, 0), To: time.Unix(500*7200, 0)}
	w, got := BestWeekly(tr, o, 0.99, 10*time.Minute, time.UTC)
	if w.Most() != 0 || got.Hours.RunningIdle != 0 || got.Within < 0.99 {
		t.Errorf("up to %d run, %g h idle, %g in time", w.Most(), got.Hours.RunningIdle, got.Within)
	}
}
