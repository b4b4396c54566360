package clusterpool

import (
	"time"

	"hotspare.io/hotspare/internal/pool"
	"hotspare.io/hotspare/internal/pool/facts"
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
	// backlog is how many clusters of a pool may wait for the controllers that install them.
	// Those take up the clusters of all pools in one line: were it longer, a pool of any size
	// would hold up the others.
	backlog = 32
	// takeUp is how long a cluster counts among these: one that is not taken up by then does
	// not wait in a line.
	takeUp = time.Minute
)

// deletions are the deletions of this pass, and when the next pass goes on with the others.
// They, too, are worked off in one line with those of other pools.
func deletions(p pool.Plan) (now []pool.Step, later time.Duration) {
	all := p.Of(pool.Delete)
	if len(all) <= batch {
		return all, 0
	}
	return all[:batch], refill
}

// backlogLeft is how many more clusters may be made before those that were made are taken
// up; of fake ones, before they are installed, since nothing but the controllers' line takes time.
func (s *seen) backlogLeft(now time.Time) int {
	left, fake := backlog-len(s.snapshot.Pending), facts.Fake(s.pool)
	for i := range s.snapshot.Members {
		m := &s.snapshot.Members[i]
		waits := !m.Installed && !m.Deleting && !m.GaveUp && (!m.Begun || fake && m.RequirementsUnmet == "" && !m.Failing)
		if waits && now.Sub(m.Created) < takeUp {
			left--
		}
	}
	return max(0, left)
}

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
	}
	if left := s.backlogLeft(now); left < batch {
		return left, refill
	}
	return batch, soon
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
