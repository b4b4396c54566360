package page

import (
	"time"

	"github.com/dustin/go-humanize"
	corev1 "k8s.io/api/core/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/explain/clusterstate"
)

// newClaim describes a claim. The state of its cluster comes from the claim, because the viewer may
// lack permission to see the cluster, which is in another namespace.
func newClaim(c *hivev1.ClusterClaim, now time.Time) Claim {
	out := Claim{
		Namespace: c.Namespace, Name: c.Name, State: clusterstate.OfClaim(c), Cluster: c.Spec.Namespace,
		Age: PastMoment(c.CreationTimestamp.Time, now), Problem: claimProblem(c), Releasing: c.DeletionTimestamp != nil,
	}
	if c.Status.Position != nil {
		out.Position = humanize.Ordinal(int(*c.Status.Position))
	}
	if ready := c.Status.EstimatedReadyTime; ready != nil && out.State == clusterstate.Waiting {
		out.Expected = FutureMoment(ready.Time, now)
	}
	if end, found := claimEndTime(c); found && !out.Releasing {
		out.Ends = FutureMoment(end, now)
	}
	switch out.State {
	case clusterstate.Running, clusterstate.Resuming:
		out.CanHibernate = true
	case clusterstate.Hibernating:
		out.CanResume = true
	}
	return out
}

// claimEndTime returns when a claim's lifetime ends. The lifetime starts when the claim gets its
// cluster, which is when it ceases to be pending.
func claimEndTime(c *hivev1.ClusterClaim) (time.Time, bool) {
	pending := condition.Find(c.Status.Conditions, hivev1.ClaimPending)
	if pending == nil || pending.Status != corev1.ConditionFalse || c.Status.Lifetime == nil {
		return time.Time{}, false
	}
	lifetime, err := c.Status.Lifetime.Parse()
	if err != nil || lifetime == 0 {
		return time.Time{}, false
	}
	return pending.LastTransitionTime.Add(lifetime), true
}

// claimProblem returns why a claim cannot be used; empty if it can.
func claimProblem(c *hivev1.ClusterClaim) string {
	typ := hivev1.ClaimClusterRunning
	switch clusterstate.OfClaim(c) {
	case clusterstate.Waiting:
		typ = hivev1.ClaimPending
	case clusterstate.Running, clusterstate.Releasing:
		return ""
	}
	if found := condition.Find(c.Status.Conditions, typ); found != nil {
		return found.Message
	}
	return ""
}
