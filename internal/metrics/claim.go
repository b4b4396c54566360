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

// What a claim had to wait for.
const (
	immediate = "immediate" // its cluster ran before
	resumed   = "resumed"   // its cluster was woken meanwhile
	installed = "installed" // its cluster was installed meanwhile
)

// RecordAssignment counts a claim that has just been told of its cluster.
func (m *Metrics) RecordAssignment(claim *hivev1.ClusterClaim, at time.Time) {
	if m == nil {
		return
	}
	p := claimPool(claim)
	m.RecordPoolStep(p, pool.Step{Verb: pool.Bind})
	m.assignment.WithLabelValues(p.Namespace, p.Name).Observe(claimAge(claim, at).Seconds())
}

// RecordClaimWait measures a claim whose status has been written and says for the first
// time that its cluster runs; cd is that cluster.
func (m *Metrics) RecordClaimWait(before, after *hivev1.ClusterClaim, cd *hivev1.ClusterDeployment, at time.Time) {
	if m == nil || cd == nil || !startedRunning(before, after) {
		return
	}
	p := claimPool(after)
	m.wait.WithLabelValues(p.Namespace, p.Name, claimWaitReason(after, cd)).Observe(claimAge(after, at).Seconds())
}

// startedRunning reports whether the claim's cluster is now said to run and was not
// before. A claim that knows its cluster has had both conditions from the same
// moment; one whose cluster ran, and then did not, has a younger ClusterRunning.
func startedRunning(before, after *hivev1.ClusterClaim) bool {
	if !condition.IsTrue(after.Status.Conditions, hivev1.ClaimClusterRunning) {
		return false
	}
	was := condition.Find(before.Status.Conditions, hivev1.ClaimClusterRunning)
	if was == nil {
		return true
	}
	told := condition.Find(before.Status.Conditions, hivev1.ClaimPending)
	return was.Status != corev1.ConditionTrue && told != nil && told.LastTransitionTime.Equal(&was.LastTransitionTime)
}

// claimWaitReason tells what a claim had to wait for, from what its cluster records. What
// happened in the second of the claim's creation counts as before it.
func claimWaitReason(claim *hivev1.ClusterClaim, cd *hivev1.ClusterDeployment) string {
	since, made, power := claim.CreationTimestamp, cd.Status.InstalledTimestamp, cd.Status.PowerTransition
	switch {
	case isAfter(made, since):
		return installed
	case power == nil || !isAfter(power.FinishedAt, since):
		return immediate
	case made != nil && power.StartedAt.Equal(made):
		return installed // and it has been on its way up since then
	default:
		return resumed
	}
}

func isAfter(t *metav1.Time, than metav1.Time) bool { return t != nil && t.After(than.Time) }

// claimAge is never below zero, whatever the clocks say.
func claimAge(claim *hivev1.ClusterClaim, at time.Time) time.Duration {
	return max(0, at.Sub(claim.CreationTimestamp.Time))
}

func claimPool(claim *hivev1.ClusterClaim) types.NamespacedName {
	return types.NamespacedName{Namespace: claim.Namespace, Name: claim.Spec.ClusterPoolName}
}
