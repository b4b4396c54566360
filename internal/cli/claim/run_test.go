package claim

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/condition"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestLossOfAClaimsClusterIsExplained(t *testing.T) {
	deleted := func(c *hivev1.ClusterClaim) { c.DeletionTimestamp = &metav1.Time{Time: now} }
	for want, change := range map[string]func(*hivev1.ClusterClaim){
		"": func(*hivev1.ClusterClaim) {},
		"was released by another user or process and its cluster is being destroyed": deleted,
		"has expired after its lifetime of 19m and its cluster is being destroyed": func(c *hivev1.ClusterClaim) {
			deleted(c)
			c.Status.Lifetime = base.ToAPIDuration(19 * time.Minute)
		},
		"has lost its cluster: the cluster was deleted": func(c *hivev1.ClusterClaim) {
			condition.Set(&c.Status.Conditions, hivev1.ClaimClusterRunning, corev1.ConditionFalse, hivev1.ReasonClusterDeleted, "", now)
		},
	} {
		c := &hivev1.ClusterClaim{Spec: hivev1.ClusterClaimSpec{Namespace: "dev-1aaaa"}}
		c.CreationTimestamp = metav1.NewTime(now.Add(-20 * time.Minute))
		condition.Set(&c.Status.Conditions, hivev1.ClaimPending, corev1.ConditionFalse, hivev1.ReasonClusterClaimed, "", now.Add(-19*time.Minute))
		change(c)
		got := ""
		if err := claimLossError(c, true, now); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
