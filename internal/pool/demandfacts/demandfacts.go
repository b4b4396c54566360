// Package demandfacts turns the claims and the clusters of a pool into what its record keeps of them. The
// controller of PoolPolicies and the command line use it, so that both count alike. It is pure.
package demandfacts

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/pool"
	"hotspare.io/hotspare/internal/pool/facts"
	"hotspare.io/hotspare/internal/sizing/record"
)

// NewObjects returns what a record keeps of a pool at a moment. Objects of other pools, and those that cannot
// be read, are left out.
func NewObjects(pool types.NamespacedName, clusters []hivev1.ClusterDeployment, claims []hivev1.ClusterClaim, now time.Time) record.Objects {
	out := record.Objects{Now: now}
	claimed := map[string]*hivev1.ClusterDeployment{}
	for i := range clusters {
		cd := &clusters[i]
		ref := cd.Spec.ClusterPoolRef
		if ref == nil || ref.Namespace != pool.Namespace || ref.PoolName != pool.Name || cd.Unreadable != "" {
			continue
		}
		if ref.ClaimName != "" {
			claimed[ref.ClaimName] = cd
		}
		out.Clusters = append(out.Clusters, describeCluster(cd, now))
	}
	for i := range claims {
		c := &claims[i]
		if c.Namespace != pool.Namespace || c.Spec.ClusterPoolName != pool.Name || c.Unreadable != "" {
			continue
		}
		if c.Spec.Namespace == "" && facts.IsHeld(c, false) {
			out.Held = append(out.Held, string(c.UID))
			continue
		}
		if c.Spec.Namespace == "" && c.DeletionTimestamp == nil {
			out.Waiting++
		}
		out.Claims = append(out.Claims, describeClaim(c, claimed[c.Name]))
	}
	return out
}

// describeClaim returns what a record keeps of a claim. Its cluster is nil if it has none.
func describeClaim(c *hivev1.ClusterClaim, cd *hivev1.ClusterDeployment) record.Claim {
	arrived := arrivalOf(c)
	out := record.Claim{ID: string(c.UID), Created: arrived.Time}
	running := condition.Find(c.Status.Conditions, hivev1.ClaimClusterRunning)
	if cd == nil || cd.Name != c.Spec.Namespace || running == nil || !condition.IsTrue(c.Status.Conditions, hivev1.ClaimClusterRunning) {
		return out
	}
	out.Running, out.AtOnce = running.LastTransitionTime.Time, wasRunning(cd, arrived)
	return out
}

// arrivalOf returns since when a claim waits for the pool, or waited: since a ClaimPolicy admitted it, or
// since its creation. A claim that had a cluster before the first ClaimPolicy is admitted later.
func arrivalOf(c *hivev1.ClusterClaim) metav1.Time {
	admitted, pending := condition.Find(c.Status.Conditions, hivev1.ClaimAdmitted), condition.Find(c.Status.Conditions, hivev1.ClaimPending)
	switch {
	case admitted == nil || admitted.Status != corev1.ConditionTrue || !admitted.LastTransitionTime.After(c.CreationTimestamp.Time):
		return c.CreationTimestamp
	case pending != nil && pending.Status == corev1.ConditionFalse && admitted.LastTransitionTime.After(pending.LastTransitionTime.Time):
		return c.CreationTimestamp
	default:
		return admitted.LastTransitionTime
	}
}

// laterChange is how long after the assignment of a cluster a change of its power state begins that has
// nothing to do with it.
const laterChange = time.Minute

// wasRunning reports whether a claimed cluster ran when the claim arrived. Events in the same
// second as that count as earlier.
func wasRunning(cd *hivev1.ClusterDeployment, arrived metav1.Time) bool {
	if at := cd.Status.InstalledTimestamp; at != nil && at.After(arrived.Time) {
		return false
	}
	t := cd.Status.PowerTransition
	if t == nil || t.FinishedAt == nil || !t.FinishedAt.After(arrived.Time) {
		return true
	}
	at := cd.Spec.ClusterPoolRef.ClaimedTimestamp
	return at != nil && t.StartedAt.After(at.Add(laterChange))
}

// describeCluster returns what a record keeps of a cluster.
func describeCluster(cd *hivev1.ClusterDeployment, now time.Time) record.Cluster {
	m := facts.ReadMember(cd, now)
	out := record.Cluster{Name: cd.Name, Created: cd.CreationTimestamp.Time, State: stateOf(cd, m), Depth: cloud.Depth(m.Depth), ResumedFrom: cloud.Depth(m.ResumedFrom)}
	if t := cd.Status.PowerTransition; m.Depth != "" && t.FinishedAt != nil && m.WantedDepth != "" {
		out.WantedDepth, out.AsleepSince = cloud.Depth(m.WantedDepth), t.FinishedAt.Time
	}
	if t := cd.Status.PowerTransition; t != nil && t.Target == hivev1.PowerRunning && !t.StartedAt.Equal(cd.Status.InstalledTimestamp) {
		switch {
		case m.ResumeTook > 0:
			out.Resume = &record.Duration{Cluster: cd.Name, At: t.FinishedAt.UTC(), Seconds: int64(m.ResumeTook / time.Second)}
		case m.PowerTimedOut && t.Deadline != nil:
			out.Resume = &record.Duration{Cluster: cd.Name, At: t.Deadline.UTC(), Failed: true}
		}
	}
	if at := cd.Status.InstalledTimestamp; at != nil && m.InstallTook > 0 {
		out.Install = &record.Duration{Cluster: cd.Name, At: at.UTC(), Seconds: int64(m.InstallTook / time.Second)}
	}
	if c := condition.Find(cd.Status.Conditions, hivev1.ClusterProvisionStopped); m.GaveUp && c != nil {
		out.Install = &record.Duration{Cluster: cd.Name, At: c.LastTransitionTime.UTC(), Failed: true}
	}
	return out
}

// stateOf returns what an hour of a cluster counts as.
func stateOf(cd *hivev1.ClusterDeployment, m pool.Member) record.State {
	switch {
	case m.Claim != "":
		return record.Claimed
	case m.Deleting, m.Marked, m.GaveUp:
		return record.Other
	case !m.Installed:
		return record.Installing
	case cd.Status.PowerState == hivev1.StatusHibernating:
		return record.Hibernating
	case m.Running && m.Wanted != pool.Hibernating:
		return record.Running
	case !m.ResumingSince.IsZero():
		return record.Resuming
	default:
		return record.Other
	}
}
