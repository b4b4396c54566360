package power

import (
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
)

// decideRunning starts a cluster, or keeps it running.
func (s Snapshot) decideRunning(now time.Time) Plan {
	act := s.startAction()
	rec := s.currentRecord(hivev1.PowerRunning, act, now)
	d := Plan{Action: act, Unreachable: s.unreachableCondition(), Drift: s.driftedMachines(rec, cloud.Running)}
	g := s.firstGap(rec, now)
	rec = s.restartIfObservedLate(rec, g, now)
	rec.noteMachineFailure(g)
	j := s.reviewRequests(now)
	j.addToGap(g)
	d.Approve, d.CreateProbe, d.Replace = j.approvedRequests(), s.probeToCreate(rec), s.spotsToReplace()
	switch {
	case g == nil:
		d.CompleteResume = s.StopSuspendsControllers && rec.FinishedAt == nil
		rec.markFinished(now)
		d.State, d.Next = runningState("The cluster is running."+s.unobservedMessage()+s.probeRefusedMessage()), j.shortenInterval(s.spreadInterval(runningInterval))
		d.DeleteProbe = s.Spoke.ResumeProbe.Mark != ""
	case rec.isOverdue(now):
		d.State = failedToStartState(*g, timedOutMessage("Resuming", s.Limits.ToRunning, g.message))
		d.Next = rec.requeueDelay(now, *g)
	case g.permanent:
		d.State, d.Next = failedToStartState(*g, g.message), rec.requeueDelay(now, *g)
	case rec.FinishedAt != nil:
		d.State, d.Next = degradedState(*g), rec.requeueDelay(now, *g)
	default:
		d.State, d.Next = resumingState(*g), rec.requeueDelay(now, *g)
	}
	return rec.completePlan(d)
}

// startAction returns Start if any machine must be started, else NoAction. A machine that is
// still stopping is left out, because platforms refuse to start it; it is started once it has
// stopped.
func (s Snapshot) startAction() Action {
	if s.hasMachineIn(cloud.Stopped, cloud.Failed) {
		return Start
	}
	return NoAction
}

// unobservedMessage says that the machines of a steady cluster could not be observed.
func (s Snapshot) unobservedMessage() string {
	if s.MachinesFailure == nil {
		return ""
	}
	return " " + s.MachinesFailure.unobservedMessage()
}
