package ownership

import (
	"cmp"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
)

// ConfirmAdopter returns a fault.Denied if cd was adopted and another ClusterDeployment manages the same
// cluster: one that was not adopted, or that was adopted earlier. Two of them would start and stop the
// same machines for two desired states. The error names the other ClusterDeployment and the remedy.
//
// Two ClusterDeployments name the same cluster if they agree in the platform, the infraID and the ID of
// the cluster; on Cluster API, where infraIDs are names of objects, also in the namespace. An infraID
// alone does not suffice: two accounts of a cloud may have the same. ConfirmOwner protects the clusters
// of pools, so clusters outside pools do not count against them.
//
// This rule does not apply to clusters that hotspare or another installer created: otherwise a user who
// reads the IDs of such a cluster could keep hotspare from it with a ClusterDeployment of their own.
func ConfirmAdopter(ctx context.Context, cache client.Reader, cd *hivev1.ClusterDeployment, infraID string) error {
	if infraID == "" || !isAdopted(cd) || clusterIDOf(cd) == "" {
		return nil
	}
	var naming hivev1.ClusterDeploymentList
	if err := cache.List(ctx, &naming, client.MatchingFields{ByInfraID: infraID}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the clusters with infraID %s: %w", infraID, err)
	}
	pooled, err := isPooled(ctx, cache, cd)
	if err != nil {
		return err
	}
	for i := range naming.Items {
		other := &naming.Items[i]
		if other.UID == cd.UID || !isSameCluster(cd, other) || isAdopted(other) && !isEarlier(other, cd) {
			continue
		}
		if pooled {
			counts, err := isPooled(ctx, cache, other)
			if err != nil {
				return err
			}
			if !counts {
				continue
			}
		}
		return newAlreadyAdopted(client.ObjectKeyFromObject(other), client.ObjectKeyFromObject(cd))
	}
	return nil
}

func newAlreadyAdopted(other, cd types.NamespacedName) error {
	return fault.NewDenied("ClusterDeployment %s manages the same cluster, so its machines cannot be started or stopped from this ClusterDeployment: "+
		"delete %s, which keeps the cluster if spec.preserveOnDelete is true, or delete the other one", other, cd)
}

// isAdopted reports whether neither hotspare nor another installer created the cluster.
func isAdopted(cd *hivev1.ClusterDeployment) bool {
	return cd.Spec.Provisioning == nil && cd.Spec.ClusterInstallRef == nil
}

func clusterIDOf(cd *hivev1.ClusterDeployment) string {
	if md := cd.Spec.ClusterMetadata; md != nil {
		return md.ClusterID
	}
	return ""
}

func isSameCluster(a, b *hivev1.ClusterDeployment) bool {
	platform := a.Spec.Platform.Name()
	return clusterIDOf(a) == clusterIDOf(b) && platform == b.Spec.Platform.Name() &&
		(platform != "capi" || a.Namespace == b.Namespace)
}

// isEarlier reports whether a was created before b. Times of creation are whole seconds; the UID decides
// between equal ones, so that exactly one of two is the earlier one.
func isEarlier(a, b *hivev1.ClusterDeployment) bool {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID)) < 0
}
