package simulate

import (
	"math/rand/v2"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/sizing"
)

// nightlyJobs are jobs of 30 claims, at a time of each night, and one claim in five hours otherwise.
func nightlyJobs(days int, at func(r *rand.Rand) time.Duration) Trace {
	r := rand.New(rand.NewPCG(1, 2))
	begin := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	var out Trace
	for d := range days {
		midnight := begin.AddDate(0, 0, d)
		add := func(n int, at time.Duration) {
			for range n {
				out.Claims = append(out.Claims, Claim{Arrived: midnight.Add(at).Unix()})
			}
		}
		job := at(r)
		for hour := 0; hour < 24; hour += 5 {
			if alone := time.Duration(hour)*time.Hour + 17*time.Minute; alone < job {
				add(1, alone)
			}
		}
		add(30, job)
		for hour := 0; hour < 24; hour += 5 {
			if alone := time.Duration(hour)*time.Hour + 17*time.Minute; alone >= job {
				add(1, alone)
			}
		}
	}
	return out
}

// replayJobs replays a trace after the days that are only learned from, on auto and on the best constant count.
func replayJobs(tr Trace, learn int, m sizing.Method) (auto, static Result) {
	o := Options{
		Resume: Duration{Median: 5 * time.Minute}, Install: Duration{Median: 40 * time.Minute},
		From: tr.Begin().AddDate(0, 0, learn), To: tr.End().Add(time.Second),
	}
	a := &Auto{Method: m, Given: sizing.Snapshot{
		Objective: sizing.Objective{Share: 0.99}, Durations: o.Durations(), Static: sizing.Setting{Running: 1, Size: 32},
	}}
	auto = ReplayAny(tr, a, o, 0)
	_, static = BestStatic(tr, o, 0.99, 0)
	return auto, static
}

// Programs create claims at full hours. Clusters that resume before are in time for them, and do not run in all other hours.
func TestClaimsOfAFullHourAreServed(t *testing.T) {
	tr := nightlyJobs(90, func(*rand.Rand) time.Duration { return 2 * time.Hour })
	auto, static := replayJobs(tr, 30, sizing.Method{})
	if auto.Immediate < 0.985 || auto.Hours.RunningIdle > 0.3*static.Hours.RunningIdle {
		t.Errorf("%.2f %% at once, %.0f h idle; a constant count %.0f h", 100*auto.Immediate, auto.Hours.RunningIdle, static.Hours.RunningIdle)
	}
	without, _ := replayJobs(tr, 30, sizing.Method{WithoutNextHour: true})
	if without.Immediate > auto.Immediate || without.Hours.RunningIdle < 2*auto.Hours.RunningIdle {
		t.Errorf("without the next hour %.2f %% at once, %.0f h idle; with it %.2f %%, %.0f h",
			100*without.Immediate, without.Hours.RunningIdle, 100*auto.Immediate, auto.Hours.RunningIdle)
	}
}

// A burst that comes again is learned within days, not at one claim a night.
func TestABatchThatComesAgainIsLearnedSoon(t *testing.T) {
	tr := nightlyJobs(21, func(r *rand.Rand) time.Duration { return time.Duration(60+r.IntN(240)) * time.Minute })
	auto, _ := replayJobs(tr, 14, sizing.Method{})
	without, _ := replayJobs(tr, 14, sizing.Method{WithoutRepeatedBursts: true})
	if auto.Immediate < 0.95 || without.Immediate > 0.9 {
		t.Errorf("in the third week, %.1f %% at once, and %.1f %% without it", 100*auto.Immediate, 100*without.Immediate)
	}
}
