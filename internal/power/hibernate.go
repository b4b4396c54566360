package power

import (
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
)

// decideHibernating stops a cluster, or keeps it stopped.
func (s Snapshot) decideHibernating(now time.Time) Plan {
	act := s.stopAction()
	rec := s.currentRecord(hivev1.PowerHibernating, act, now)
	d := Plan{Action: act, Drift: s.driftedMachines(rec, cloud.Stopped)}
	g := s.notStoppedGap(rec)
	rec.noteMachineFailure(g)
	switch {
	case g == nil:
		rec.markFinished(now)
		s.recordDepth(&rec)
		d.State, d.Unreachable = hibernatingState(s.hibernatingMessage(rec)+s.unobservedMessage()), hibernatingValue
		d.Next = s.spreadInterval(hibernatingInterval)
	case rec.isOverdue(now):
		d.State = failedToStopState(timedOutMessage("Stopping", s.Limits.ToHibernating, g.message))
		d.Next = rec.requeueDelay(now, *g)
	case g.permanent:
		d.State, d.Next = failedToStopState(g.message), rec.requeueDelay(now, *g)
	default:
		d.State, d.Next = stoppingState(g.reason, g.message), rec.requeueDelay(now, *g)
	}
	return rec.completePlan(d)
}

// stopAction returns Stop if any machine must be put to sleep, or deeper, else NoAction.
func (s Snapshot) stopAction() Action {
	if s.hasMachineIn(cloud.Running, cloud.Starting, cloud.Failed) || s.hasMachineAbove(s.TargetDepth()) {
		return Stop
	}
	return NoAction
}

// notStoppedGap returns what keeps the cluster from being stopped; nil if it is stopped.
func (s Snapshot) notStoppedGap(rec record) *gap {
	if s.MachinesFailure != nil && rec.FinishedAt != nil {
		return nil
	}
	g := s.machineStateGap(cloud.Stopped)
	if g == nil {
		g = s.depthGap()
	}
	if g == nil {
		return nil
	}
	g.reason = hivev1.ReasonWaitingToStop
	if s.stopAction() == Stop {
		g.reason = hivev1.ReasonStopping
	}
	return g
}
