package diagnostics

import (
	"context"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
)

// pruneInterval is the time between two deletions of old bundles. A bundle becomes old without any change that a
// watch reports.
const pruneInterval = time.Hour

// Pruner deletes bundles that exceed the limits of a store, also while no cluster fails: the Reconciler deletes old
// bundles only when it has written one. It is a manager.Runnable.
type Pruner struct {
	Store Store
	Clock clock.WithTicker
}

// NeedLeaderElection returns true: replicas may share a store.
func (p *Pruner) NeedLeaderElection() bool { return true }

// Start deletes old bundles now, and every pruneInterval until ctx ends. It logs an error of the store, and tries again
// after the next interval.
func (p *Pruner) Start(ctx context.Context) error {
	ticker := p.Clock.NewTicker(pruneInterval)
	defer ticker.Stop()
	for {
		p.prune(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

func (p *Pruner) prune(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	if err := p.Store.Prune(ctx, p.Clock.Now()); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "deleting old bundles of diagnostics")
	}
}
