package power

import "time"

// promptObservation is how soon after an install the first look comes, unless something kept
// us from looking.
const promptObservation = time.Minute

// restartIfObservedLate has a cluster's time start now if this is the first look at it,
// long after its install, and it lacks something: it comes from another hub, say,
// in the middle of a resume. Nobody knows when that began; to count it from the
// install would make it time out at once, and a pool throw the cluster away
// (Hive D4).
func (s Snapshot) restartIfObservedLate(r record, g *gap, now time.Time) record {
	if s.Record != nil || g == nil || now.Sub(r.StartedAt.Time) <= promptObservation {
		return r
	}
	r.StartedAt = apiTime(now)
	if r.Deadline != nil {
		*r.Deadline = apiTime(r.StartedAt.Add(s.transitionTimeout(r.Target)))
	}
	return r
}
