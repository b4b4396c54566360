package power

import (
	"hash/fnv"
	"time"
)

// Requeue intervals. Local clusters resume in seconds and must be noticed at once; clouds take
// minutes, and their APIs must not be overloaded. During a transition the interval is therefore a
// tenth of the time already waited. It does not grow because a booting API does not answer (Hive
// D11).
const (
	nextPassDelay = time.Millisecond
	minInterval   = 200 * time.Millisecond
	maxInterval   = 30 * time.Second
	// Gaps that do not close by waiting are checked less often.
	minGraveInterval = 5 * time.Second
	maxGraveInterval = 5 * time.Minute
	// No event reports a machine that somebody else starts or stops (Hive D14).
	runningInterval     = 2 * time.Minute
	hibernatingInterval = 5 * time.Minute
	// Nodes that have just rejoined with new client certificates request serving certificates
	// next.
	rejoinedInterval = 30 * time.Second
)

// requeueDelay returns when to look again at a cluster with gap g, at the latest at the deadline.
func (r record) requeueDelay(now time.Time, g gap) time.Duration {
	wait := now.Sub(r.StartedAt.Time) / 10
	if g.permanent {
		wait = min(max(wait, minGraveInterval), maxGraveInterval)
	} else {
		wait = min(max(wait, minInterval), maxInterval)
	}
	return r.capAtDeadline(wait, now)
}

// capAtDeadline shortens wait so that a pass runs at the deadline.
func (r record) capAtDeadline(wait time.Duration, now time.Time) time.Duration {
	if r.Deadline == nil || !now.Before(r.Deadline.Time) {
		return wait
	}
	return min(wait, r.Deadline.Sub(now))
}

// spreadInterval returns span plus or minus up to a tenth, always the same for the same cluster.
func (s Snapshot) spreadInterval(span time.Duration) time.Duration {
	h := fnv.New32a()
	h.Write([]byte(s.Seed)) // writing to an fnv hash never fails
	return span*9/10 + time.Duration(h.Sum32())%(span/5)
}
