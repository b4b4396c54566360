package power

import "time"

// promptObservation is how soon after an install the first pass runs, unless something prevented
// it.
const promptObservation = time.Minute

// restartIfObservedLate starts a cluster's clock now if this is the first pass over it, long
// after its install, and it has a gap: for example, it was imported from another hub in the
// middle of a resume. The start of that resume is unknown. Counting from the install would make
// it time out at once, and its pool would then delete the cluster (Hive D4).
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
