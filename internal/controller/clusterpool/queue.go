package clusterpool

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hotspare.io/hotspare/internal/patch"
	"hotspare.io/hotspare/internal/pool"
)

// setPositions writes the changed positions into the waiting claims.
func (r *Reconciler) setPositions(ctx context.Context, s *observation, p pool.Plan) error {
	steps := p.StepsOf(pool.SetPosition)
	switch {
	case len(p.Report.Queue) == 0:
		s.cache.positionsSetAt = time.Time{}
	case len(steps) > 0:
		s.cache.positionsSetAt = s.snapshot.Now
	}
	return forEachParallel(steps, func(st pool.Step) error { return r.setPosition(ctx, s, st) })
}

// setPosition writes the position of a waiting claim, and when its cluster is likely to run, into
// its status.
func (r *Reconciler) setPosition(ctx context.Context, s *observation, st pool.Step) error {
	before := s.claims[st.Claim]
	claim := before.DeepCopy()
	claim.Status.Position, claim.Status.EstimatedReadyTime = new(int32(st.Position)), nil
	if !st.Ready.IsZero() {
		at := metav1.NewTime(st.Ready).Rfc3339Copy()
		claim.Status.EstimatedReadyTime = &at
	}
	if _, err := patch.Status(ctx, r.Client, before, claim); err != nil {
		return fmt.Errorf("setting the position of claim %s: %w", claim.Name, err)
	}
	r.claims.RecordWrite(claim, r.Clock.Now())
	return nil
}

// soonerDelay returns the shorter of two delays; 0 means never.
func soonerDelay(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
