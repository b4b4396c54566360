package power

import (
	"errors"
	"strings"
	"testing"
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/power/csr/csrtest"
)

// The faults of Hive's power controller, by the codes of docs/hive-parity.md.
// Each test goes through the history in which Hive fails.

// story is the history of one cluster: what a pass stores, the next one finds.
type story struct {
	*testing.T
	now time.Time
	Snapshot
}

// begin is a cluster that runs, and has for an hour, but for what is changed.
func begin(t *testing.T, changes ...with) *story {
	return &story{T: t, now: now, Snapshot: seen(changes...)}
}

// pass changes what there is to see, and decides. The nodes that are ready have
// just said so. A refusal is the platform's answer to what was decided.
func (s *story) pass(want string, changes ...with) Plan {
	s.Helper()
	for _, c := range changes {
		c(&s.Snapshot)
	}
	return s.decided(want, Decide(s.fresh(), s.now))
}

// refused is a pass whose Start or Stop the platform refuses.
func (s *story) refused(want string, err error, changes ...with) Plan {
	s.Helper()
	for _, c := range changes {
		c(&s.Snapshot)
	}
	return s.decided(want, Decide(s.fresh(), s.now).AfterFailedRequest(*NewFailure(err), s.now))
}

// fresh is what is seen now: an API that is not worth asking says nothing. The
// controller manager has acted, whenever that is asked.
func (s *story) fresh() Snapshot {
	out := s.Snapshot
	if out.Spoke.ResumeProbe = (ResumeProbe{}); out.NeedsResumeProbe() {
		acted(&out)
	}
	if !out.NeedsSpoke() {
		out.Spoke = Spoke{}
	}
	out.Spoke.Nodes = nil
	for _, n := range s.Spoke.Nodes {
		if n.Ready {
			n.Renewed = s.now
		}
		out.Spoke.Nodes = append(out.Spoke.Nodes, n)
	}
	return out
}

// decided checks a decision, written as brief does without the record, and stores it.
func (s *story) decided(want string, d Plan) Plan {
	s.Helper()
	agree(s.T, d)
	got := brief(Plan{Action: d.Action, State: d.State})
	if got != want {
		s.Errorf("%s: got %q, want %q: %s", s.now.Sub(now), got, want, d)
	}
	if d.Action == Hibernate {
		s.DesiredState = hivev1.PowerHibernating
		return d
	}
	s.Record = d.Record
	return d
}

func (s *story) wait(span time.Duration) *story {
	s.now = s.now.Add(span)
	return s
}

func awaken(s *Snapshot) { s.DesiredState = hivev1.PowerRunning }
func resume(s *Snapshot) { s.Paused = false }

// halfway is a cluster that was flipped to Running while it was stopping.
func halfway(t *testing.T, changes ...with) *story {
	s := begin(t, changes...)
	s.pass("keep, Stopping, Stopping", hibernate)
	s.pass("stop, Stopping, Stopping")
	s.wait(time.Minute).pass("keep, WaitingForMachinesToStop, Stopping", machines("m0:Stopping w0:Stopped"))
	s.pass("keep, StartingMachines, Resuming", awaken)
	return s
}

// D1: flipped to Running in mid-stop, Hive starts nothing and says for ever that
// it waits for machines to stop.
func TestD1AFlipToRunningInMidStopStartsTheMachines(t *testing.T) {
	s := halfway(t)
	s.pass("start, StartingMachines, Resuming")
	s.pass("keep, WaitingForMachines, Resuming", machines("m0:Stopping w0:Starting"))
	s.pass("start, StartingMachines, Resuming", machines("m0:Stopped w0:Running"), silent)
	s.pass("keep, WaitingForNodes, Resuming", machines("m0:Running w0:Running"))
	s.wait(time.Minute).pass("keep, Running, Running", ready("m0 w0"))
}

// D2: flipped back once more, Hive calls the cluster Running while its machines
// stop, and in the end Ready while it hibernates.
func TestD2NothingIsCalledRunningWhileMachinesStop(t *testing.T) {
	s := halfway(t)
	s.wait(time.Minute).pass("keep, Running, Running", machines("m0:Running w0:Running"), ready("m0 w0"))
	s.wait(time.Hour).pass("keep, Stopping, Stopping", hibernate)
	s.pass("stop, Stopping, Stopping")
	s.wait(time.Second).pass("keep, WaitingForMachinesToStop, Stopping", machines("m0:Stopping w0:Stopping"))
	d := s.pass("keep, Hibernating, Hibernating", machines("m0:Stopped w0:Stopped"))
	if d.Ready.Status != "False" {
		t.Errorf("it sleeps, and Ready is %s", d.Ready.Status)
	}
}

// D3: after such a flip, or after FailedToStop, no timeout of Hive's fires.
func TestD3AResumeAfterAFlipTimesOut(t *testing.T) {
	twenty := limits(Limits{ToRunning: 20 * time.Minute})
	flipped := halfway(t, twenty)
	failed := begin(t, twenty)
	failed.pass("keep, Stopping, Stopping", hibernate)
	failed.refused("stop, FailedToStop, FailedToStop", errors.New("no"))
	for name, s := range map[string]*story{"in mid-stop": flipped, "after FailedToStop": failed} {
		t.Run(name, func(t *testing.T) {
			s.T = t
			began := s.now
			s.pass("keep, WaitingForNodes, Resuming", awaken, machines("m0:Running w0:Running"), silent)
			for s.now.Before(began.Add(20 * time.Minute)) {
				d := s.pass("keep, WaitingForNodes, Resuming")
				s.wait(d.Next)
			}
			s.pass("keep, FailedToStart, FailedToStart")
			if late := s.now.Sub(began.Add(20 * time.Minute)); late > 0 {
				t.Errorf("noticed %s late", late)
			}
		})
	}
}

// D4: Hive counts a timeout from a resume of hours ago when a node fails now, and
// its pool throws the cluster away.
func TestD4LateTroubleIsNoResumeThatTimedOut(t *testing.T) {
	s := begin(t, limits(Limits{ToRunning: 20 * time.Minute}))
	for _, trouble := range []with{unready, silent, noNodes} {
		d := s.wait(5*time.Hour).pass("keep, WaitingForNodes, Running", ready("m0 w0"), trouble)
		if d.Record.Deadline != nil || d.Record.FinishedAt == nil {
			t.Errorf("a transition is open: %+v", *d.Record)
		}
		s.wait(time.Hour).pass("keep, WaitingForNodes, Running")
	}
	s.pass("keep, Running, Running", ready("m0 w0"))
	d := s.pass("keep, StartingMachines, Resuming", machines("m0:Running w0:Stopped"))
	if at := s.now.Add(20 * time.Minute); d.Record.Deadline == nil || !d.Record.Deadline.Time.Equal(at) {
		t.Errorf("a machine that stopped has until %s, want %s", d.Record.Deadline, at)
	}
}

// D5: after a pause Hive counts hibernateAfter from the install.
func TestD5APauseKeepsTheClockOfHibernateAfter(t *testing.T) {
	s := begin(t, limits(Limits{HibernateAfter: 8 * time.Hour}))
	s.pass("keep, Unknown, PowerStatePaused", paused)
	s.wait(30*time.Minute).pass("keep, Running, Running", resume)
	s.pass("keep, Unknown, PowerStatePaused", paused)
	d := s.wait(5*time.Hour).pass("keep, Running, Running", resume)
	if left := 90 * time.Minute; d.Next > left {
		t.Errorf("looks again in %s, later than the %s that are left", d.Next, left)
	}
	s.wait(91 * time.Minute).pass("hibernate, Running, Running")
}

// D6: Hive says nothing of a fresh cluster with hibernateAfter until that is over.
func TestD6AFreshClusterWithHibernateAfterTellsHowItIs(t *testing.T) {
	s := begin(t, anew, limits(Limits{HibernateAfter: 8 * time.Hour}), func(s *Snapshot) { s.InstalledAt = now })
	s.pass("keep, WaitingForNodes, Resuming", silent)
	s.wait(time.Minute).pass("keep, Running, Running", ready("m0 w0"))
	s.wait(time.Hour).pass("keep, WaitingForNodes, Running", unready)
	s.wait(7*time.Hour - time.Second).pass("keep, WaitingForNodes, Running")
	s.wait(time.Second).pass("hibernate, WaitingForNodes, Running")
}

// D7: in Hive a resume that never gets ready runs, and costs, for ever.
func TestD7AResumeThatNeverGetsReadyHitsTheCeiling(t *testing.T) {
	s := begin(t, came("Hibernating", time.Hour), machines("m0:Stopped w0:Stopped"), limits(Limits{HibernateAfter: 8 * time.Hour}))
	s.pass("keep, StartingMachines, Resuming")
	s.pass("start, StartingMachines, Resuming")
	s.wait(time.Hour).pass("keep, WaitingForClusterOperators, Resuming", machines("m0:Running w0:Running"), ready("m0 w0"), operators(time.Hour, "dns:busy"))
	s.wait(9*time.Hour - time.Second).pass("keep, WaitingForClusterOperators, Resuming")
	s.wait(time.Second).pass("hibernate, WaitingForClusterOperators, Resuming")
	s.pass("keep, Stopping, Stopping")
}

// D8: while the API is down, Hive goes on saying that it waits for machines that run.
func TestD8MachinesThatRunAreNotWaitedFor(t *testing.T) {
	for name, way := range map[string]func(*story){
		"waiting for machines":  func(s *story) { s.pass("keep, WaitingForMachines, Resuming", machines("m0:Running w0:Starting")) },
		"after a refused start": func(s *story) { s.refused("start, FailedToStart, FailedToStart", errors.New("no")) },
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t, going("Running", time.Minute), machines("m0:Running w0:Stopped"), silent)
			way(s)
			d := s.pass("keep, WaitingForNodes, Resuming", machines("m0:Running w0:Running"))
			if d.Unreachable.Status != "True" || !strings.Contains(d.Ready.Message, "connection refused") {
				t.Errorf("told %s: %s", d.Unreachable.Status, d.Ready.Message)
			}
		})
	}
}

// D9: Hive calls a cluster Ready whose API has gone away.
func TestD9ARunningClusterWhoseAPIIsDownIsNotReady(t *testing.T) {
	s := begin(t)
	s.pass("keep, Running, Running")
	d := s.wait(time.Hour).pass("keep, WaitingForNodes, Running", silent)
	if d.Ready.Status != "False" || d.Unreachable.Status != "True" {
		t.Errorf("Ready %s, Unreachable %s", d.Ready.Status, d.Unreachable.Status)
	}
	s.pass("keep, Running, Running", ready("m0 w0"))
}

// D10: an error of a second start or stop never gets into Hive's status.
func TestD10AnErrorOnTheWayIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		begin *story
		want  string
	}{
		"of a start": {begin(t, going("Running", time.Hour), machines("m0:Running w0:Stopped")), "start, FailedToStart, FailedToStart"},
		"of a stop":  {begin(t, hibernate, going("Hibernating", time.Hour), machines("m0:Running w0:Stopped")), "stop, FailedToStop, FailedToStop"},
	} {
		t.Run(name, func(t *testing.T) {
			c.begin.T = t
			c.begin.refused(c.want, errors.New("first"))
			d := c.begin.refused(c.want, errors.New("second"))
			if !strings.Contains(d.Hibernating.Message, "second") || d.Record.LastError != "second" || d.Record.Attempts != 2 {
				t.Errorf("told %q, recorded %+v", d.Hibernating.Message, *d.Record)
			}
		})
	}
	s := begin(t, going("Running", time.Minute), silent)
	d := s.pass("keep, FailedToStart, FailedToStart", unobservable(errors.New("no route")))
	if !strings.Contains(d.Hibernating.Message, "no route") {
		t.Errorf("told %q", d.Hibernating.Message)
	}
}

// D11: to Hive an API that boots is an error, and it looks less and less often,
// up to a quarter of an hour apart.
func TestD11AnAPIThatBootsIsLookedAtAtAFlatPace(t *testing.T) {
	s := begin(t, going("Running", 0), silent)
	for s.now.Before(now.Add(3 * time.Hour)) {
		d := s.pass("keep, WaitingForNodes, Resuming")
		if d.Next > 30*time.Second || d.Next <= 0 {
			t.Fatalf("after %s it looks again in %s", s.now.Sub(now), d.Next)
		}
		s.wait(d.Next)
	}
	s.pass("keep, Running, Running", ready("m0 w0"))
}

// D12: to Hive a cluster without machines both runs and is stopped.
func TestD12NoMachineIsNeitherRunningNorStopped(t *testing.T) {
	for _, s := range []*story{begin(t), begin(t, anew), begin(t, going("Running", time.Minute))} {
		d := s.pass("keep, FailedToStart, FailedToStart", machines(""))
		if !strings.Contains(d.Hibernating.Message, `no machine with infrastructure ID "infra"`) {
			t.Errorf("told %q", d.Hibernating.Message)
		}
	}
	for _, s := range []*story{begin(t, hibernate, came("Hibernating", time.Hour)), begin(t, hibernate, going("Hibernating", time.Minute))} {
		s.pass("keep, FailedToStop, FailedToStop", machines(""))
		s.pass("keep, Hibernating, Hibernating", machines("m0:Stopped"))
	}
}

// D13: Hive does not see a machine in a state that it does not know.
func TestD13AnUnknownStateBlocksAndIsNamed(t *testing.T) {
	up := begin(t, going("Running", time.Minute))
	down := begin(t, hibernate, going("Hibernating", time.Minute))
	for _, d := range []Plan{
		up.pass("keep, WaitingForMachines, Resuming", machines("m0:Running w0:Unknown")),
		down.pass("keep, WaitingForMachinesToStop, Stopping", machines("m0:Stopped w0:Unknown")),
	} {
		if got := d.detailedCondition().Message; !strings.Contains(got, "w0 (Unknown: odd)") {
			t.Errorf("told %q", got)
		}
	}
}

// D14: Hive looks neither at a running nor at a sleeping cluster again.
func TestD14SteadyClustersAreLookedAtAgain(t *testing.T) {
	s := begin(t)
	for _, want := range []string{"keep, Running, Running", "keep, Running, Running"} {
		if d := s.pass(want); d.Next <= 0 || d.Next > 10*time.Minute {
			t.Errorf("looks again in %s", d.Next)
		}
	}
	s.pass("keep, StartingMachines, Resuming", machines("m0:Running w0:Stopped"))
	s.pass("start, StartingMachines, Resuming")

	s = begin(t, hibernate, came("Hibernating", time.Hour), machines("m0:Stopped w0:Stopped"))
	if d := s.pass("keep, Hibernating, Hibernating"); d.Next <= 0 || d.Next > 10*time.Minute {
		t.Errorf("looks again in %s", d.Next)
	}
	s.pass("keep, Stopping, Stopping", machines("m0:Stopped w0:Running"))
	s.pass("stop, Stopping, Stopping")
}

// D15: with hibernateAfter, Hive asks a cloud about a fake cluster.
func TestD15AFakeClusterWithHibernateAfterIsFake(t *testing.T) {
	s := begin(t, fake, anew, limits(Limits{HibernateAfter: time.Hour, ToRunning: time.Minute, ToHibernating: time.Minute}), func(s *Snapshot) { s.InstalledAt = now })
	s.pass("keep, Running, Running")
	s.wait(time.Hour).pass("hibernate, Running, Running")
	s.pass("keep, Hibernating, Hibernating")
	if s.ManagesMachines() || s.NeedsSpoke() {
		t.Error("somebody is asked about it")
	}
	s.wait(time.Hour).pass("keep, Running, Running", awaken)
	s.wait(59 * time.Minute).pass("keep, Running, Running")
	s.wait(time.Minute).pass("hibernate, Running, Running")
}

// D16: Hive approves certificate requests whenever a node of a running cluster is not ready.
func TestD16RequestsAreApprovedInAResumeOnly(t *testing.T) {
	request := listed(csrtest.ClientRequest(t, "csr", "w0", now.Add(-time.Minute)))
	for name, c := range map[string]struct {
		story *story
		open  bool
	}{
		"in a resume":               {begin(t, going("Running", 5*time.Minute)), true},
		"hours after it":            {begin(t, came("Running", 5*time.Hour)), false},
		"coming up after install":   {begin(t, anew), false},
		"with a machine down again": {begin(t, came("Running", 5*time.Hour), machines("m0:Running w0:Stopped")), false},
	} {
		t.Run(name, func(t *testing.T) {
			away(&c.story.Snapshot)
			request(&c.story.Snapshot)
			asks := c.story.NeedsCertificateRequests(now)
			if d := Decide(c.story.Snapshot, now); asks != c.open || (len(d.Approve) == 1) != c.open {
				t.Errorf("asks for them: %v; %s", asks, d)
			}
		})
	}
}

// D17: an error in whose text there is the word 401 or 403 makes Hive wait for 17
// minutes and say nothing.
func TestD17TheTextOfAnErrorDecidesNothing(t *testing.T) {
	waits := func(err error) time.Duration {
		s := begin(t, going("Running", time.Minute), machines("m0:Running w0:Stopped"))
		d := s.refused("start, FailedToStart, FailedToStart", err)
		if !strings.Contains(d.Hibernating.Message, err.Error()) {
			t.Errorf("told %q", d.Hibernating.Message)
		}
		return d.Next
	}
	if text, plain := waits(errors.New("disk 401 of 403 is busy")), waits(errors.New("a disk is busy")); text != plain {
		t.Errorf("waits for %s because of a number in a text, otherwise for %s", text, plain)
	}
	if denied := waits(fault.NewDenied("403 Forbidden")); denied > 5*time.Minute {
		t.Errorf("waits for %s", denied)
	}
}

// D18: Hive believes a node that says Ready from before it slept.
func TestD18ANodeMustHaveBeenHeardOfSinceThePowerCameOn(t *testing.T) {
	s := begin(t, came("Hibernating", time.Hour), machines("m0:Stopped w0:Stopped"))
	s.pass("keep, StartingMachines, Resuming")
	s.pass("start, StartingMachines, Resuming")
	s.wait(time.Minute)
	ready("m0 w0")(&s.Snapshot)
	s.Machines = cloud.Machines{{Name: "m0", State: cloud.Running}, {Name: "w0", State: cloud.Running}}
	// Ready, both, but w0 said so last when the power had not come on.
	s.Spoke.Nodes[0].Renewed, s.Spoke.Nodes[1].Renewed = s.now, now
	d := s.decided("keep, WaitingForNodes, Resuming", Decide(s.Snapshot, s.now))
	if want := "Waiting for nodes to be ready: w0."; d.Ready.Message != want {
		t.Errorf("told %q, want %q", d.Ready.Message, want)
	}
	s.pass("keep, Running, Running")

	// Nor is a flip an hour after the install an excuse: only machines that have
	// never been off since need no news.
	early := begin(t, going("Running", 99*time.Hour))
	early.Spoke.Nodes[0].Renewed = installed.Add(time.Minute)
	early.decided("keep, WaitingForNodes, Resuming", Decide(early.Snapshot, now))
}
