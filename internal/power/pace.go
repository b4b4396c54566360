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
	soon    = time.Millisecond
	fastest = 200 * time.Millisecond
	slowest = 30 * time.Second
	// What waiting will not mend is looked at less often.
	graveFastest = 5 * time.Second
	graveSlowest = 5 * time.Minute
	// Nobody tells us about a machine that changes behind our back (Hive D14).
	lookRunning     = 2 * time.Minute
	lookHibernating = 5 * time.Minute
	// Nodes that have just come back with new client certificates ask for others.
	lookRejoined = 30 * time.Second
)

// pace is when to look again at a cluster that lacks g, at the latest at the deadline.
func (r record) pace(now time.Time, g gap) time.Duration {
	wait := now.Sub(r.StartedAt.Time) / 10
	if g.grave {
		wait = min(max(wait, graveFastest), graveSlowest)
	} else {
		wait = min(max(wait, fastest), slowest)
	}
	return r.within(wait, now)
}

// within shortens wait so that the deadline is not slept through.
func (r record) within(wait time.Duration, now time.Time) time.Duration {
	if r.Deadline == nil || !now.Before(r.Deadline.Time) {
		return wait
	}
	return min(wait, r.Deadline.Sub(now))
}

// steady is span give or take a tenth, always the same for the same cluster.
func (s Seen) steady(span time.Duration) time.Duration {
	h := fnv.New32a()
	h.Write([]byte(s.Seed)) // an fnv hash takes everything
	return span*9/10 + time.Duration(h.Sum32())%(span/5)
}
