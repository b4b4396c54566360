// Package ownership confirms that the machines that an infraID marks belong to the cluster that
// names it.
//
// Users who can write a ClusterDeployment or a ClusterProvision can write any infraID into it,
// and hotspare starts, stops and destroys what an infraID marks. Only hotspare and the admins of
// a pool write the clusters of the pool (config/admission/access.yaml). The infraID of such a
// cluster is therefore its own, and no other object may use it. A platform that records an owner
// with its machines, as the local platform does, checks that as well: this protects the clusters
// outside pools, too.
package ownership

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/rbac"
)

// ByInfraID is the name of the index of ClusterDeployments by their infraID. ConfirmOwner needs
// it in the cache that it reads.
const ByInfraID = "spec.clusterMetadata.infraID"

// InfraIDs returns the keys of a ClusterDeployment in the index ByInfraID.
func InfraIDs(o client.Object) []string {
	if md := o.(*hivev1.ClusterDeployment).Spec.ClusterMetadata; md != nil && md.InfraID != "" {
		return []string{md.InfraID}
	}
	return nil
}

// ConfirmOwner returns a fault.Denied if infraID belongs to another cluster: if a cluster of a
// pool, in a namespace that hotspare has created for it, names it in spec.clusterMetadata, and cd
// is not such a cluster or does not name it itself. The error names the other cluster and the
// remedy. Clusters outside pools do not count: otherwise anybody could create one to keep
// hotspare from destroying a cluster.
func ConfirmOwner(ctx context.Context, cache client.Reader, cd *hivev1.ClusterDeployment, infraID string) error {
	if infraID == "" {
		return nil
	}
	var naming hivev1.ClusterDeploymentList
	if err := cache.List(ctx, &naming, client.MatchingFields{ByInfraID: infraID}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the clusters with infraID %s: %w", infraID, err)
	}
	if len(naming.Items) == 0 || len(naming.Items) == 1 && naming.Items[0].UID == cd.UID {
		return nil
	}
	if slices.Contains(InfraIDs(cd), infraID) {
		if pooled, err := isPooled(ctx, cache, cd); err != nil || pooled {
			return err
		}
	}
	for i := range naming.Items {
		other := &naming.Items[i]
		if other.UID == cd.UID || !slices.Contains(InfraIDs(other), infraID) {
			continue
		}
		switch pooled, err := isPooled(ctx, cache, other); {
		case err != nil:
			return err
		case pooled:
			return NewDenied(infraID, client.ObjectKeyFromObject(other))
		}
	}
	return nil
}

// isPooled reports whether cd names a pool and its namespace was created for a cluster of that
// pool.
func isPooled(ctx context.Context, cache client.Reader, cd *hivev1.ClusterDeployment) (bool, error) {
	if cd.Spec.ClusterPoolRef == nil {
		return false, nil
	}
	var ns corev1.Namespace
	if err := cache.Get(ctx, types.NamespacedName{Name: cd.Namespace}, &ns); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return rbac.IsPoolNamespace(&ns, *cd.Spec.ClusterPoolRef), nil
}

// NewDenied returns the error for an infraID that belongs to another cluster, owner.
func NewDenied(infraID string, owner types.NamespacedName) error {
	return fault.NewDenied("infraID %s belongs to ClusterDeployment %s, so its resources cannot be changed from this ClusterDeployment: "+
		"correct the infraID, or set spec.preserveOnDelete to delete this ClusterDeployment without destroying them", infraID, owner)
}
