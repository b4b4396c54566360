package cli

import (
	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
)

// States of clusters and claims, in the one word that tables show.
const (
	stateInstalling  = "Installing"
	stateFailed      = "Failed"
	stateRunning     = "Running"
	stateHibernating = "Hibernating"
	stateResuming    = "Resuming"
	stateStopping    = "Stopping"
	stateDeleting    = "Deleting"

	stateWaiting   = "Waiting"
	stateAssigned  = "Assigned"
	stateReleasing = "Releasing"
	stateLost      = "Lost"
)

// clusterStates are a cluster's, in the order in which they are counted.
var clusterStates = []string{
	stateRunning, stateResuming, stateStopping, stateHibernating, stateInstalling, stateFailed, stateDeleting,
}

func clusterState(cd *hivev1.ClusterDeployment) string {
	asleep := cd.Spec.PowerState == hivev1.PowerHibernating
	switch {
	case cd.DeletionTimestamp != nil:
		return stateDeleting
	case condition.True(cd.Status.Conditions, hivev1.ClusterProvisionStopped):
		return stateFailed
	case !cd.Spec.Installed:
		return stateInstalling
	case powerFails(cd):
		return stateFailed
	case asleep && cd.Status.PowerState == hivev1.StatusHibernating:
		return stateHibernating
	case asleep:
		return stateStopping
	case cd.Status.PowerState == hivev1.StatusRunning:
		return stateRunning
	default:
		return stateResuming
	}
}

// powerFails reports whether the machines could not be started or stopped. It is
// tried again all the same.
func powerFails(cd *hivev1.ClusterDeployment) bool {
	c := condition.Find(cd.Status.Conditions, hivev1.ClusterHibernating)
	return c != nil && (c.Reason == hivev1.ReasonFailedToStart || c.Reason == hivev1.ReasonFailedToStop)
}

func claimState(c *hivev1.ClusterClaim) string {
	running := condition.Find(c.Status.Conditions, hivev1.ClaimClusterRunning)
	switch {
	case c.DeletionTimestamp != nil:
		return stateReleasing
	case c.Spec.Namespace == "":
		return stateWaiting
	case running == nil:
		return stateAssigned
	}
	switch running.Reason {
	case hivev1.ReasonRunning:
		return stateRunning
	case hivev1.ReasonHibernating:
		return stateHibernating
	case hivev1.ReasonClusterDeleted, hivev1.ReasonClusterDeleting:
		return stateLost
	default:
		return stateResuming
	}
}

// usable reports whether the claim's cluster can be used.
func usable(c *hivev1.ClusterClaim) bool {
	return c.Spec.Namespace != "" && condition.True(c.Status.Conditions, hivev1.ClaimClusterRunning)
}

// poolOf is the pool of a cluster, and the claim that has it; all may be empty.
func poolOf(cd *hivev1.ClusterDeployment) hivev1.ClusterPoolReference {
	if cd.Spec.ClusterPoolRef == nil {
		return hivev1.ClusterPoolReference{}
	}
	return *cd.Spec.ClusterPoolRef
}

// home is the namespace in which a person looks for a cluster: that of its pool,
// or, when it has none, its own.
func home(cd *hivev1.ClusterDeployment) string {
	if ref := poolOf(cd); ref.PoolName != "" {
		return ref.Namespace
	}
	return cd.Namespace
}
