// Package clusterstate says in a word how clusters and claims stand, and counts those of a
// pool. The command line and the console say it alike. It is pure.
package clusterstate

import (
	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
)

// States of clusters and claims, in the one word that people are shown. Deleting and Installing are of
// clusters; Waiting, Assigned, Releasing and Lost are of claims, the others of both or of
// clusters.
const (
	Installing  = "Installing"
	Failed      = "Failed"
	Running     = "Running"
	Hibernating = "Hibernating"
	Resuming    = "Resuming"
	Stopping    = "Stopping"
	Deleting    = "Deleting"

	Waiting   = "Waiting"
	Assigned  = "Assigned"
	Releasing = "Releasing"
	Lost      = "Lost"
)

// ClusterStates are a cluster's, in the order in which they are counted.
var ClusterStates = []string{
	Running, Resuming, Stopping, Hibernating, Installing, Failed, Deleting,
}

// OfCluster is the state of a cluster.
func OfCluster(cd *hivev1.ClusterDeployment) string {
	asleep := cd.Spec.PowerState == hivev1.PowerHibernating && !IsHibernationUnsupported(cd)
	switch {
	case cd.DeletionTimestamp != nil:
		return Deleting
	case condition.IsTrue(cd.Status.Conditions, hivev1.ClusterProvisionStopped):
		return Failed
	case !cd.Spec.Installed:
		return Installing
	case hasPowerFailure(cd):
		return Failed
	case asleep && cd.Status.PowerState == hivev1.StatusHibernating:
		return Hibernating
	case asleep:
		return Stopping
	case cd.Status.PowerState == hivev1.StatusRunning:
		return Running
	default:
		return Resuming
	}
}

// DescribeCluster is the state of a cluster, with the depth of its sleep if it is not stopped: "Hibernating (freeze)".
func DescribeCluster(cd *hivev1.ClusterDeployment) string {
	state := OfCluster(cd)
	if depth := SleepDepth(cd); state == Hibernating && depth != "" {
		return state + " (" + depth + ")"
	}
	return state
}

// SleepDepth is the depth at which a hibernating cluster sleeps; "" if it is stopped, or does not hibernate.
func SleepDepth(cd *hivev1.ClusterDeployment) string {
	t := cd.Status.PowerTransition
	if t == nil || t.Target != hivev1.PowerHibernating || t.FinishedAt == nil || t.Depth == hivev1.DepthStop {
		return ""
	}
	return t.Depth
}

// hasPowerFailure reports whether the machines could not be started or stopped. It is
// tried again all the same.
func hasPowerFailure(cd *hivev1.ClusterDeployment) bool {
	c := condition.Find(cd.Status.Conditions, hivev1.ClusterHibernating)
	return c != nil && (c.Reason == hivev1.ReasonFailedToStart || c.Reason == hivev1.ReasonFailedToStop)
}

// IsHibernationUnsupported reports whether the cluster cannot hibernate, so that it runs whatever is
// wanted of it.
func IsHibernationUnsupported(cd *hivev1.ClusterDeployment) bool {
	c := condition.Find(cd.Status.Conditions, hivev1.ClusterHibernating)
	return c != nil && c.Reason == hivev1.ReasonUnsupported
}

// OfClaim is the state of a claim.
func OfClaim(c *hivev1.ClusterClaim) string {
	running := condition.Find(c.Status.Conditions, hivev1.ClaimClusterRunning)
	switch {
	case c.DeletionTimestamp != nil:
		return Releasing
	case c.Spec.Namespace == "":
		return Waiting
	case running == nil:
		return Assigned
	}
	switch running.Reason {
	case hivev1.ReasonRunning:
		return Running
	case hivev1.ReasonHibernating:
		return Hibernating
	case hivev1.ReasonStopping:
		return Stopping
	case hivev1.ReasonFailedToStop:
		return Failed
	case hivev1.ReasonClusterDeleted, hivev1.ReasonClusterDeleting:
		return Lost
	default:
		return Resuming
	}
}

// IsClaimUsable reports whether the claim's cluster can be used.
func IsClaimUsable(c *hivev1.ClusterClaim) bool {
	return c.Spec.Namespace != "" && condition.IsTrue(c.Status.Conditions, hivev1.ClaimClusterRunning)
}

// PoolReference is the pool of a cluster, and the claim that has it; all may be empty.
func PoolReference(cd *hivev1.ClusterDeployment) hivev1.ClusterPoolReference {
	if cd.Spec.ClusterPoolRef == nil {
		return hivev1.ClusterPoolReference{}
	}
	return *cd.Spec.ClusterPoolRef
}

// HomeNamespace is the namespace in which a person looks for a cluster: that of its pool,
// or, when it has none, its own.
func HomeNamespace(cd *hivev1.ClusterDeployment) string {
	if ref := PoolReference(cd); ref.PoolName != "" {
		return ref.Namespace
	}
	return cd.Namespace
}
