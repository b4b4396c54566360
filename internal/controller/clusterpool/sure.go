package clusterpool

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
)

// Pool and cluster informers are not synchronized: a pass may observe a pool in which a name is no
// longer recorded, because another pass has seen its cluster, and not observe that cluster. A pass
// that depends on having observed all clusters, to create more or to remove the pool's finalizer,
// must confirm that it has. It has if nobody wrote the pool since this process last wrote it with
// all clusters observed: names leave the record only when this process's cache has the cluster.
// Otherwise the pass asks the API server.

// recordPoolWrite records the pool as just written.
func (r *Reconciler) recordPoolWrite(s *observation) {
	s.poolConfirmed = true
	r.pools.RecordWrite(s.pool.DeepCopy(), r.Clock.Now())
	if s.allObserved {
		s.cache.version = s.pool.ResourceVersion
	}
}

// confirmAllObserved confirms that the pass has observed the current pool, and every cluster that
// is not recorded in it. It returns a Conflict if the pass missed one: the cache will catch up.
func (r *Reconciler) confirmAllObserved(ctx context.Context, s *observation) error {
	if s.allObserved {
		return nil
	}
	// The pool is read before the clusters: a name leaves the record only when the cluster is there.
	var p hivev1.ClusterPool
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(s.pool), &p); err != nil {
		return fmt.Errorf("reading pool %s: %w", s.pool.Name, err)
	}
	if p.ResourceVersion != s.pool.ResourceVersion {
		return fault.New(fault.Conflict, fmt.Errorf("pool %s has changed since it was seen", p.Name))
	}
	var list hivev1.ClusterDeploymentList
	if err := r.Live.List(ctx, &list, client.MatchingLabels{
		hivev1.LabelPoolNamespace: p.Namespace, hivev1.LabelPoolName: p.Name,
	}); err != nil {
		return fmt.Errorf("looking for clusters of pool %s: %w", p.Name, err)
	}
	s.poolConfirmed = true
	recorded := map[string]bool{}
	for _, name := range p.Status.Pending {
		recorded[name] = true
	}
	for _, cd := range list.Items {
		switch seen := s.clusters[cd.Name]; {
		case seen == nil && !recorded[cd.Name]:
			return fault.New(fault.Conflict, fmt.Errorf("cluster %s of pool %s has not been seen yet", cd.Name, p.Name))
		case seen != nil && seen.DeletionTimestamp == nil && cd.DeletionTimestamp != nil: // it counts against maxConcurrent
			return fault.New(fault.Conflict, fmt.Errorf("cluster %s of pool %s has not been seen going yet", cd.Name, p.Name))
		}
	}
	s.allObserved = true
	return nil
}

// confirmPoolUnchanged confirms that the pool is as the pass observed it. To create what was
// recorded earlier, the memory of this process does not suffice: another process may have been
// leader since, and removed the pool's finalizer.
func (r *Reconciler) confirmPoolUnchanged(ctx context.Context, s *observation) error {
	if s.poolConfirmed {
		return nil
	}
	var p hivev1.ClusterPool
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(s.pool), &p); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading pool %s: %w", s.pool.Name, err)
	}
	if p.UID != s.pool.UID || p.ResourceVersion != s.pool.ResourceVersion {
		return fault.New(fault.Conflict, fmt.Errorf("pool %s has changed since it was seen, or is gone", s.pool.Name))
	}
	return nil
}

// unobservedPending returns the recorded names whose clusters the cache does not show.
func (s *observation) unobservedPending() []string {
	var out []string
	for _, name := range s.pool.Status.Pending {
		if s.clusters[name] == nil || s.remembered[name] {
			out = append(out, name)
		}
	}
	return out
}

// withoutDropped returns names without the dropped ones.
func (s *observation) withoutDropped(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(s.droppedNames, name) })
}
