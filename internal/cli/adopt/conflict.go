package adopt

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// findOtherManager returns the first ClusterDeployment, by namespace and name, that manages the cluster of
// cd already, and how it is recognized; nil if there is none. server is the URL of the cluster's API
// server.
func findOtherManager(clusters []hivev1.ClusterDeployment, cd *hivev1.ClusterDeployment, server string) (*hivev1.ClusterDeployment, string) {
	sorted := slices.Clone(clusters)
	slices.SortFunc(sorted, func(a, b hivev1.ClusterDeployment) int {
		return strings.Compare(client.ObjectKeyFromObject(&a).String(), client.ObjectKeyFromObject(&b).String())
	})
	for i := range sorted {
		other := &sorted[i]
		if client.ObjectKeyFromObject(other) == client.ObjectKeyFromObject(cd) {
			continue
		}
		if how := sharedIdentity(other, cd, server); how != "" {
			return other, how
		}
	}
	return nil, ""
}

// sharedIdentity says by what other is recognized as the same cluster as cd; "" if it is another one.
func sharedIdentity(other, cd *hivev1.ClusterDeployment, server string) string {
	mine, theirs := cd.Spec.ClusterMetadata, other.Spec.ClusterMetadata
	address := serverAddress(server)
	switch {
	case theirs != nil && theirs.ClusterID != "" && theirs.ClusterID == mine.ClusterID:
		return "cluster ID " + mine.ClusterID
	case theirs != nil && theirs.InfraID == mine.InfraID && selectsSameMachines(other, cd):
		return "infraID " + mine.InfraID
	case address != "" && serverAddress(other.Status.APIURL) == address:
		return "API server " + address
	}
	return ""
}

// selectsSameMachines reports whether an infraID that both clusters have marks the same machines.
func selectsSameMachines(a, b *hivev1.ClusterDeployment) bool {
	platform := a.Spec.Platform.Name()
	return platform == b.Spec.Platform.Name() && platform != "none" && (platform != "capi" || a.Namespace == b.Namespace)
}

// confirmSameCluster returns an error unless the existing ClusterDeployment is an earlier adoption of the
// cluster of cd, to be continued.
func confirmSameCluster(existing, cd *hivev1.ClusterDeployment) error {
	key := client.ObjectKeyFromObject(existing)
	mine, theirs := cd.Spec.ClusterMetadata, existing.Spec.ClusterMetadata
	switch {
	case existing.DeletionTimestamp != nil:
		return fmt.Errorf("ClusterDeployment %s is being deleted: try again when it is deleted", key)
	case !existing.Spec.Installed || theirs == nil || theirs.ClusterID != mine.ClusterID:
		return fmt.Errorf("ClusterDeployment %s exists and is another cluster: choose another name", key)
	case theirs.InfraID != mine.InfraID || existing.Spec.Platform.Name() != cd.Spec.Platform.Name():
		return fmt.Errorf("ClusterDeployment %s is this cluster already, with infraID %s on platform %s: "+
			"delete it, which keeps the cluster if spec.preserveOnDelete is true, and adopt the cluster again", key, theirs.InfraID, existing.Spec.Platform.Name())
	case poolOf(existing) != poolOf(cd):
		return fmt.Errorf("ClusterDeployment %s is this cluster already, and cannot join or leave a pool: "+
			"delete it, which keeps the cluster if spec.preserveOnDelete is true, and adopt the cluster again", key)
	}
	return nil
}

func poolOf(cd *hivev1.ClusterDeployment) client.ObjectKey {
	if ref := cd.Spec.ClusterPoolRef; ref != nil {
		return client.ObjectKey{Namespace: ref.Namespace, Name: ref.PoolName}
	}
	return client.ObjectKey{}
}
