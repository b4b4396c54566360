package clusterpool

import (
	"context"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hotspare.io/hotspare/internal/bootstrap"
	steplookup "hotspare.io/hotspare/internal/bootstrap/lookup"
	"hotspare.io/hotspare/internal/gate"
	"hotspare.io/hotspare/internal/gate/lookup"
)

// stepSourcesTTL is how long a pool relies on the ConfigMaps and Secrets of its bootstrap that it has read while
// nothing else happens. They are not watched.
const stepSourcesTTL = 30 * time.Second

// cachedSteps is what the steps of one version of a ClusterBootstrap require. The content of its ConfigMaps and
// Secrets is used for dependenciesTTL.
type cachedSteps struct {
	at          time.Time
	version     string
	requirement bootstrap.Requirement
}

// observeBootstrap reads what the pool requires of its spares.
func (r *Reconciler) observeBootstrap(ctx context.Context, s *observation) error {
	policy, b, err := lookup.ReadBootstrap(ctx, r.Client, s.poolKey())
	if err != nil {
		return err
	}
	s.gates = gate.NewRequirement(policy, b)
	if b == nil || len(b.Spec.Steps) == 0 || s.gates.Problem != "" {
		s.cache.steps = cachedSteps{}
		s.steps, err = r.steps().ResolveSteps(ctx, policy, b)
		return err
	}
	known, now := &s.cache.steps, r.Clock.Now()
	version := fmt.Sprintf("%s/%d", b.UID, b.Generation)
	if known.version != version || known.requirement.Unwatched && now.Sub(known.at) >= dependenciesTTL {
		required, err := r.steps().ResolveSteps(ctx, policy, b)
		if err != nil {
			return err
		}
		*known = cachedSteps{at: now, version: version, requirement: required}
	}
	s.steps = known.requirement
	return nil
}

// hasUnfinishedClusters reports whether a cluster has begun the steps of the bootstrap and not finished them: it
// may have seen a change of a ConfigMap or Secret that this pass has not.
func (s *observation) hasUnfinishedClusters() bool {
	for _, cd := range s.clusters {
		if cd.Status.Bootstrap != nil && !bootstrap.IsFinished(cd) {
			return true
		}
	}
	return false
}

func (r *Reconciler) steps() steplookup.Reader {
	return steplookup.Reader{Cached: r.Client, Live: r.Live}
}

// poolOfPolicy returns the pool of a policy, which has its name.
func poolOfPolicy(_ context.Context, o client.Object) []reconcile.Request {
	return poolRequest(o.GetNamespace(), o.GetName())
}

// poolsOfBootstrap returns the pools that use a ClusterBootstrap.
func (r *Reconciler) poolsOfBootstrap(ctx context.Context, o client.Object) []reconcile.Request {
	pools, err := lookup.PoolsOf(ctx, r.Client, client.ObjectKeyFromObject(o))
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "finding the pools of a bootstrap")
	}
	var out []reconcile.Request
	for _, p := range pools {
		out = append(out, reconcile.Request{NamespacedName: p})
	}
	return out
}
