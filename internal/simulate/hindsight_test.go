package simulate

import (
	"math/rand/v2"
	"testing"
	"time"

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
		if got := PlayAny(trace, Static(less), o, 0); got.Within >= 0.9 {
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
	got := PlayAny(trace, Static{Running: 1, Size: 2}, o, 4*time.Minute)
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
	got := PlayAny(trace, Static{Running: 3, Size: 8}, o, 0)
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
	got := PlayAny(trace, Static{Running: 1, Size: 1}, o, 0)
	if want := 7200.0 - 60 + 40*60; got.Waits.Max != want || got.Unserved != 0 {
		t.Errorf("waited %g, want %g: %+v", got.Waits.Max, want, got)
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
		PlayAny(trace, w, span(trace), 0)
		if w.decisions < 1000 {
			t.Errorf("only %d decisions", w.decisions)
		}
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
