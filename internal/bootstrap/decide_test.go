package bootstrap

import (
	"fmt"
	"strings"
	"testing"
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// twoSteps requires steps a and b.
func twoSteps() Requirement {
	return Requirement{Version: "v1", Steps: []Step{{Name: "a", Timeout: time.Minute}, {Name: "b", Timeout: 10 * time.Minute}}}
}

// describe returns a plan as text.
func describe(p Plan) string {
	switch {
	case p.RemoveOthers:
		return "remove what other versions have left"
	case p.Unchanged:
		return "attempt " + p.Attempt.Name
	}
	words := "nothing"
	if r := p.Record; r != nil {
		words = fmt.Sprintf("%s done %v", r.Version, r.StepsDone)
		if r.Step != "" {
			words += fmt.Sprintf(" in %s until %s", r.Step, r.Deadline.Sub(noon))
		}
		if r.FinishedAt != nil {
			words += " finished"
		}
	}
	return strings.TrimSpace(words + ", " + p.Condition.Reason + " " + p.Condition.Message)
}

func TestDecide(t *testing.T) {
	begun := func(done ...string) *hivev1.BootstrapRecord {
		s := Snapshot{Requirement: twoSteps(), Running: true, Now: noon}
		return s.begin(done).Record
	}
	type snapshot = func(*Snapshot)
	record := func(r *hivev1.BootstrapRecord) snapshot { return func(s *Snapshot) { s.Record, s.Reported = r, true } }
	outcome := func(o Outcome) snapshot { return func(s *Snapshot) { s.Outcome = &o } }
	failsForGood := Outcome{Failed: true, Final: true, Message: "Job x has failed."}
	later := func(d time.Duration) snapshot { return func(s *Snapshot) { s.Now = s.Now.Add(d) } }
	stops := func(s *Snapshot) { s.Running = false }
	adopted := func(s *Snapshot) { s.Adopted = true }
	other := func(s *Snapshot) { s.Requirement.Version = "v2" }
	none := func(s *Snapshot) { s.Requirement = Requirement{} }
	unknown := func(s *Snapshot) { s.Requirement = NewUnresolved("ConfigMap c does not exist") }
	finished := Snapshot{Requirement: twoSteps(), Now: noon}.finish([]string{"a", "b"}).Record
	for name, tc := range map[string]struct {
		change []snapshot
		want   string
	}{
		"no steps":                           {[]snapshot{none}, "nothing,"},
		"a cluster that is being installed":  {[]snapshot{stops}, "nothing,"},
		"the first step begins":              {nil, "v1 done [] in a until 1m0s, StepInProgress Step 1 of 2, a begins."},
		"then it is attempted":               {[]snapshot{record(begun())}, "attempt a"},
		"an attempt that waits":              {[]snapshot{record(begun()), outcome(Outcome{Message: "waiting for x"})}, "v1 done [] in a until 1m0s, StepInProgress Step 1 of 2, a: waiting for x."},
		"an attempt that fails":              {[]snapshot{record(begun()), outcome(Outcome{Failed: true, Message: "x is refused."})}, "v1 done [] in a until 1m0s, StepFailed Step 1 of 2, a: x is refused."},
		"a final failure":                    {[]snapshot{record(begun()), outcome(failsForGood), later(10 * time.Second)}, "v1 done [] in a until 40s, StepFailed Step 1 of 2, a: Job x has failed."},
		"one near the end of the time":       {[]snapshot{record(begun()), outcome(failsForGood), later(50 * time.Second)}, "v1 done [] in a until 1m0s, StepFailed Step 1 of 2, a: Job x has failed."},
		"the next step begins":               {[]snapshot{record(begun()), outcome(Outcome{Done: true})}, "v1 done [a] in b until 10m0s, StepInProgress Step 2 of 2, b begins."},
		"then that one is attempted":         {[]snapshot{record(begun("a"))}, "attempt b"},
		"the last step is done":              {[]snapshot{record(begun("a")), outcome(Outcome{Done: true})}, "v1 done [a b] finished, StepsDone Every step of the bootstrap is done."},
		"nothing follows":                    {[]snapshot{record(finished)}, "v1 done [a b] finished, StepsDone Every step of the bootstrap is done."},
		"not even when the steps change":     {[]snapshot{record(finished), other}, "v1 done [a b] finished, StepsDone Every step of the bootstrap is done."},
		"nor when there are none any more":   {[]snapshot{record(finished), none}, "v1 done [a b] finished, StepsDone Every step of the bootstrap is done."},
		"it loses power":                     {[]snapshot{record(begun("a")), stops}, "v1 done [a], NotTaken The cluster does not run: hotspare takes the next step of the bootstrap when it runs."},
		"it runs again":                      {[]snapshot{record(begun("a")), func(s *Snapshot) { s.RunStartedAt = noon }}, "v1 done [a] in b until 10m0s, StepInProgress Step 2 of 2, b begins."},
		"an attempt of before the power":     {[]snapshot{record(begun("a")), outcome(Outcome{Done: true}), func(s *Snapshot) { s.RunStartedAt = noon }}, "v1 done [a] in b until 10m0s, StepInProgress Step 2 of 2, b begins."},
		"the steps change meanwhile":         {[]snapshot{record(begun("a")), other}, "v1 done [a], BootstrapChanged The bootstrap has changed before the cluster had taken all its steps: the pool replaces the cluster."},
		"and change back":                    {[]snapshot{record(suspend(begun("a")))}, "v1 done [a] in b until 10m0s, StepInProgress Step 2 of 2, b begins."},
		"an adopted one takes the new steps": {[]snapshot{record(begun("a")), other, adopted}, "v2 done [] in a until 1m0s, StepInProgress Step 1 of 2, a begins."},
		"one whose steps are removed":        {[]snapshot{record(begun("a")), none, adopted}, "remove what other versions have left"},
		"which takes time":                   {[]snapshot{record(begun("a")), none, adopted, outcome(Outcome{Message: "waiting for Pod x."})}, "v1 done [a], StepInProgress The bootstrap has no steps any more: waiting for Pod x."},
		"and ends":                           {[]snapshot{record(begun("a")), none, adopted, outcome(Outcome{Done: true})}, "done [] finished, StepsDone Every step of the bootstrap is done."},
		"one that does not run":              {[]snapshot{record(begun("a")), none, adopted, stops}, "v1 done [a], NotTaken The cluster does not run: hotspare takes the next step of the bootstrap when it runs."},
		"the steps are removed meanwhile":    {[]snapshot{record(begun("a")), none}, "v1 done [a], BootstrapChanged The bootstrap has changed before the cluster had taken all its steps: the pool replaces the cluster."},
		"the steps are not known":            {[]snapshot{record(begun("a")), unknown}, "v1 done [a], NotTaken The steps of the bootstrap are not taken: ConfigMap c does not exist."},
		"a fake cluster":                     {[]snapshot{func(s *Snapshot) { s.Fake = true }}, "v1 done [a b] finished, StepsDone Every step of the bootstrap is done."},
	} {
		t.Run(name, func(t *testing.T) {
			s := Snapshot{Requirement: twoSteps(), Running: true, Now: noon}
			for _, c := range tc.change {
				c(&s)
			}
			if got := describe(Decide(s)); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// Each attempt after a final failure fails, too: none of them prolongs the step.
func TestAFinalFailureEndsTheStepOnce(t *testing.T) {
	s := Snapshot{Requirement: twoSteps(), Running: true, Now: noon}
	s.Record = s.begin([]string{"a"}).Record
	for i := range 10 {
		s.Now = noon.Add(time.Duration(1+i) * time.Minute)
		s.Outcome = &Outcome{Failed: true, Final: true, Message: "Job x has failed"}
		s.Record = Decide(s).Record
		if got := s.Record.Deadline.Sub(noon); got != 90*time.Second {
			t.Fatalf("after attempt %d the step may take %s", i, got)
		}
	}
	s.Outcome = &Outcome{Done: true}
	if r := Decide(s).Record; r.FinishedAt == nil {
		t.Errorf("a step that somebody has mended is not done: %+v", r)
	}
}

func TestAttemptsBecomeRarer(t *testing.T) {
	for taken, want := range map[time.Duration]time.Duration{0: 250 * time.Millisecond, 10 * time.Second: time.Second, time.Hour: 15 * time.Second} {
		if got := attemptDelay(taken); got != want {
			t.Errorf("after %s: got %s, want %s", taken, got, want)
		}
	}
}

func TestTheEndOfARunEndsTheStep(t *testing.T) {
	s := Snapshot{Requirement: twoSteps(), Running: true, Now: noon}
	cd := &hivev1.ClusterDeployment{}
	cd.Status.Bootstrap, cd.Status.PowerState = s.begin([]string{"a"}).Record, hivev1.StatusRunning
	EndRun(cd)
	if cd.Status.Bootstrap.Step != "b" {
		t.Errorf("a cluster that runs has no step: %+v", cd.Status.Bootstrap)
	}
	cd.Status.PowerState = hivev1.ReasonStopping
	EndRun(cd)
	if r := cd.Status.Bootstrap; r.Step != "" || r.Deadline != nil || strings.Join(r.StepsDone, "") != "a" || r.Version != "v1" {
		t.Errorf("got %+v", r)
	}
}
