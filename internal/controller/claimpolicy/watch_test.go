package claimpolicy

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

func TestWhichChangesOfAClaimMatter(t *testing.T) {
	deleted := metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	for name, tc := range map[string]struct {
		change func(*hivev1.ClusterClaim)
		want   bool
	}{
		"nothing":              {func(*hivev1.ClusterClaim) {}, false},
		"another annotation":   {func(c *hivev1.ClusterClaim) { c.Annotations["a"] = "b" }, false},
		"another condition":    {func(c *hivev1.ClusterClaim) { c.Status.Conditions = []hivev1.Condition{{Type: "Pending"}} }, false},
		"its creator":          {func(c *hivev1.ClusterClaim) { c.Annotations[hivev1.AnnotationCreator] = "bob" }, true},
		"its creator's groups": {func(c *hivev1.ClusterClaim) { c.Annotations[hivev1.AnnotationCreatorGroups] = "ci" }, true},
		"its pool":             {func(c *hivev1.ClusterClaim) { c.Spec.ClusterPoolName = "q" }, true},
		"its cluster":          {func(c *hivev1.ClusterClaim) { c.Spec.Namespace = "p-1" }, true},
		"its deletion":         {func(c *hivev1.ClusterClaim) { c.DeletionTimestamp = &deleted }, true},
		"its admission": {func(c *hivev1.ClusterClaim) {
			c.Status.Conditions = []hivev1.Condition{{Type: hivev1.ClaimAdmitted, Status: corev1.ConditionTrue}}
		}, true},
	} {
		before := &hivev1.ClusterClaim{
			ObjectMeta: metav1.ObjectMeta{CreationTimestamp: deleted, Annotations: map[string]string{hivev1.AnnotationCreator: "alice"}},
			Spec:       hivev1.ClusterClaimSpec{ClusterPoolName: "p"},
		}
		after := before.DeepCopy()
		tc.change(after)
		if got := claimChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}
