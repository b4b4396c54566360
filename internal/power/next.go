package power

import (
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
)

// Next decides about a cluster from what was seen of it. The same observation
// and time give the same decision.
func Next(s Seen, now time.Time) Decision {
	d := s.decide(now)
	d.Version = s.reported()
	if s.Complaint != "" && s.Installed {
		d.Hibernating.Message += " " + s.Complaint
	}
	return s.limited(d, now)
}

func (s Seen) decide(now time.Time) Decision {
	switch {
	case s.Deleted:
		return s.idle(unknown(hivev1.ReasonClusterGoing, "The ClusterDeployment has been marked for deletion."))
	case !s.Installed:
		d := s.idle(unseen())
		d.Unreachable = d.Ready
		return d
	case s.Paused:
		return s.paused()
	case s.Fake:
		return s.atOnce(now)
	case !s.supported():
		return s.onlyWatched(now)
	case s.WantsRunning():
		return s.toRunning(now)
	default:
		return s.toHibernating(now)
	}
}

// idle does nothing and keeps the record, so that pausing keeps its clocks (Hive D5).
func (s Seen) idle(state State) Decision { return Decision{Record: s.Record, State: state} }

// paused leaves the power alone. Whether the cluster can be reached is told all the
// same: others rely on it.
func (s Seen) paused() Decision {
	d := s.idle(unknown(hivev1.ReasonPowerPaused, "The annotation "+hivev1.AnnotationPowerPause+" is set."))
	d.Unreachable, d.Next = s.reach(), s.steady(lookRunning)
	if r := s.Record; !s.Spoke.Answers && r != nil && r.Target == hivev1.PowerHibernating && r.FinishedAt != nil {
		d.Unreachable = asleep
	}
	return d
}

// atOnce is for fake clusters: no machines, no waiting, no timeouts (Hive D15).
func (s Seen) atOnce(now time.Time) Decision {
	target, state, reach := hivev1.PowerRunning, running("The fake cluster is running."), reachable
	if !s.WantsRunning() {
		target, state, reach = hivev1.PowerHibernating, hibernating("The fake cluster is hibernating."), asleep
	}
	rec := s.record(target, Keep, now)
	rec.finish(now)
	return Decision{Record: rec.stored(), State: state, Unreachable: reach}
}

// onlyWatched is for clusters that cannot hibernate: they are told about, never acted upon.
func (s Seen) onlyWatched(now time.Time) Decision {
	d := s.toRunning(now)
	d.Act, d.Drift, d.Next = Keep, "", s.steady(lookRunning)
	d.State = d.State.unsupported(s.obstacle())
	return d
}

// What is said of the cluster's API.
var (
	reachable = condition.False(hivev1.ReasonReachable, "The cluster's API answers.")
	asleep    = condition.True(hivev1.ReasonHibernating, "The cluster is hibernating.")
)

// reach judges whether the cluster's API can be reached; zero if it was not asked.
func (s Seen) reach() condition.Value {
	switch {
	case !s.Spoke.Asked:
		return condition.Value{}
	case s.Spoke.Answers:
		return reachable
	default:
		return condition.True(hivev1.ReasonErrorConnecting, "The cluster's API does not answer: "+s.Spoke.Trouble+".")
	}
}
