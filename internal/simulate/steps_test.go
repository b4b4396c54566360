package simulate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/sizing"
)

// A step of a demand is a rate for some time.
type step struct {
	perHour float64
	lasts   time.Duration
}

// generate returns random claims at the rates.
func generate(r *rand.Rand, begin time.Time, steps []step) Trace {
	var out Trace
	for _, s := range steps {
		end := begin.Add(s.lasts)
		for at := begin; ; {
			at = at.Add(time.Duration(r.ExpFloat64() / s.perHour * float64(time.Hour)))
			if !at.Before(end) {
				break
			}
			out.Claims = append(out.Claims, Claim{Arrived: at.Unix()})
		}
		begin = end
	}
	return out
}

// poissonQuantile returns the smallest number that a number of claims with a mean exceeds with at most a
// probability.
func poissonQuantile(mean, exceeds float64) int {
	p := math.Exp(-mean)
	sum, n := p, 0
	for ; 1-sum > exceeds; n++ {
		p *= mean / float64(n+1)
		sum += p
	}
	return n
}

// decision is what auto decided at a moment, with its reason.
type decision struct {
	at     time.Time
	plan   sizing.Plan
	before int
}

// narrated notes each decision of auto with its reason.
type narrated struct {
	Auto
	t         *testing.T
	decisions []decision
}

func (n *narrated) Decide(s Seen) sizing.Setting {
	in := n.Given
	next := n.Auto.Decide(s)
	in.Now, in.Learned, in.Waiting, in.Limits.Budget.Spent = s.Now, n.learned, s.Waiting, s.Spent
	p := sizing.Decide(in)
	if p.Setting() != next {
		n.t.Fatalf("%s: %+v with reasons, %+v without", s.Now, p.Setting(), next)
	}
	n.decisions = append(n.decisions, decision{s.Now, p, in.Current.Running})
	return next
}

// Demand rises twice and falls twice. Three hours after each step, the counts are those that random claims at the new rate
// explain, and each decision says why. The counts vary more than the claims: without the factors, one run in 350 failed.
func TestCountsFollowADemandThatStepsUpAndDown(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	const settle, half = 3 * time.Hour, 12 * time.Hour
	steps := []step{{6, 21 * 24 * time.Hour}, {18, half}, {48, half}, {18, half}, {6, 2 * half}}
	begin := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	trace := generate(rand.New(rand.NewPCG(seed, 1)), begin, steps)
	const resume = 10 * time.Minute
	n := &narrated{t: t, Auto: Auto{Given: sizing.Snapshot{
		Static: sizing.Setting{Running: 3, Size: 20}, Objective: sizing.Objective{Share: 0.99},
		Durations: sizing.Durations{Resume: resume, Install: 40 * time.Minute},
	}}}
	o := span(trace)
	o.Resume.Median = resume
	ReplayAny(trace, n, o, 0)
	before, average := steps[0], 0.0
	for at, i := begin, 0; i < len(steps); i++ {
		s := steps[i]
		from, to := at.Add(settle), at.Add(s.lasts)
		if i == 0 {
			from = at.AddDate(0, 0, 14) // what was learned is stable
		}
		got := n.countsBetween(from, to)
		t.Logf("%g an hour: %d to %d, %.1f on average", s.perHour, got.least, got.most, got.average)
		mean := s.perHour * resume.Hours()
		least, most := poissonQuantile(mean, 0.5), poissonQuantile(max(s.perHour, before.perHour)*resume.Hours(), 1e-9)*3/2
		if got.least < least || got.most > most || got.average > 1.3*float64(poissonQuantile(mean, 1e-7)) {
			t.Errorf("%g an hour after %g: %+v, want %d to %d", s.perHour, before.perHour, got, least, most)
		}
		if i > 0 && (got.average > average) != (s.perHour > before.perHour) {
			t.Errorf("from %g to %g an hour: %.1f run on average, and then %.1f", before.perHour, s.perHour, average, got.average)
		}
		before, average, at = s, got.average, to
	}
	n.checkReasons()
}

// counts are the running counts of some time.
type counts struct {
	least, most int
	average     float64
}

func (n *narrated) countsBetween(from, to time.Time) counts {
	c, decisions := counts{least: math.MaxInt}, 0
	for _, d := range n.decisions {
		if d.at.Before(from) || !d.at.Before(to) {
			continue
		}
		running := d.plan.Running.Count
		c.least, c.most = min(c.least, running), max(c.most, running)
		c.average += float64(running)
		decisions++
	}
	c.average /= float64(decisions)
	return c
}

// checkReasons checks that each change says why.
func (n *narrated) checkReasons() {
	up, down := 0, 0
	for _, d := range n.decisions {
		r := d.plan.Running
		want := ""
		switch {
		case r.Count > d.before && d.plan.Computed:
			up++
			want = fmt.Sprintf("an hour expected, a resume takes 10 min: %d running", r.Count)
		case r.Count < d.before && d.plan.Computed:
			down++
			want = fmt.Sprintf(", to %d", r.Count)
			if strings.Contains(r.Reason, fmt.Sprintf(": %d running", r.Count)) {
				want = "" // no more than one step is to be taken
			}
		}
		if !strings.Contains(r.Reason, want) {
			n.t.Errorf("%s: from %d to %d because %q, want %q", d.at, d.before, r.Count, r.Reason, want)
		}
	}
	if up < 10 || down < 10 {
		n.t.Errorf("%d steps up and %d down", up, down)
	}
}
