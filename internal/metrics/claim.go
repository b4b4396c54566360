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

// Assigned counts a claim that has just been told of its cluster.
func (m *Metrics) Assigned(claim *hivev1.ClusterClaim, at time.Time) {
	if m == nil {
		return
	}
	p := poolOf(claim)
	m.Took(p, pool.Step{Verb: pool.Bind})
	m.assignment.WithLabelValues(p.Namespace, p.Name).Observe(age(claim, at).Seconds())
}

// ClaimTold measures a claim whose status has been written and says for the first
// time that its cluster runs; cd is that cluster.
func (m *Metrics) ClaimTold(before, after *hivev1.ClusterClaim, cd *hivev1.ClusterDeployment, at time.Time) {
	if m == nil || cd == nil || !firstRuns(before, after) {
		return
	}
	p := poolOf(after)
	m.wait.WithLabelValues(p.Namespace, p.Name, served(after, cd)).Observe(age(after, at).Seconds())
}

// firstRuns reports whether the claim's cluster is now said to run and was not
// before. A claim that knows its cluster has had both conditions from the same
// moment; one whose cluster ran, and then did not, has a younger ClusterRunning.
func firstRuns(before, after *hivev1.ClusterClaim) bool {
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

// served tells what a claim had to wait for, from what its cluster records. What
// happened in the second of the claim's creation counts as before it.
func served(claim *hivev1.ClusterClaim, cd *hivev1.ClusterDeployment) string {
	since, made, power := claim.CreationTimestamp, cd.Status.InstalledTimestamp, cd.Status.PowerTransition
	switch {
	case later(made, since):
		return installed
	case power == nil || !later(power.FinishedAt, since):
		return immediate
	case made != nil && power.StartedAt.Equal(made):
		return installed // and it has been on its way up since then
	default:
		return resumed
	}
}

func later(t *metav1.Time, than metav1.Time) bool { return t != nil && t.After(than.Time) }

// age is never below zero, whatever the clocks say.
func age(claim *hivev1.ClusterClaim, at time.Time) time.Duration {
	return max(0, at.Sub(claim.CreationTimestamp.Time))
}

func poolOf(claim *hivev1.ClusterClaim) types.NamespacedName {
	return types.NamespacedName{Namespace: claim.Namespace, Name: claim.Spec.ClusterPoolName}
}
