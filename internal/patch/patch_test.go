package patch_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/patch"
)

func setUp(t *testing.T) (client.Client, *hivev1.ClusterClaim) {
	t.Helper()
	s := runtime.NewScheme()
	if err := hivev1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	claim := &hivev1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c"}}
	c := fake.NewClientBuilder().WithScheme(s).WithObjects(claim).WithStatusSubresource(claim).Build()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
		t.Fatal(err)
	}
	return c, claim
}

func TestNothingChangedNothingWritten(t *testing.T) {
	c, claim := setUp(t)
	wrote, err := patch.Object(t.Context(), c, claim, claim.DeepCopy())
	if wrote || err != nil {
		t.Errorf("wrote %t, %v", wrote, err)
	}
	wrote, err = patch.Status(t.Context(), c, claim, claim.DeepCopy())
	if wrote || err != nil {
		t.Errorf("status: wrote %t, %v", wrote, err)
	}
}

func TestAStaleObjectIsRefused(t *testing.T) {
	c, stale := setUp(t)
	mine := stale.DeepCopy()
	mine.Spec.Namespace = "a"
	if wrote, err := patch.Object(t.Context(), c, stale, mine); !wrote || err != nil {
		t.Fatalf("wrote %t, %v", wrote, err)
	}
	late := stale.DeepCopy()
	late.Spec.Namespace = "b"
	if _, err := patch.Object(t.Context(), c, stale, late); !apierrors.IsConflict(err) {
		t.Errorf("the object: %v", err)
	}
	late = stale.DeepCopy()
	late.Status.Conditions = []hivev1.Condition{{Type: "A", Status: corev1.ConditionTrue}}
	if _, err := patch.Status(t.Context(), c, stale, late); !apierrors.IsConflict(err) {
		t.Errorf("the status: %v", err)
	}
}
