package power

import (
	"hash/fnv"
	"time"
)

// How often to look. Clusters on this computer resume in seconds and must be
// seen at once, clouds take minutes and must not be hammered: on the way, the
// pause is a tenth of the time already waited. It does not grow because an API
// that boots does not answer (Hive D11).
const (
	nextPassDelay = time.Millisecond
	minInterval   = 200 * time.Millisecond
	maxInterval   = 30 * time.Second
	// What waiting will not mend is looked at less often.
	minGraveInterval = 5 * time.Second
	maxGraveInterval = 5 * time.Minute
	// Nobody tells us about a machine that changes behind our back (Hive D14).
	runningInterval     = 2 * time.Minute
	hibernatingInterval = 5 * time.Minute
	// Nodes that have just come back with new client certificates ask for others.
	rejoinedInterval = 30 * time.Second
)

// requeueDelay is when to look again at a cluster that lacks g, at the latest at the deadline.
func (r record) requeueDelay(now time.Time, g gap) time.Duration {
	wait := now.Sub(r.StartedAt.Time) / 10
	if g.permanent {
		wait = min(max(wait, minGraveInterval), maxGraveInterval)
	} else {
		wait = min(max(wait, minInterval), maxInterval)
	}
	return r.capAtDeadline(wait, now)
}

// capAtDeadline shortens wait so that the deadline is not slept through.
func (r record) capAtDeadline(wait time.Duration, now time.Time) time.Duration {
	if r.Deadline == nil || !now.Before(r.Deadline.Time) {
		return wait
	}
	return min(wait, r.Deadline.Sub(now))
}

// spreadInterval is span give or take a tenth, always the same for the same cluster.
func (s Snapshot) spreadInterval(span time.Duration) time.Duration {
	h := fnv.New32a()
	h.Write([]byte(s.Seed)) // an fnv hash takes everything
	return span*9/10 + time.Duration(h.Sum32())%(span/5)
}
