package lease_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/inventory/lease"
)

var (
	noon = time.Date(2026, 3, 1, 12, 0, 0, 7, time.UTC)
	pool = types.NamespacedName{Namespace: "pools", Name: "foo-pool"}
	foo  = types.NamespacedName{Namespace: "foo", Name: "foo"}
)

func customization() *hivev1.ClusterDeploymentCustomization {
	return &hivev1.ClusterDeploymentCustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "pools", Name: "c"}}
}

func TestALeaseSaysWhoHasIt(t *testing.T) {
	c := customization()
	lease.Acquire(c, foo, pool, noon, "[]")
	at := metav1.NewTime(noon.Truncate(time.Second))
	want := hivev1.ClusterDeploymentCustomizationStatus{
		ClusterDeploymentRef:     &corev1.ObjectReference{Namespace: "foo", Name: "foo"},
		ClusterPoolRef:           &corev1.ObjectReference{Namespace: "pools", Name: "foo-pool"},
		LastAppliedConfiguration: "[]", // B4
		Conditions: []metav1.Condition{
			{
				Type: "ApplySucceeded", Status: metav1.ConditionFalse, Reason: "InstallationPending", LastTransitionTime: at,
				Message: "Patches applied; cluster is installing",
			},
			{
				Type: "Available", Status: metav1.ConditionFalse, Reason: "ClusterDeploymentCustomizationInUse", LastTransitionTime: at,
				Message: "Currently in use by cluster deployment foo of clusterpool foo-pool",
			},
		},
	}
	if diff := cmp.Diff(want, c.Status); diff != "" {
		t.Error(diff)
	}
	if holder, ok := lease.Holder(c); !ok || holder != foo || lease.HolderPool(c) != pool {
		t.Errorf("it is leased to %s of %s: %t", holder, lease.HolderPool(c), ok)
	}

	t.Log("a lease that is written again is the same: the times stay")
	again := c.DeepCopy()
	lease.Acquire(again, foo, pool, noon.Add(time.Hour), "[]")
	if diff := cmp.Diff(c, again); diff != "" {
		t.Error(diff)
	}
}

func TestAClusterInANamespaceOfAnotherNameIsNamedWhole(t *testing.T) {
	c := customization()
	lease.Acquire(c, types.NamespacedName{Namespace: "n", Name: "foo"}, pool, noon, "")
	got := lease.FindCondition(c, hivev1.CustomizationAvailable).Message
	if want := "Currently in use by cluster deployment n/foo of clusterpool foo-pool"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestFreeing(t *testing.T) {
	for name, tc := range map[string]struct{ reason, want string }{
		"what was installing installs no longer": {hivev1.ReasonInstallationPending, ""},
		"that it worked is still known":          {hivev1.ReasonApplySucceeded, "True"},
		"that it did not, too":                   {hivev1.ReasonBrokenByCloud, "False"},
	} {
		t.Run(name, func(t *testing.T) {
			c := customization()
			lease.Acquire(c, foo, pool, noon, "[]")
			lease.SetApplySucceeded(c, tc.reason, "m", noon)
			lease.Release(c, noon.Add(time.Hour))
			if _, leased := lease.Holder(c); leased || c.Status.ClusterPoolRef != nil || c.Status.LastAppliedConfiguration != "[]" {
				t.Errorf("it is %+v", c.Status)
			}
			free := lease.FindCondition(c, hivev1.CustomizationAvailable)
			if free.Status != metav1.ConditionTrue || free.Reason != hivev1.ReasonCustomizationFree || !free.LastTransitionTime.After(noon) {
				t.Errorf("it says %+v", free)
			}
			got := ""
			if applied := lease.FindCondition(c, hivev1.CustomizationApplySucceeded); applied != nil {
				got = string(applied.Status)
			}
			if got != tc.want {
				t.Errorf("ApplySucceeded is %q, want %q", got, tc.want)
			}
		})
	}
}

func TestALeaseThatHiveWroteIsRead(t *testing.T) {
	c := customization()
	if holder, ok := lease.Holder(c); ok || lease.HolderPool(c).Name != "" {
		t.Errorf("without a lease it is leased to %s", holder)
	}
	c.Status.ClusterDeploymentRef = &corev1.ObjectReference{Name: "foo"}
	c.Status.ClusterPoolRef = &corev1.ObjectReference{Name: "foo-pool"}
	if holder, ok := lease.Holder(c); !ok || holder != foo || lease.HolderPool(c) != pool {
		t.Errorf("it is leased to %s of %s: %t", holder, lease.HolderPool(c), ok)
	}
}
