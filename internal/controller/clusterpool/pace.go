package clusterpool

import (
	"time"

	"hotspare.io/hotspare/internal/pool"
)

const (
	// batch is how many clusters a pass creates at most: a claim that arrives
	// meanwhile waits for the end of the pass.
	batch = 16
	// soon is when the pass after a full batch begins.
	soon = time.Millisecond
	// refill is when a pool in demand looks again whether to create clusters.
	refill = 100 * time.Millisecond
	// demand is for how long a pool counts as in demand after it served a claim. The
	// API keeps that time in seconds: less than one would be none.
	demand = 2 * time.Second
)

// pace is how many clusters a pass creates at most, and when the next pass begins
// if the plan has more. What makes a cluster costs the API server several times
// what serves a claim. So while claims are being served, and half of the pool is
// there for those that come next, clusters are made one at a time, not one right
// after the other, and by no pass that serves.
func (s *seen) pace(p pool.Plan, now time.Time) (most int, later time.Duration) {
	enough := p.Report.Waiting == 0 && 2*p.Report.Count[pool.Assignable] >= s.snapshot.Settings.Size
	switch {
	case enough && p.Count(pool.Bind) > 0:
		return 0, refill
	case enough && s.inDemand(now):
		if len(s.snapshot.Pending) > 0 || p.Report.Count[pool.Installing] > 0 || s.grew(now) {
			return 0, refill
		}
		return 1, refill
	default:
		return batch, soon
	}
}

func (s *seen) inDemand(now time.Time) bool {
	for i := range s.snapshot.Members {
		m := &s.snapshot.Members[i]
		if m.Claim == "" {
			continue
		}
		if at := s.clusters[m.Name].Spec.ClusterPoolRef.ClaimedTimestamp; at != nil && now.Sub(at.Time) < demand {
			return true
		}
	}
	return false
}

// grew reports whether a cluster was made a moment ago.
func (s *seen) grew(now time.Time) bool {
	for i := range s.snapshot.Members {
		if now.Sub(s.snapshot.Members[i].Created) < demand {
			return true
		}
	}
	return false
}
