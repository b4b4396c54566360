package clusterpool

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/mutationcache"
)

// Names of the indexes that the passes use.
const (
	byPool  = "pool"
	byClaim = "spec.clusterPoolName"
)

// AddIndexes adds the indexes that this controller needs to a cache.
func AddIndexes(ctx context.Context, ix client.FieldIndexer) error {
	if err := ix.IndexField(ctx, &hivev1.ClusterDeployment{}, byPool, func(o client.Object) []string {
		return poolIndexKeys(o.(*hivev1.ClusterDeployment))
	}); err != nil {
		return err
	}
	return ix.IndexField(ctx, &hivev1.ClusterClaim{}, byClaim, func(o client.Object) []string {
		return []string{o.(*hivev1.ClusterClaim).Spec.ClusterPoolName}
	})
}

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
