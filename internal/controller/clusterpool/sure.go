package clusterpool

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
)

// The watches of pools and of clusters are two: a pass may see a pool in which a
// name is no longer recorded, since somebody has seen its cluster, and not see
// that cluster. A pass that counts on having seen all clusters, to make more or to
// let the pool go, must be sure of it. It is when nobody wrote the pool since this
// process did while it was sure: names leave the record only when this process's
// cache has the cluster. Otherwise it asks the API server.

// recordPoolWrite remembers the pool as it was just written.
func (r *Reconciler) recordPoolWrite(s *observation) {
	s.poolConfirmed = true
	r.pools.RecordWrite(s.pool.DeepCopy(), r.Clock.Now())
	if s.allObserved {
		s.cache.version = s.pool.ResourceVersion
	}
}

// confirmAllObserved makes certain that the pass has seen the pool as it is, and every cluster
// that is not recorded in it. What it missed is a conflict: the cache will have it.
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

// confirmPoolUnchanged makes certain that the pool is as the pass has seen it. To make what was recorded
// before, it is not enough what this process remembers: another may have led since, and
// let the pool go.
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

// unobservedPending are the recorded names whose clusters the cache does not show.
func (s *observation) unobservedPending() []string {
	var out []string
	for _, name := range s.pool.Status.Pending {
		if s.clusters[name] == nil || s.remembered[name] {
			out = append(out, name)
		}
	}
	return out
}

// withoutDropped leaves out the names that are dropped.
func (s *observation) withoutDropped(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(s.droppedNames, name) })
}
