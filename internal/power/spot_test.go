package power

import (
	"errors"
	"strings"
	"testing"
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// interruptible returns a spot machine of that age in the state "gone", "joined" or "failed".
func interruptible(name string, ago time.Duration, is string) SpotMachine {
	return SpotMachine{
		Name: name, ProviderID: "aws:///a/" + name, Created: now.Add(-ago),
		InstanceLost: strings.Contains(is, "gone"), Joined: strings.Contains(is, "joined"), Failed: strings.Contains(is, "failed"),
	}
}

// ending is a platform that ends spot machines, and the cluster's spot machines.
func ending(spots ...SpotMachine) with {
	return func(s *Snapshot) { s.StopDeletesMachines, s.Spoke.SpotMachines = true, spots }
}

func TestSpotMachinesAreMadeAnewInAResume(t *testing.T) {
	const hour = time.Hour
	resuming := going("Running", 2*time.Minute)
	for name, tt := range map[string]struct {
		seen    Snapshot
		replace string
		word    string
		tells   string
	}{
		"one that is gone is made anew": {
			seen(resuming, ending(interruptible("a", hour, "gone joined"), interruptible("b", hour, "joined"))),
			"a", hivev1.ReasonWaitingForNodes, "Replacing spot machines that ended when the cluster stopped: a.",
		},
		"none that is there is touched": {
			seen(resuming, ending(interruptible("a", hour, "joined"))), "", "Running", "",
		},
		"its successor is waited for": {
			seen(resuming, ending(interruptible("a2", time.Minute, ""))), "", hivev1.ReasonWaitingForNodes, "Waiting for new spot machines to join: a2.",
		},
		"but not for ever: the platform may have none to give": {
			seen(going("Running", 10*time.Minute), ending(interruptible("a2", 4*time.Minute, ""))), "", "Running", "",
		},
		"nor when it has failed": {
			seen(resuming, ending(interruptible("a2", time.Minute, "failed"))), "", "Running", "",
		},
		"one that never joined before is no matter of the resume": {
			seen(resuming, ending(interruptible("a", hour, ""))), "", "Running", "",
		},
		"nothing is replaced while the cluster's API does not answer": {
			seen(resuming, ending(interruptible("a", hour, "gone")), silent), "", hivev1.ReasonWaitingForNodes, "does not answer",
		},
		"nor in a cluster that has come up: its own health checks see to it (Hive 1.7)": {
			seen(came("Running", hour), ending(interruptible("a", 2*hour, "gone"))), "", "Running", "",
		},
		"nor after a pause: its clock goes on": {
			seen(came("Running", hour), paused, ending(interruptible("a", 2*hour, "gone"))), "", hivev1.StatusUnknown, "",
		},
		"nor after the install": {
			seen(func(s *Snapshot) { going("Running", now.Sub(s.InstalledAt))(s) }, ending(interruptible("a", 200*hour, "gone"))), "", "Running", "",
		},
		"nor while it hibernates": {
			seen(hibernate, machines("m0:Stopping w0:Stopped"), going("Hibernating", time.Minute), ending(interruptible("a", hour, "gone"))), "", "StoppingOrHibernating", "",
		},
		"nor on a platform that keeps what it stops": {
			seen(resuming, func(s *Snapshot) { s.Spoke.SpotMachines = []SpotMachine{interruptible("a", hour, "gone")} }), "", "Running", "",
		},
		"that nobody knows which are gone is told": {
			seen(resuming, ending(interruptible("a", hour, "joined")), func(s *Snapshot) { s.SpotFailure = NewFailure(errors.New("slow down")) }),
			"", hivev1.ReasonWaitingForNodes, "Cannot determine which spot machines no longer exist: slow down.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.seen.Record.Target == hivev1.PowerRunning && tt.seen.Record.FinishedAt == nil && tt.seen.Spoke.Reachable {
				acted(&tt.seen)
			}
			d := Decide(tt.seen, now)
			if got := spotNames(d.Replace); got != tt.replace {
				t.Errorf("replaces %q, want %q", got, tt.replace)
			}
			if d.PowerState != tt.word && !(tt.word == "StoppingOrHibernating" && d.Ready.Reason == tt.word) {
				t.Errorf("tells %s (%s), want %s", d.PowerState, d.Ready.Message, tt.word)
			}
			if !strings.Contains(d.Ready.Message, tt.tells) {
				t.Errorf("tells %q, want %q", d.Ready.Message, tt.tells)
			}
		})
	}
}

// A machine that is younger than the resume may not be known to the platform yet.
func TestOnlyWhatIsOlderThanTheResumeMayBeLost(t *testing.T) {
	s := seen(going("Running", 2*time.Minute), ending(
		interruptible("old", time.Hour, ""), interruptible("young", time.Minute, ""), interruptible("same", 2*time.Minute, ""), SpotMachine{Name: "unborn", Created: now.Add(-time.Hour)},
	))
	if got := spotNames(s.SuspectSpotMachines()); got != "old" {
		t.Errorf("suspects %q, want %q", got, "old")
	}
}

func TestWhyMachinesCannotBeDeletedIsTold(t *testing.T) {
	s := seen(going("Running", 2*time.Minute), ending(interruptible("a", time.Hour, "gone")))
	d := Decide(s, now).AfterReplaceFailure([]string{"forbidden", "forbidden"})
	if want := "cluster stopped: a. Machines cannot be deleted: forbidden."; !strings.HasSuffix(d.Ready.Message, want) {
		t.Errorf("tells %q, want %q", d.Ready.Message, want)
	}
	if d := Decide(seen(), now).AfterReplaceFailure([]string{"forbidden"}); strings.Contains(d.Ready.Message, "forbidden") {
		t.Errorf("a cluster that runs tells %q", d.Ready.Message)
	}
}
