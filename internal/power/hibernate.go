package power

import (
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
)

// toHibernating stops a cluster, or keeps it stopped.
func (s Seen) toHibernating(now time.Time) Decision {
	act := s.stopping()
	rec := s.record(hivev1.PowerHibernating, act, now)
	d := Decision{Act: act, Drift: s.drift(rec, cloud.Stopped)}
	g := s.awake(rec)
	rec.note(g)
	switch {
	case g == nil:
		rec.finish(now)
		d.State, d.Unreachable = hibernating("The cluster is hibernating."+s.blind()), asleep
		d.Next = s.steady(lookHibernating)
	case rec.overdue(now):
		d.State = failedToStop(timedOut("Stopping", s.Limits.ToHibernating, g.message))
		d.Next = rec.pace(now, *g)
	case g.grave:
		d.State, d.Next = failedToStop(g.message), rec.pace(now, *g)
	default:
		d.State, d.Next = stopping(g.reason, g.message), rec.pace(now, *g)
	}
	return rec.settle(d)
}

// stopping is whether there are machines to be told to stop.
func (s Seen) stopping() Action {
	if s.any(cloud.Running, cloud.Starting, cloud.Failed) {
		return Stop
	}
	return Keep
}

// awake is what keeps the cluster from being stopped; nil when it is.
func (s Seen) awake(rec record) *gap {
	if s.MachinesFault != nil && rec.FinishedAt != nil {
		return nil
	}
	g := s.machineGap(cloud.Stopped)
	if g == nil {
		return nil
	}
	g.reason = hivev1.ReasonWaitingToStop
	if s.stopping() == Stop {
		g.reason = hivev1.ReasonStopping
	}
	return g
}
