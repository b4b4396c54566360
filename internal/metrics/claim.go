package metrics

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/pool"
)

// Values of the label source: what happened to the claim's cluster while the claim waited.
const (
	running   = "running"   // it was already running
	resumed   = "resumed"   // it was resumed
	installed = "installed" // it was installed
)

// RecordAssignment counts a claim that has just been assigned a cluster.
func (m *Metrics) RecordAssignment(claim *hivev1.ClusterClaim, at time.Time) {
	if m == nil {
		return
	}
	p := claimPool(claim)
	m.RecordPoolStep(p, pool.Step{Verb: pool.Bind})
	m.assignment.WithLabelValues(p.Namespace, p.Name).Observe(claimAge(claim, at).Seconds())
}

// RecordClaimWait measures how long a claim waited for its cluster to run. It does so once, after
// the claim's status first reports that its cluster is running; cd is that cluster.
func (m *Metrics) RecordClaimWait(before, after *hivev1.ClusterClaim, cd *hivev1.ClusterDeployment, at time.Time) {
	if m == nil || cd == nil || !startedRunning(before, after) {
		return
	}
	p := claimPool(after)
	m.wait.WithLabelValues(p.Namespace, p.Name, claimSource(after, cd)).Observe(claimAge(after, at).Seconds())
}

// startedRunning reports whether the claim's cluster is now running for the first time. When a
// claim gets its cluster, Pending and ClusterRunning have the same transition time; if the cluster
// ran and then stopped, ClusterRunning has a later one.
func startedRunning(before, after *hivev1.ClusterClaim) bool {
	if !condition.IsTrue(after.Status.Conditions, hivev1.ClaimClusterRunning) {
		return false
	}
	was := condition.Find(before.Status.Conditions, hivev1.ClaimClusterRunning)
	if was == nil {
		return true
	}
	pending := condition.Find(before.Status.Conditions, hivev1.ClaimPending)
	return was.Status != corev1.ConditionTrue && pending != nil && pending.LastTransitionTime.Equal(&was.LastTransitionTime)
}

// claimSource returns what happened to the claim's cluster while the claim waited, according to the
// cluster's status. Events in the same second as the claim's creation count as earlier.
func claimSource(claim *hivev1.ClusterClaim, cd *hivev1.ClusterDeployment) string {
	since, made, power := claim.CreationTimestamp, cd.Status.InstalledTimestamp, cd.Status.PowerTransition
	switch {
	case isAfter(made, since):
		return installed
	case power == nil || !isAfter(power.FinishedAt, since):
		return running
	case made != nil && power.StartedAt.Equal(made):
		return installed // and it has been starting since its installation
	default:
		return resumed
	}
}

func isAfter(t *metav1.Time, than metav1.Time) bool { return t != nil && t.After(than.Time) }

// claimAge returns the age of the claim at the given time. It is never negative, even if clocks
// differ.
func claimAge(claim *hivev1.ClusterClaim, at time.Time) time.Duration {
	return max(0, at.Sub(claim.CreationTimestamp.Time))
}

func claimPool(claim *hivev1.ClusterClaim) types.NamespacedName {
	return types.NamespacedName{Namespace: claim.Namespace, Name: claim.Spec.ClusterPoolName}
}
