package page

import (
	"time"

	"github.com/dustin/go-humanize"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/claimset"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/explain/clusterstate"
)

// A Claim is a claim on a pool.
type Claim struct {
	Namespace, Name string
	State           string
	// Cluster is the cluster of the claim. Position is the claim's position among the waiting
	// claims, such as 2nd.
	Cluster, Position string
	// Priority is the priority in effect of a waiting claim; 0 if it has none. Set is the ClaimSet
	// whose clusters are given together, this claim's among them; empty if the claim is alone.
	Priority int
	Set      string
	Age      Moment
	// Expected is when the claim is likely to get a cluster, Ends when its lifetime ends.
	Expected, Ends Moment
	Problem        string
	// CanResume and CanHibernate select the action for the claim's cluster: at most one is set.
	CanResume, CanHibernate bool
	Releasing               bool
}

// newClaim describes a claim. The state of its cluster comes from the claim, because the viewer may
// lack permission to see the cluster, which is in another namespace.
func newClaim(c *hivev1.ClusterClaim, now time.Time) Claim {
	out := Claim{
		Namespace: c.Namespace, Name: c.Name, State: clusterstate.OfClaim(c), Cluster: c.Spec.Namespace,
		Age: PastMoment(c.CreationTimestamp.Time, now), Problem: claimProblem(c), Releasing: c.DeletionTimestamp != nil,
	}
	if owner := claimset.FindOwner(c); owner != nil {
		out.Set = owner.Name
	}
	if out.State == clusterstate.Waiting {
		out.Priority, _ = clusterstate.ClaimPriority(c)
	}
	if c.Status.Position != nil {
		out.Position = humanize.Ordinal(int(*c.Status.Position))
	}
	if ready := c.Status.EstimatedReadyTime; ready != nil && out.State == clusterstate.Waiting {
		out.Expected = FutureMoment(ready.Time, now)
	}
	if end := clusterstate.ClaimExpiryTime(c); !end.IsZero() && !out.Releasing {
		out.Ends = FutureMoment(end, now)
	}
	switch out.State {
	case clusterstate.Running, clusterstate.Resuming:
		out.CanHibernate = true
	case clusterstate.Hibernating, clusterstate.Stopping, clusterstate.Failed:
		out.CanResume = true
	}
	return out
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
