package sizing

import (
	"strings"
	"testing"
	"time"
)

// afterBurst plays three weeks of one claim in ten minutes, one burst of sixty claims in a minute, and what
// follows, on a pool whose clusters take ten minutes to resume. It calls f with the plan of each minute since
// the burst.
func afterBurst(m Method, days int, f func(since time.Duration, p Plan)) {
	s := given()
	s.Durations.Resume = 10 * time.Minute
	l := NewLearned(monday.AddDate(0, 0, -21), "")
	l.Method = m
	l.SetLeads(s.Objective, s.Durations)
	s.Learned, s.Current = l, Setting{}
	end := monday.AddDate(0, 0, days)
	for at, n := l.At, 0; at.Before(end); at, n = at.Add(time.Minute), n+1 {
		l.Advance(at)
		if n%10 == 3 {
			l.AddClaim(at, true)
		}
		if at.Equal(monday) {
			for range 60 {
				l.AddClaim(at, false)
			}
		}
		if at.Before(monday) {
			continue
		}
		s.Now = at
		p := Decide(s)
		f(at.Sub(monday), p)
		s.Current = p.Setting()
	}
}

func TestOneBurstDoesNotKeepClustersRunning(t *testing.T) {
	most, last := 0, Plan{}
	afterBurst(Method{}, 2, func(since time.Duration, p Plan) {
		if p.Running.Count > most {
			most = p.Running.Count
			t.Logf("%s: %s", since, p.Running.Reason)
		}
		last = p
	})
	t.Logf("2 days later: %s; %s", last.Running.Reason, last.Size.Reason)
	if most < 4 || most > 20 {
		t.Errorf("%d run after sixty claims in a minute", most)
	}
	if last.Running.Count > 4 {
		t.Errorf("two days later: %+v", last.Running)
	}
	highest, without := 0, 0
	afterBurst(Method{WithoutBurstLimit: true}, 2, func(_ time.Duration, p Plan) {
		highest, without = max(highest, p.Running.Count), p.Running.Count
	})
	t.Logf("without the limit: %d at most, %d two days later", highest, without)
	if without < 20 {
		t.Errorf("without the limit %d run two days later: this test would not see a fault", without)
	}
}

// Ten claims come at once at a random minute of each half day. The minutes of two bursts are an hour apart at
// least: twenty claims at once would be another demand. Such bursts are usual, and the limit of one burst
// takes nothing away from them.
func TestBurstsThatComeAgainCount(t *testing.T) {
	r := newRand(t)
	s := given()
	start := monday.AddDate(0, 0, -60)
	limited, unlimited := NewLearned(start, ""), NewLearned(start, "")
	unlimited.Method.WithoutBurstLimit = true
	both := []*Learned{limited, unlimited}
	for _, l := range both {
		l.SetLeads(s.Objective, s.Durations)
	}
	burst := 0
	for at, minute := start, 0; at.Before(monday); at, minute = at.Add(time.Minute), minute+1 {
		n := poisson(r, 4.0/60)
		if minute%(12*60) == 0 {
			burst = minute + r.IntN(11*60)
		}
		if minute == burst {
			n += 10
		}
		for _, l := range both {
			l.Advance(at)
			for range n {
				l.AddClaim(at, true)
			}
		}
	}
	for _, l := range both {
		l.Advance(monday)
	}
	with, without := runningAt(limited, monday), runningAt(unlimited, monday)
	if with.Count < 2 || with.Count > 25 || // 5 to 18 with 7,900 seeds
		!strings.Contains(with.Reason, "of them because claims have exceeded the forecast before") {
		t.Errorf("ten claims at once twice a day: %+v", with)
	}
	if with.Count < without.Count-4 { // two less in one of 2,000
		t.Errorf("ten claims at once twice a day: %+v, and without the limit of one burst %+v", with, without)
	}
}

func TestTheReasonSaysHowManyRunForMoreThanTheForecast(t *testing.T) {
	for _, c := range []struct {
		n           int
		mean, share float64
		want        string
	}{
		{2, 0.2, 0.99, ""},
		{10, 4, 0.99, ""},
		{50, 3.7, 0.99, ", 40 of them because claims have exceeded the forecast before"},
		{3, 0, 0.99, ", 2 of them because claims have exceeded the forecast before"},
		{0, 0, 0.99, ""},
	} {
		if got := describeExtra(c.n, c.mean, c.share); got != c.want {
			t.Errorf("%d for %g: %q, want %q", c.n, c.mean, got, c.want)
		}
	}
	r := newRand(t)
	for range 20 {
		mean := 8 * r.Float64()
		n := countForRandom(mean, 0.99)
		missed, less := 0, 0
		const draws = 20_000
		for range draws {
			switch k := poisson(r, mean); {
			case k >= n:
				missed++
				fallthrough
			case k >= n-2:
				less++
			}
		}
		if missed > draws/100+60 || n > 2 && less < draws/100-60 {
			t.Errorf("mean %g: %d serve all but %d of %d", mean, n, missed, draws)
		}
	}
}
