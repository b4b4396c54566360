package power

import (
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
)

// toRunning brings a cluster up, or keeps it up.
func (s Seen) toRunning(now time.Time) Decision {
	act := s.starting()
	rec := s.record(hivev1.PowerRunning, act, now)
	d := Decision{Act: act, Unreachable: s.reach(), Drift: s.drift(rec, cloud.Running)}
	g := s.gap(rec, now)
	rec = s.lookedAtLate(rec, g, now)
	rec.note(g)
	j := s.judge(now)
	j.tell(g)
	d.Approve, d.Errand, d.Replace = j.approved(), s.errand(rec), s.replace()
	switch {
	case g == nil:
		rec.finish(now)
		d.State, d.Next = running("The cluster is running."+s.blind()+s.unproven()), j.soon(s.steady(lookRunning))
		d.Dismiss = s.Spoke.Errand.Mark != ""
	case rec.overdue(now):
		d.State = failedToStart(*g, timedOut("Resuming", s.Limits.ToRunning, g.message))
		d.Next = rec.pace(now, *g)
	case g.grave:
		d.State, d.Next = failedToStart(*g, g.message), rec.pace(now, *g)
	case rec.FinishedAt != nil:
		d.State, d.Next = degraded(*g), rec.pace(now, *g)
	default:
		d.State, d.Next = resuming(*g), rec.pace(now, *g)
	}
	return rec.settle(d)
}

// starting is whether there are machines to be told to start. One that is
// still stopping can't be: platforms refuse it. It is told when it has stopped.
func (s Seen) starting() Action {
	if s.any(cloud.Stopped, cloud.Failed) {
		return Start
	}
	return Keep
}

// blind says that a steady cluster's machines could not be looked at.
func (s Seen) blind() string {
	if s.MachinesFault == nil {
		return ""
	}
	return " " + s.MachinesFault.unobserved()
}
