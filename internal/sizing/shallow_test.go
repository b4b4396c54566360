package sizing

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// withSleepers returns a snapshot of a Monday morning after weeks of office hours, with resumes that were measured from
// all depths.
func withSleepers(r *rand.Rand) Snapshot {
	s := given()
	s.Durations.Shallow = PerShallowDepth[time.Duration]{Freeze: 2 * time.Second, Suspend: time.Minute}
	l := NewLearned(monday.AddDate(0, 0, -28), "")
	l.SetLeads(s.Objective, s.Durations)
	for at := l.At; at.Before(monday); at = at.Add(time.Minute) {
		l.Advance(at)
		for range poisson(r, officeHours(at)/60) {
			l.AddClaim(at, true)
		}
	}
	l.SkipUnobserved(monday.Add(9*time.Hour + 30*time.Minute))
	s.Learned, s.Now, s.Current = l, l.At, Setting{}
	return s
}

func TestClustersThatSleepLessDeeplyReplaceRunningOnes(t *testing.T) {
	s := withSleepers(newRand(t))
	alone := Decide(s).Running
	s.Sleeping.Freeze = 1
	with := Decide(s).Running
	if with.Count != alone.Count-1 || !strings.Contains(with.Reason, "a resume takes 5 min, that of 1 at depth freeze 2 s: ") {
		t.Errorf("with one frozen: %+v, without: %+v", with, alone)
	}
	s.Sleeping.Freeze = 50
	if many := Decide(s).Running; many.Count < 1 || many.Count > 2 {
		t.Errorf("with 50 frozen: %+v, want what serves claims within seconds", many)
	}
	s.Objective.MaxWait = 10 * time.Second
	s.Learned.SetLeads(s.Objective, s.Durations)
	if waits := Decide(s).Running; waits.Count != 0 {
		t.Errorf("with 50 frozen and claims that may wait for one: %+v", waits)
	}
}

// Whatever sleeps, the running count is at least 0 and at most what it is without; it falls by at most one for each
// cluster, and depths of which nothing is known, or whose resume takes as long, change nothing. Claims that wait take
// sleepers first.
func TestRandomSleepers(t *testing.T) {
	r := newRand(t)
	s := withSleepers(r)
	alone := Decide(s).Running.Count
	for range 300 {
		s.Sleeping = PerShallowDepth[int]{Freeze: r.IntN(5), Suspend: r.IntN(5)}
		n, total := Decide(s).Running.Count, s.Sleeping.Freeze+s.Sleeping.Suspend
		if n > alone || n < max(alone-total, 0) {
			t.Fatalf("%+v: %d running, %d without", s.Sleeping, n, alone)
		}
		more := s
		more.Sleeping.Freeze++
		if m := Decide(more).Running.Count; m > n || m < n-1 {
			t.Fatalf("%+v: %d running, and %d with one more", s.Sleeping, n, m)
		}
		unknown := s
		unknown.Durations.Shallow = PerShallowDepth[time.Duration]{Suspend: s.Durations.Resume}
		if m := Decide(unknown).Running.Count; m != alone {
			t.Fatalf("%+v: %d running although no resume is shorter, %d without", s.Sleeping, m, alone)
		}
		waiting := s
		waiting.Waiting = total
		if m := Decide(waiting).Running.Count; m != alone {
			t.Fatalf("%+v: %d running while claims take all of them, %d without", s.Sleeping, m, alone)
		}
	}
}

// The worth of a further cluster at a shallow depth is a share, and falls. A cluster is worth more at a depth from
// which it resumes sooner.
func TestTheWorthOfSleep(t *testing.T) {
	s := withSleepers(newRand(t))
	worth, ok := SleepWorth(s, 20)
	if !ok || len(worth.Freeze) != 20 || len(worth.Suspend) != 20 {
		t.Fatalf("%t, %+v", ok, worth)
	}
	last := 1.0
	for i, w := range worth.Freeze {
		if w < 0 || w > last+1e-9 || worth.Suspend[i] > w+1e-9 {
			t.Errorf("cluster %d is worth %g frozen and %g suspended; the one before %g", i+1, w, worth.Suspend[i], last)
		}
		last = w
	}
	if worth.Freeze[0] < 0.3 || worth.Freeze[19] > 0.05 {
		t.Errorf("the first is worth %g, the last %g", worth.Freeze[0], worth.Freeze[19])
	}
	slow := s
	slow.Durations.Shallow.Freeze = slow.Durations.Resume
	if worth, ok := SleepWorth(slow, 3); !ok || worth.Freeze != nil {
		t.Errorf("a resume that takes as long: %+v", worth)
	}
	s.Objective.MaxWait = s.Durations.Resume
	s.Learned.SetLeads(s.Objective, s.Durations)
	if worth, ok := SleepWorth(s, 3); !ok || worth.Freeze != nil || worth.Suspend != nil {
		t.Errorf("claims may wait for a resume from stop: %+v", worth)
	}
	s.Learned = nil
	if _, ok := SleepWorth(s, 3); ok {
		t.Error("nothing is known")
	}
}
