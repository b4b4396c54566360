package clusterpool

import (
	"context"
	"iter"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/mutationcache"
)

// sharedIndexes index the cache's own objects by their pool.
type sharedIndexes struct {
	clusters *mutationcache.SharedIndex[*hivev1.ClusterDeployment]
	claims   *mutationcache.SharedIndex[*hivev1.ClusterClaim]
}

func newSharedIndexes(ctx context.Context, c cache.Informers) (*sharedIndexes, error) {
	clusters, err := mutationcache.NewSharedIndex(ctx, c, &hivev1.ClusterDeployment{}, "clusterpool", poolIndexKeys)
	if err != nil {
		return nil, err
	}
	claims, err := mutationcache.NewSharedIndex(ctx, c, &hivev1.ClusterClaim{}, "clusterpool", func(c *hivev1.ClusterClaim) []string {
		return []string{types.NamespacedName{Namespace: c.Namespace, Name: c.Spec.ClusterPoolName}.String()}
	})
	if err != nil {
		return nil, err
	}
	return &sharedIndexes{clusters, claims}, nil
}

// poolIndexKeys returns the pool of a cluster as an index key; none if it has no pool.
func poolIndexKeys(cd *hivev1.ClusterDeployment) []string {
	if p := poolKeyOf(cd); p.Name != "" {
		return []string{p.String()}
	}
	return nil
}

// listCachedClusters returns the clusters of a pool in the cache, by name. Do not change them.
func (r *Reconciler) listCachedClusters(ctx context.Context, key types.NamespacedName) (map[string]*hivev1.ClusterDeployment, error) {
	if r.shared != nil {
		return mapByName(r.shared.clusters.ListByKey(key.String()))
	}
	var list hivev1.ClusterDeploymentList
	err := r.Client.List(ctx, &list, client.MatchingFields{byPool: key.String()}, client.UnsafeDisableDeepCopy)
	return mapByName(len(list.Items), pointersTo(list.Items), err)
}

// listCachedClaims returns the claims on a pool in the cache, by name. Do not change them.
func (r *Reconciler) listCachedClaims(ctx context.Context, key types.NamespacedName) (map[string]*hivev1.ClusterClaim, error) {
	if r.shared != nil {
		return mapByName(r.shared.claims.ListByKey(key.String()))
	}
	var list hivev1.ClusterClaimList
	err := r.Client.List(ctx, &list, client.InNamespace(key.Namespace), client.MatchingFields{byClaim: key.Name}, client.UnsafeDisableDeepCopy)
	return mapByName(len(list.Items), pointersTo(list.Items), err)
}

func mapByName[T client.Object](n int, all iter.Seq[T], err error) (map[string]T, error) {
	if err != nil {
		return nil, err
	}
	out := make(map[string]T, n)
	for o := range all {
		out[o.GetName()] = o
	}
	return out, nil
}

func pointersTo[T any](items []T) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for i := range items {
			if !yield(&items[i]) {
				return
			}
		}
	}
}
