package pool_test

import (
	"strings"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/pool"
)

// gated returns the snapshot of a pool that requires gates of version g1.
func gated(size, running int, list, waiting string) pool.Snapshot {
	s := pool.Snapshot{Settings: settings(size, running), Members: members(list), Claims: claims(waiting), Now: noon}
	s.Settings.Gates = "g1"
	for i := range s.Members {
		s.Members[i].MarkUnpassedGates(&s.Settings)
	}
	return s
}

func TestOnlyClustersThatPassTheGatesAreAssigned(t *testing.T) {
	for name, tc := range map[string]struct {
		size, running int
		list, waiting string
		want          string
	}{
		"one that has passed":                                        {1, 1, "a:assignable+passed", "x", "bind x to a"},
		"not one that has not been checked":                          {1, 1, "a:assignable", "x", ""},
		"not one that has passed in an earlier run":                  {1, 1, "a:assignable+passedbefore", "x", ""},
		"not one that has passed other gates":                        {1, 1, "a:assignable+passedother", "x", ""},
		"not one of which a gate fails, but the next":                {2, 2, "a:assignable+red b:assignable+passed", "x", "bind x to b"},
		"one that fails for long is no reason to wait":               {2, 0, "a:assignable+longred b:standby+passedbefore", "x", "start b"},
		"one that fails for a short time is":                         {2, 0, "a:assignable+red b:standby+passedbefore", "x", ""},
		"one that fails for too long is replaced":                    {1, 1, "a:assignable+toored", "", "delete a"},
		"one that has not passed yet does not hibernate":             {1, 0, "a:assignable", "", ""},
		"one that has passed once hibernates":                        {1, 0, "a:assignable+passed", "", "hibernate a"},
		"a failing one does not hibernate: nobody would see it fail": {1, 0, "a:assignable+red", "", ""},
		"an install runs first":                                      {1, 0, "a:installing+sleep", "", "start a"},
		"one that sleeps is not woken to be checked":                 {1, 0, "a:standby", "", ""},
		"a claimed one is not judged":                                {0, 0, "a:claimed=x+toored", "x=a", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := gated(tc.size, tc.running, tc.list, tc.waiting)
			var got []string
			for _, st := range pool.Decide(s).Steps {
				if st.Verb != pool.Create && st.Verb != pool.SetPosition {
					words, _, _ := strings.Cut(st.String(), ":")
					got = append(got, words)
				}
			}
			if text := strings.Join(got, ", "); text != tc.want {
				t.Errorf("got %q, want %q", text, tc.want)
			}
		})
	}
}

func TestWhatAPoolSaysOfGates(t *testing.T) {
	p := pool.Decide(gated(2, 2, "a:assignable+red b:assignable+passed", ""))
	if p.Report.Words != "checking gates of 1" || p.Report.Progress != pool.Advancing {
		t.Errorf("the pool is %s, %q", p.Report.Progress, p.Report.Words)
	}
	if p.Next <= 0 {
		t.Error("nothing wakes the pool when the gate has failed for too long")
	}
	p = pool.Decide(gated(1, 1, "a:assignable+toored", ""))
	if len(p.Steps) == 0 || p.Steps[len(p.Steps)-1].Cause != pool.GateFailed || !strings.Contains(p.String(), "gate web fails") {
		t.Errorf("the plan is %s", p)
	}
}

// Without knowledge of the pool's policy, the records of clusters say which of them wait for gates.
func TestGatesFromRecords(t *testing.T) {
	s := settings(1, 1)
	s.GatesFromRecords = true
	for list, want := range map[string]bool{"a:assignable": false, "a:assignable+passed": false, "a:assignable+passedother": false, "a:assignable+passedbefore": true, "a:assignable+red": true} {
		m := members(list)[0]
		if m.MarkUnpassedGates(&s); m.AwaitsGates != want {
			t.Errorf("%s: awaits gates: %t, want %t", list, m.AwaitsGates, want)
		}
	}
}

// A hub that was away for longer than the timeouts would otherwise delete spares whose Jobs have ended meanwhile.
func TestDeadlinesThatPassedWhileTheHubWasAwayDoNotCountAtOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		watched time.Duration // for how long the process has watched
		short   bool          // the timeout was half a minute
		want    string
	}{
		"just started":                       {0, false, ""},
		"after most of the grace period":     {119 * time.Second, false, ""},
		"after the grace period":             {2 * time.Minute, false, "delete a"},
		"a short timeout is no longer":       {30 * time.Second, true, "delete a"},
		"nor is it shorter":                  {29 * time.Second, true, ""},
		"a process that does not watch them": {-1, false, "delete a"},
	} {
		for what, m := range map[string]func(*pool.Settings) pool.Member{
			"a gate": func(s *pool.Settings) pool.Member {
				m := members("a:assignable+toored")[0]
				s.Gates = "g1"
				if tc.short {
					m.GatesDeadline = m.GatesFailingSince.Add(30 * time.Second)
				}
				m.MarkUnpassedGates(s)
				return m
			},
			"a step": func(s *pool.Settings) pool.Member {
				m := members("a:assignable+toostepping")[0]
				s.Steps = "s1"
				if tc.short {
					m.StepDeadline = m.StepSince.Add(30 * time.Second)
				}
				m.MarkUntakenSteps(s)
				return m
			},
		} {
			s := settings(1, 1)
			if tc.watched >= 0 {
				s.WatchedSince = noon.Add(-tc.watched)
			}
			snapshot := pool.Snapshot{Settings: s, Now: noon}
			snapshot.Members = []pool.Member{m(&snapshot.Settings)}
			if got := powerAndDeletions(snapshot); got != tc.want {
				t.Errorf("%s, %s: got %q, want %q", name, what, got, tc.want)
			}
			if p := pool.Decide(snapshot); tc.want == "" && (p.Next <= 0 || p.Next > 2*time.Minute) {
				t.Errorf("%s, %s: the pool looks again in %s", name, what, p.Next)
			}
		}
	}
}
