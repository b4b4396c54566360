package page

import (
	"time"

	"github.com/dustin/go-humanize"
	corev1 "k8s.io/api/core/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/explain/clusterstate"
)

// newClaim tells of a claim. Its cluster may not be seen, for that lives in another
// namespace; the claim says how that is.
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

// claimEndTime is when a claim's lifetime ends, which counts from when the claim got its
// cluster: that is when it ceased to be pending.
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

// claimProblem says why a claim is not served; empty when it is.
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
