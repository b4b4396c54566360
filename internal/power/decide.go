package power

import (
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
)

// Decide decides what to do about a cluster. It is pure: the same snapshot and time give the same
// plan.
func Decide(s Snapshot, now time.Time) Plan {
	d := s.decidePower(now)
	d.Version = s.reportedVersion()
	if s.SpecProblem != "" && s.Installed {
		d.Hibernating.Message += " " + s.SpecProblem
	}
	return s.applyInactivity(s.applyHibernateAfter(d, now), now)
}

func (s Snapshot) decidePower(now time.Time) Plan {
	switch {
	case s.Deleted:
		return s.planNoAction(unknownState(hivev1.ReasonClusterGoing, "The ClusterDeployment has been marked for deletion."))
	case !s.Installed:
		d := s.planNoAction(notInstalledState())
		d.Unreachable = d.Ready
		return d
	case s.Paused:
		return s.decidePaused()
	case s.Fake:
		return s.decideFake(now)
	case !s.canHibernate():
		return s.decideUnsupported(now)
	case s.WantsRunning():
		return s.decideRunning(now)
	default:
		return s.decideHibernating(now)
	}
}

// planNoAction returns a plan that does nothing and keeps the record, so that pausing does not
// reset timeouts (Hive D5).
func (s Snapshot) planNoAction(state State) Plan { return Plan{Record: s.Record, State: state} }

// decidePaused leaves the power unchanged. It still reports whether the cluster is reachable,
// because other controllers rely on that.
func (s Snapshot) decidePaused() Plan {
	d := s.planNoAction(unknownState(hivev1.ReasonPowerPaused, "The annotation "+hivev1.AnnotationPowerPause+" is set."))
	d.Unreachable, d.Next = s.unreachableCondition(), s.spreadInterval(runningInterval)
	if r := s.Record; !s.Spoke.Reachable && r != nil && r.Target == hivev1.PowerHibernating && r.FinishedAt != nil {
		d.Unreachable = hibernatingValue
	}
	return d
}

// decideFake decides for fake clusters, which have no machines, no waiting and no timeouts (Hive
// D15).
func (s Snapshot) decideFake(now time.Time) Plan {
	target, state, reach := hivev1.PowerRunning, runningState("The fake cluster is running."), reachableValue
	if !s.WantsRunning() {
		target, state, reach = hivev1.PowerHibernating, hibernatingState("The fake cluster is hibernating."), hibernatingValue
	}
	rec := s.currentRecord(target, NoAction, now)
	rec.markFinished(now)
	return Plan{Record: rec.toTransition(), State: state, Unreachable: reach}
}

// decideUnsupported decides for clusters that cannot hibernate: it reports their state and never
// acts.
func (s Snapshot) decideUnsupported(now time.Time) Plan {
	d := s.decideRunning(now)
	d.Action, d.Drift, d.Next = NoAction, "", s.spreadInterval(runningInterval)
	d.State = d.State.withUnsupported(s.hibernationObstacle())
	return d
}

// Messages of the Unreachable condition.
var (
	reachableValue   = condition.False(hivev1.ReasonReachable, "The cluster's API answers.")
	hibernatingValue = condition.True(hivev1.ReasonHibernating, "The cluster is hibernating.")
)

// unreachableCondition returns the condition that says whether the cluster's API can be reached;
// zero if the API was not asked.
func (s Snapshot) unreachableCondition() condition.Value {
	switch {
	case !s.Spoke.Queried:
		return condition.Value{}
	case s.Spoke.Reachable:
		return reachableValue
	default:
		return condition.True(hivev1.ReasonErrorConnecting, "The cluster's API does not answer: "+s.Spoke.UnreachableReason+".")
	}
}
