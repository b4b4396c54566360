package power

import (
	"errors"
	"strings"
	"testing"
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/fault"
)

var resumedAt = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// resuming returns a cluster whose machines run and whose node has been ready since the resume, at a
// platform that suspends controllers.
func resuming() Snapshot {
	record := &hivev1.PowerTransition{Target: hivev1.PowerRunning, StartedAt: apiTime(resumedAt)}
	return Snapshot{
		Installed: true, Platform: "capi", Actuator: true, StopSuspendsControllers: true, Record: record,
		Machines: cloud.Machines{{Name: "m", State: cloud.Running}},
		Spoke: Spoke{
			Queried: true, Reachable: true, Nodes: []Node{{Name: "m", Ready: true, Renewed: resumedAt.Add(time.Minute)}},
			ResumeProbe: ResumeProbe{Mark: record0(record).probeMark(), Done: true},
		},
	}
}

func record0(t *hivev1.PowerTransition) record { return record{PowerTransition: *t} }

func TestAResumeIsCompletedOnceAndLast(t *testing.T) {
	now := resumedAt.Add(2 * time.Minute)
	s := resuming()
	d := Decide(s, now)
	if !d.CompleteResume || d.Record.FinishedAt == nil || !strings.Contains(d.String(), "complete the resume; report Running") {
		t.Errorf("a cluster that is ready: %s", d)
	}
	s.Record = d.Record
	if d := Decide(s, now); d.CompleteResume {
		t.Errorf("a cluster that has come up: %s", d)
	}
	s = resuming()
	s.Spoke.Nodes[0].Ready = false
	if d := Decide(s, now); d.CompleteResume {
		t.Errorf("a cluster whose node is not ready: %s", d)
	}
	s = resuming()
	s.StopSuspendsControllers = false
	if d := Decide(s, now); d.CompleteResume {
		t.Errorf("a platform that suspends nothing: %s", d)
	}
}

func TestAResumeThatCannotBeCompletedIsNotFinished(t *testing.T) {
	now := resumedAt.Add(2 * time.Minute)
	for name, c := range map[string]struct {
		err    error
		reason string
	}{
		"a node that is missing is waited for": {fault.NewWait(time.Second, "node x is missing"), hivev1.ReasonResuming},
		"an error is reported":                 {errors.New("no answer"), hivev1.ReasonFailedToStart},
	} {
		t.Run(name, func(t *testing.T) {
			s := resuming()
			d := Decide(s, now).AfterIncompleteResume(*NewFailure(c.err), now)
			if d.Record.FinishedAt != nil || d.DeleteProbe || d.Hibernating.Reason != c.reason || !strings.Contains(d.Ready.Message, c.err.Error()) || d.Next == 0 {
				t.Errorf("%s: %+v", d, d.Record)
			}
			s.Record = d.Record
			if again := Decide(s, now); !again.CompleteResume {
				t.Errorf("the next pass: %s", again)
			}
		})
	}
}
