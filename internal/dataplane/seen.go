// Package dataplane decides what becomes of one DataPlane next: how it gets its cluster,
// its nodes and its agent, what its agent is told and believed, and how all that it holds
// is given back.
//
// Decide is one pure function from what is Seen to a Plan: it reads no cluster and no
// clock. One pass takes a data plane one phase further at most; its steps are done
// first, and its status, which says so, is written when they have succeeded. So whatever
// is killed on the way is done again, and every step bears that.
package dataplane

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// Snapshot is everything that the next steps of one data plane depend on. Decide changes
// none of it.
type Snapshot struct {
	Now time.Time
	// Started is when this process started: what agents answered before does not count.
	Started time.Time
	Plane   *v1alpha1.DataPlane
	// Region is the FleetRegion of its namespace with its provider and region, if that
	// counts. NoRegion says why there is none; Hosts whether instances that name a data
	// plane of that provider and region mean one of this namespace.
	Region   *v1alpha1.FleetRegion
	NoRegion string
	Hosts    bool
	// Types are the InstanceTypes that there are, by name; Pools the ClusterPools of its
	// namespace that its region names.
	Types map[string]*v1alpha1.InstanceType
	Pools map[string]*hivev1.ClusterPool
	// Failures is how many Failed data planes of its types its region remembers.
	Failures int
	// Claim, Cluster and Agent are there, or nil if they are not, past all caches.
	Claim   *hivev1.ClusterClaim
	Cluster *hivev1.ClusterDeployment
	Agent   *v1alpha1.DataPlaneAgent
	// Kubeconfig is set when the Secret that spec.clusterRef.kubeconfigSecret names is there.
	Kubeconfig bool
	// Nodes are the MachinePools of Cluster.
	Nodes []*hivev1.MachinePool
	// Instances are all that name the data plane, its provider and its region.
	Instances []*v1alpha1.ServiceInstance
	// Moved are those that the agent is told of and that name another data plane, or none.
	Moved []*v1alpha1.ServiceInstance
	// Installed is when this process last saw to the agent; Removed is set when it has
	// taken the agent off a cluster that stays, Revoked when it has taken its rights.
	Installed        time.Time
	Removed, Revoked bool
}

// Phase is how far the data plane is; the empty one is Accepted.
func (s Snapshot) currentPhase() v1alpha1.DataPlanePhase {
	if s.Plane.Status.Phase == "" {
		return v1alpha1.PhaseAccepted
	}
	return s.Plane.Status.Phase
}

func (s Snapshot) isManaged() bool { return s.Plane.Spec.Ownership != v1alpha1.Registered }

// clusterRef is the data plane's reference to its cluster; empty if it has none yet.
func (s Snapshot) clusterRef() v1alpha1.ClusterReference {
	if s.Plane.Spec.ClusterRef == nil {
		return v1alpha1.ClusterReference{}
	}
	return *s.Plane.Spec.ClusterRef
}

// keepsCluster reports whether the cluster is left when the data plane goes.
func (s Snapshot) keepsCluster() bool {
	return !s.isManaged() || s.clusterRef().KubeconfigSecret != nil || s.Plane.Spec.DeletionPolicy == v1alpha1.DeletionOrphan
}

// IsBeingRemoved reports whether all that a data plane holds is to be given back. Whoever asks
// looks past all caches then, until the phase says so too.
func IsBeingRemoved(dp *v1alpha1.DataPlane) bool {
	return dp.DeletionTimestamp != nil || dp.Status.ReleasedAt != nil ||
		dp.Status.Phase == v1alpha1.PhaseCleanup || dp.Status.Phase == v1alpha1.PhaseFailed
}

// OwnsObject reports whether an object is what this data plane has made for itself.
func OwnsObject(dp *v1alpha1.DataPlane, o interface{ GetAnnotations() map[string]string }) bool {
	return o.GetAnnotations()[v1alpha1.AnnotationDataPlane] == string(dp.UID)
}

// IsLocal reports whether the cluster's machines are processes of the hub's computer.
func (s Snapshot) IsLocal() bool {
	if s.Cluster != nil {
		return s.Cluster.Spec.Platform.Name() == localPlatform
	}
	return s.Plane.Spec.Provider == localPlatform
}

// localPlatform is the local platform, as in spec.platform and as a provider.
const localPlatform = "local"

// KubeconfigSecret names the Secret through which the cluster is reached; false if there is none.
func (s Snapshot) KubeconfigSecret() (types.NamespacedName, bool) {
	if ref := s.clusterRef().KubeconfigSecret; ref != nil {
		return types.NamespacedName{Namespace: s.Plane.Namespace, Name: ref.Name}, s.Kubeconfig
	}
	if s.Cluster == nil || s.Cluster.Spec.ClusterMetadata == nil {
		return types.NamespacedName{}, false
	}
	name := s.Cluster.Spec.ClusterMetadata.AdminKubeconfigSecretRef.Name
	return types.NamespacedName{Namespace: s.Cluster.Namespace, Name: name}, name != ""
}

// isClusterGone reports whether the cluster that there was is not there any more. Of a cluster
// that we reach by a Secret nobody knows: if the Secret is gone and the agent silent, it
// counts as gone.
func (s Snapshot) isClusterGone() bool {
	ref := s.clusterRef()
	switch {
	case ref.KubeconfigSecret != nil:
		return !s.Kubeconfig && !meta.IsStatusConditionTrue(s.Plane.Status.Conditions, v1alpha1.DataPlaneAgentLive)
	case ref.Claim != nil:
		return s.Claim == nil && s.Cluster == nil
	case ref.Deployment != nil:
		return s.Cluster == nil
	}
	return true
}

// assignedInstances are the instances that it has to know: those that name it, and are meant to.
// Whose FleetRegion is not there any more keeps those that it knows: nobody can be sure
// that others are meant for it.
func (s Snapshot) assignedInstances() []*v1alpha1.ServiceInstance {
	return slices.DeleteFunc(slices.Clone(s.Instances), func(i *v1alpha1.ServiceInstance) bool {
		return !s.Hosts && !s.isListed(string(i.UID))
	})
}

func (s Snapshot) isListed(uid string) bool {
	return s.Agent != nil && slices.ContainsFunc(s.Agent.Spec.Instances, func(i v1alpha1.AgentInstance) bool { return i.UID == uid && !i.Reserved })
}
