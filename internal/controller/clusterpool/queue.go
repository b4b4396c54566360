package clusterpool

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/patch"
	"hotspare.io/hotspare/internal/pool"
)

const (
	// untold is how long a claim waits before it is told its place: most are
	// served before, and what nobody reads would only be in the way.
	untold = 5 * time.Second
	// tellEvery is how often the claims of a pool are told at most, and tellRate
	// how many of them a second: whenever one is served, all others move up.
	tellEvery = 10 * time.Second
	tellRate  = 10
	// vague is by how much an estimate may move without being told again.
	vague = 10 * time.Second
)

// positionsWait returns how long to wait before n positions are set; when it is 0, they are
// being set now.
func (m *memory) positionsWait(n int, now time.Time) time.Duration {
	pause := max(tellEvery, time.Duration(n)*time.Second/tellRate)
	if next := m.positionsSetAt.Add(pause); !m.positionsSetAt.IsZero() && now.Before(next) {
		return next.Sub(now)
	}
	m.positionsSetAt = now
	return 0
}

// tell writes into the claims that wait what place they have, and when their
// cluster is likely to run. It returns when to look again.
func (r *Reconciler) tell(ctx context.Context, s *seen, queue []pool.Wait) (time.Duration, error) {
	if len(queue) == 0 {
		s.memory.positionsSetAt = time.Time{}
		return 0, nil
	}
	var next time.Duration
	var news []pool.Wait
	now := r.Clock.Now()
	for _, w := range queue {
		claim := s.claims[w.Claim]
		if left := claim.CreationTimestamp.Add(untold).Sub(now); left > 0 {
			next = soonest(next, left)
		} else if !knows(claim, w) {
			news = append(news, w)
		}
	}
	if len(news) == 0 {
		return next, nil
	}
	if wait := s.memory.positionsWait(len(news), now); wait > 0 {
		return soonest(next, wait), nil
	}
	return next, each(news, func(w pool.Wait) error { return r.tellOne(ctx, s.claims[w.Claim], w) })
}

func (r *Reconciler) tellOne(ctx context.Context, claim *hivev1.ClusterClaim, w pool.Wait) error {
	before := claim
	claim = claim.DeepCopy()
	claim.Status.Position, claim.Status.EstimatedReadyTime = new(int32(w.Position)), nil
	if !w.Ready.IsZero() {
		at := metav1.NewTime(w.Ready).Rfc3339Copy()
		claim.Status.EstimatedReadyTime = &at
	}
	if _, err := patch.Status(ctx, r.Client, before, claim); err != nil {
		return fmt.Errorf("telling claim %s its place: %w", claim.Name, err)
	}
	r.claims.Note(claim, r.Clock.Now())
	return nil
}

// knows reports whether a claim has been told as much.
func knows(claim *hivev1.ClusterClaim, w pool.Wait) bool {
	st := claim.Status
	if st.Position == nil || int(*st.Position) != w.Position || w.Ready.IsZero() != (st.EstimatedReadyTime == nil) {
		return false
	}
	return w.Ready.IsZero() || w.Ready.Sub(st.EstimatedReadyTime.Time).Abs() < vague
}

// soonest is the sooner of two times to look again; 0 is never.
func soonest(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
