package power

import (
	"math/rand/v2"
	"testing"
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
)

func TestHibernateAfterCountsFromRunningNotFromTheResume(t *testing.T) {
	s := begin(t, claimed(90*time.Hour), came("Hibernating", time.Hour), machines("m0:Stopped w0:Stopped"), limits(Limits{HibernateAfter: time.Minute}))
	s.pass("keep, StartingMachines, Resuming")
	s.pass("start, StartingMachines, Resuming")
	s.wait(30*time.Minute).pass("keep, WaitingForNodes, Resuming", machines("m0:Running w0:Running"), silent)
	s.wait(30*time.Minute).pass("keep, Running, Running", ready("m0 w0"))
	d := s.wait(59 * time.Second).pass("keep, Running, Running")
	if d.Next > time.Second {
		t.Errorf("the next pass is in %s, one second before hibernateAfter passes", d.Next)
	}
	s.wait(time.Second).pass("hibernate, Running, Running")
}

func TestAResumeThatTimesOutCountsForHibernateAfterFromThen(t *testing.T) {
	for name, tc := range map[string]struct {
		limits Limits
		ends   time.Duration
	}{
		"its own timeout":                   {Limits{ToRunning: 20 * time.Minute, HibernateAfter: 8 * time.Hour}, 20*time.Minute + 8*time.Hour},
		"without one, after two hours":      {Limits{HibernateAfter: 8 * time.Hour}, 10 * time.Hour},
		"and the failure is reported":       {Limits{ToRunning: 20 * time.Minute, HibernateAfter: time.Second}, 20*time.Minute + time.Second},
		"whatever is longer than two hours": {Limits{ToRunning: 5 * time.Hour, HibernateAfter: time.Second}, 5*time.Hour + time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t, going("Running", 0), silent, limits(tc.limits))
			reported := hivev1.ReasonResuming
			for {
				d := Decide(s.fresh(), s.now)
				if d.Action == Hibernate {
					break
				}
				s.Record, reported = d.Record, d.Hibernating.Reason
				s.wait(d.Next)
			}
			if ran := s.now.Sub(now); ran != tc.ends {
				t.Errorf("hibernates after %s, want %s", ran, tc.ends)
			}
			if tc.limits.ToRunning > 0 && reported != hivev1.ReasonFailedToStart {
				t.Errorf("hibernates with reason %s", reported)
			}
		})
	}
}

// A user wakes a claimed cluster. However short hibernateAfter is and however long
// the resume takes, the cluster reaches Running, users are told, and it sleeps again
// when hibernateAfter has passed since.
func TestHibernateAfterNeverCutsAResumeShort(t *testing.T) {
	first := rand.Uint64()
	for i := range uint64(500) {
		seed := first + i
		w := newWorld(seed)
		for _, m := range w.vms {
			m.state = cloud.Stopped
		}
		w.limits.HibernateAfter = []time.Duration{1, time.Second, time.Minute, time.Hour}[w.IntN(4)] * time.Duration(1+w.IntN(90))
		if w.IntN(2) == 0 {
			w.limits.ToRunning = time.Hour
		}
		slow := time.Duration(w.IntN(50)) * time.Minute
		start := w.now
		w.apiDown = true
		var at, running time.Time // of the pass, and of the first one that reported Running
		for w.wanted == hivev1.PowerRunning && w.now.Sub(start) < 200*time.Hour {
			w.apiDown = w.now.Sub(start) < slow
			at = w.now
			if d := w.pass(t, true); running.IsZero() && d.PowerState == hivev1.StatusRunning && w.record == d.Record {
				running = at
			}
		}
		switch ran := at.Sub(running); {
		case running.IsZero():
			t.Errorf("hibernateAfter %s: the cluster never ran", w.limits.HibernateAfter)
		case w.wanted == hivev1.PowerRunning:
			t.Errorf("hibernateAfter %s: the cluster runs on for %s", w.limits.HibernateAfter, ran)
		case ran > max(w.limits.HibernateAfter, nextPassDelay) || ran < w.limits.HibernateAfter-time.Second:
			t.Errorf("hibernateAfter %s: the cluster ran for %s", w.limits.HibernateAfter, ran)
		}
		if t.Failed() {
			for _, line := range w.history {
				t.Log(line)
			}
			t.Fatalf("seed %d", seed)
		}
	}
}
