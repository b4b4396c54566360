package clusterpool

import (
	"context"
	"fmt"

	"hotspare.io/hotspare/internal/patch"
	"hotspare.io/hotspare/internal/pool"
)

// report writes the pool's status, if it changed: counts, conditions, and the
// names under which clusters are about to be created.
func (r *Reconciler) report(ctx context.Context, s *seen, rep pool.Report, names []string) error {
	before := s.pool.DeepCopy()
	pending := append(s.unseen(), names...)
	s.pool.Status = s.objects().Status(rep, pending, r.Clock.Now())
	wrote, err := patch.Status(ctx, r.Client, before, s.pool)
	if err != nil {
		return fmt.Errorf("writing the status of pool %s: %w", s.pool.Name, err)
	}
	if wrote {
		r.wrotePool(s)
	}
	return nil
}
