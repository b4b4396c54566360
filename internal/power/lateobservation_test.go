package power

import (
	"testing"
	"time"
)

// What is wanted during the install is acted on after it: once, and as it was
// wanted last.
func TestPowerWantedDuringTheInstallWaitsForItsEnd(t *testing.T) {
	for name, c := range map[string]struct {
		flips []with
		want  string
	}{
		"to sleep":        {[]with{hibernate}, "keep, Stopping, Stopping"},
		"to sleep and up": {[]with{hibernate, awaken}, "keep, Running, Running"},
		"and down again":  {[]with{hibernate, awaken, hibernate}, "keep, Stopping, Stopping"},
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t, anew, installing, limits(Limits{ToRunning: time.Minute, ToHibernating: time.Minute, HibernateAfter: time.Hour}))
			for _, flip := range c.flips {
				d := s.wait(10*time.Minute).pass("keep, , Initialized", flip)
				if d.Record != nil || d.Next != 0 {
					t.Errorf("a flip during the install leaves a trace: %s", d)
				}
			}
			s.pass(c.want, func(s *Snapshot) { s.Installed, s.InstalledAt = true, now.Add(30*time.Minute) })
		})
	}
}

// Times are stored in whole seconds. What is told to start in the very second of
// the install is not what starts with the install.
func TestTheSecondOfTheInstallIsLikeAnyOther(t *testing.T) {
	at := func(s *Snapshot) { s.InstalledAt = now }
	sleep := begin(t, anew, at, hibernate)
	sleep.pass("keep, Stopping, Stopping")
	sleep.pass("stop, Stopping, Stopping")

	wake := begin(t, anew, at, machines("m0:Running w0:Stopped"))
	wake.pass("keep, StartingMachines, Resuming")
	wake.pass("start, StartingMachines, Resuming")
	wake.pass("keep, WaitingForNodes, Resuming", machines("m0:Running w0:Running"))
	wake.wait(time.Minute).pass("keep, Running, Running")
}

// A hub that takes clusters over finds no records: what is in the middle of a
// resume, or has a node that is busy for a moment, has not timed out since its
// install. See also Hive's D4.
func TestAClusterThatNobodyWatchedHasNotTimedOut(t *testing.T) {
	for name, change := range map[string]with{
		"its API boots":        silent,
		"a node is away":       unready,
		"its machines start":   machines("m0:Running w0:Starting"),
		"a machine is stopped": machines("m0:Running w0:Stopped"),
	} {
		t.Run(name, func(t *testing.T) {
			s := seen(anew, change, limits(Limits{ToRunning: 20 * time.Minute, HibernateAfter: 8 * time.Hour}))
			d := Decide(s, now)
			if d.Hibernating.Reason != "Resuming" || !d.Record.StartedAt.Time.Equal(now) || !d.Record.Deadline.Time.Equal(now.Add(20*time.Minute)) {
				t.Errorf("%s, record %+v", d, *d.Record)
			}
			s.Record = d.Record
			if d := Decide(s, now.Add(20*time.Minute)); d.Hibernating.Reason != "FailedToStart" {
				t.Errorf("then it never times out: %s", d)
			}
		})
	}
	t.Run("one that lacks nothing has run since its install", func(t *testing.T) {
		if d := Decide(seen(anew, stale), now); brief(d) != "keep, Running, Running, arrived" || !d.Record.StartedAt.Time.Equal(installed) {
			t.Errorf("%s", d)
		}
	})
	t.Run("one that was just installed counts from the install", func(t *testing.T) {
		at := now.Add(-30 * time.Second)
		d := Decide(seen(anew, silent, func(s *Snapshot) { s.InstalledAt = at }), now)
		if !d.Record.StartedAt.Time.Equal(at) {
			t.Errorf("it counts from %s", d.Record.StartedAt)
		}
	})
}
