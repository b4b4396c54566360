package clusterpool

import (
	"context"
	"iter"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fresh"
)

// shared are the cache's own objects by their pool.
type shared struct {
	clusters *fresh.Shared[*hivev1.ClusterDeployment]
	claims   *fresh.Shared[*hivev1.ClusterClaim]
}

func share(ctx context.Context, c cache.Informers) (*shared, error) {
	clusters, err := fresh.Share(ctx, c, &hivev1.ClusterDeployment{}, "clusterpool", poolKey)
	if err != nil {
		return nil, err
	}
	claims, err := fresh.Share(ctx, c, &hivev1.ClusterClaim{}, "clusterpool", func(c *hivev1.ClusterClaim) []string {
		return []string{types.NamespacedName{Namespace: c.Namespace, Name: c.Spec.ClusterPoolName}.String()}
	})
	if err != nil {
		return nil, err
	}
	return &shared{clusters, claims}, nil
}

// poolKey is the pool that a cluster belongs to, as an index has it.
func poolKey(cd *hivev1.ClusterDeployment) []string {
	if p := poolOf(cd); p.Name != "" {
		return []string{p.String()}
	}
	return nil
}

// cachedClusters are the clusters of a pool in the cache, by name, not to be changed.
func (r *Reconciler) cachedClusters(ctx context.Context, key types.NamespacedName) (map[string]*hivev1.ClusterDeployment, error) {
	if r.shared != nil {
		return byName(r.shared.clusters.Under(key.String()))
	}
	var list hivev1.ClusterDeploymentList
	err := r.Client.List(ctx, &list, client.MatchingFields{byPool: key.String()}, client.UnsafeDisableDeepCopy)
	return byName(len(list.Items), references(list.Items), err)
}

// cachedClaims are the claims on a pool in the cache, by name, not to be changed.
func (r *Reconciler) cachedClaims(ctx context.Context, key types.NamespacedName) (map[string]*hivev1.ClusterClaim, error) {
	if r.shared != nil {
		return byName(r.shared.claims.Under(key.String()))
	}
	var list hivev1.ClusterClaimList
	err := r.Client.List(ctx, &list, client.InNamespace(key.Namespace), client.MatchingFields{byClaim: key.Name}, client.UnsafeDisableDeepCopy)
	return byName(len(list.Items), references(list.Items), err)
}

func byName[T client.Object](n int, all iter.Seq[T], err error) (map[string]T, error) {
	if err != nil {
		return nil, err
	}
	out := make(map[string]T, n)
	for o := range all {
		out[o.GetName()] = o
	}
	return out, nil
}

func references[T any](items []T) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for i := range items {
			if !yield(&items[i]) {
				return
			}
		}
	}
}
