// Package dataplane decides the next steps of one DataPlane: how it gets its cluster, its nodes and
// its agent, which instances its agent must run, whether the agent's report is valid, and how
// everything is released.
//
// Decide is a pure function from a Snapshot to a Plan: it reads no cluster and no clock. One pass
// advances a data plane by at most one phase; its steps are executed first, and its status, which
// records the phase, is written when they have succeeded. After a crash, the steps are therefore
// executed again: every step is idempotent.
package dataplane

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// Snapshot is everything that the next steps of one data plane depend on. Decide does not change
// it.
type Snapshot struct {
	Now time.Time
	// Started is when this process started: earlier answers of agents do not count.
	Started time.Time
	Plane   *v1alpha1.DataPlane
	// Region is the FleetRegion in its namespace with its provider and region, unless that is a
	// duplicate. NoRegion says why there is none; Hosts is set if instances that name a data plane
	// of that provider and region mean one in this namespace.
	Region   *v1alpha1.FleetRegion
	NoRegion string
	Hosts    bool
	// Types are the existing InstanceTypes, by name; Pools are the ClusterPools in its namespace
	// that its region names.
	Types map[string]*v1alpha1.InstanceType
	Pools map[string]*hivev1.ClusterPool
	// Failures is the number of remembered Failed data planes that have a type in common with it.
	Failures int
	// Claim, Cluster and Agent are the existing objects; nil means that the API server has
	// confirmed that the object does not exist.
	Claim   *hivev1.ClusterClaim
	Cluster *hivev1.ClusterDeployment
	Agent   *v1alpha1.DataPlaneAgent
	// Kubeconfig is set when the Secret that spec.clusterRef.kubeconfigSecret names exists.
	Kubeconfig bool
	// Nodes are the MachinePools of Cluster.
	Nodes []*hivev1.MachinePool
	// Instances are the instances that name the data plane, its provider and its region.
	Instances []*v1alpha1.ServiceInstance
	// Moved are the instances that are listed for the agent and whose status names another data
	// plane, or none.
	Moved []*v1alpha1.ServiceInstance
	// Installed is when this process last installed the agent. Removed is set when it has removed
	// the agent from a cluster that is kept, Revoked when it has revoked the agent's rights.
	Installed        time.Time
	Removed, Revoked bool
}

// currentPhase returns the phase of the data plane; an empty phase is Accepted.
func (s Snapshot) currentPhase() v1alpha1.DataPlanePhase {
	if s.Plane.Status.Phase == "" {
		return v1alpha1.PhaseAccepted
	}
	return s.Plane.Status.Phase
}

func (s Snapshot) isManaged() bool { return s.Plane.Spec.Ownership != v1alpha1.Registered }

// clusterRef returns the data plane's reference to its cluster; empty if it has none yet.
func (s Snapshot) clusterRef() v1alpha1.ClusterReference {
	if s.Plane.Spec.ClusterRef == nil {
		return v1alpha1.ClusterReference{}
	}
	return *s.Plane.Spec.ClusterRef
}

// keepsCluster reports whether the cluster is kept when the data plane is deleted.
func (s Snapshot) keepsCluster() bool {
	return !s.isManaged() || s.clusterRef().KubeconfigSecret != nil || s.Plane.Spec.DeletionPolicy == v1alpha1.DeletionOrphan
}

// IsBeingRemoved reports whether everything that a data plane has must be released. The caller must
// then read from the API server instead of the caches, until the phase shows it too.
func IsBeingRemoved(dp *v1alpha1.DataPlane) bool {
	return dp.DeletionTimestamp != nil || dp.Status.ReleasedAt != nil ||
		dp.Status.Phase == v1alpha1.PhaseCleanup || dp.Status.Phase == v1alpha1.PhaseFailed
}

// OwnsObject reports whether this data plane has created the object for itself.
func OwnsObject(dp *v1alpha1.DataPlane, o interface{ GetAnnotations() map[string]string }) bool {
	return o.GetAnnotations()[v1alpha1.AnnotationDataPlane] == string(dp.UID)
}

// IsLocal reports whether the cluster's machines are processes on the hub's computer.
func (s Snapshot) IsLocal() bool {
	if s.Cluster != nil {
		return s.Cluster.Spec.Platform.Name() == localPlatform
	}
	return s.Plane.Spec.Provider == localPlatform
}

// localPlatform is the name of the local platform, in spec.platform and as a provider.
const localPlatform = "local"

// KubeconfigSecret returns the Secret with the cluster's kubeconfig; false if there is none.
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

// isClusterGone reports whether the cluster no longer exists. For a cluster that is reached by a
// Secret, this is unknown: if the Secret is gone and the agent is silent, the cluster counts as
// gone.
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

// assignedInstances returns the instances that belong to the data plane: those that name it and
// mean it. If its FleetRegion no longer exists, it keeps the instances that are already listed: it
// is uncertain whether others mean this data plane.
func (s Snapshot) assignedInstances() []*v1alpha1.ServiceInstance {
	return slices.DeleteFunc(slices.Clone(s.Instances), func(i *v1alpha1.ServiceInstance) bool {
		return !s.Hosts && !s.isListed(string(i.UID))
	})
}

func (s Snapshot) isListed(uid string) bool {
	return s.Agent != nil && slices.ContainsFunc(s.Agent.Spec.Instances, func(i v1alpha1.AgentInstance) bool { return i.UID == uid && !i.Reserved })
}
