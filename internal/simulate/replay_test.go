package simulate

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"hotspare.io/hotspare/internal/sizing"
)

// jumpy changes its setting at random.
type jumpy struct{ *rand.Rand }

func (j jumpy) Begin(time.Time) sizing.Setting { return j.setting() }
func (j jumpy) Decide(s Seen) sizing.Setting   { return j.setting() }
func (j jumpy) setting() sizing.Setting {
	size := j.IntN(8)
	return sizing.Setting{Running: j.IntN(size + 1), Size: size}
}

func randomTrace(r *rand.Rand, n int, every float64) Trace {
	var t Trace
	at := float64(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Unix())
	for range n {
		at += r.ExpFloat64() * every
		for range 1 + r.IntN(3)/2*r.IntN(4) {
			t.Claims = append(t.Claims, Claim{Arrived: int64(at), Held: r.Int64N(7200)})
		}
	}
	return t
}

func span(t Trace) Options {
	return Options{
		Resume: Duration{Median: 5 * time.Minute}, Install: Duration{Median: 40 * time.Minute},
		From: t.Begin(), To: t.End().Add(time.Hour), Prices: sizing.Prices{Running: 1, Hibernating: 0.1},
	}
}

func TestTheFastWayTakesTheStepsOfThePoolsDecider(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for round := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, round))
		trace := randomTrace(r, 60, 60+600*r.Float64())
		o := span(trace)
		o.Resume.Median = time.Duration(1+r.IntN(900)) * time.Second
		o.Install.Median = time.Duration(1+r.IntN(3600)) * time.Second
		o.Samples = 50
		policies := func() Policy { return jumpy{rand.New(rand.NewPCG(seed, round+1000))} }
		if round%3 == 0 {
			policies = func() Policy { return Static{Running: int(round) % 4, Size: int(round) % 7} }
		}
		want, got := Replay(trace, policies(), o, 0), ReplayFast(trace, policies(), o, 0)
		if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-9, 0)); diff != "" {
			t.Fatalf("seed %d round %d: the decider and the fast way differ:\n%s", seed, round, diff)
		}
	}
}
