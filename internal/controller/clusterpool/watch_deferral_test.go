package clusterpool_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// An event about a spare triggers an immediate pass over its pool while a claim waits.
func TestAPoolHurriesWhileAClaimWaits(t *testing.T) {
	p := newPool(0, 0)
	claim := &hivev1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "pools", Name: "x"}, Spec: hivev1.ClusterClaimSpec{ClusterPoolName: "p"}}
	l := newLine(t, p, imageSet())
	spare := &hivev1.ClusterDeployment{Spec: hivev1.ClusterDeploymentSpec{ClusterPoolRef: &hivev1.ClusterPoolReference{Namespace: "pools", PoolName: "p"}}}
	look := func(when string, want bool) {
		t.Helper()
		if _, err := l.pools.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(p)}); err != nil {
			t.Fatal(err)
		}
		if got := l.pools.Hurries(spare); got != want {
			t.Errorf("%s: it hurries: %t, want %t", when, got, want)
		}
	}
	look("no claim", false)
	if err := l.Create(t.Context(), claim.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	look("a claim waits", true)
	if err := l.Delete(t.Context(), claim.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	look("the claim is gone", false)
	if err := l.Create(t.Context(), claim.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	look("another waits", true)
	var gone hivev1.ClusterPool
	if err := l.Get(t.Context(), client.ObjectKeyFromObject(p), &gone); err != nil {
		t.Fatal(err)
	}
	gone.Finalizers = nil
	if err := l.Update(t.Context(), &gone); err != nil {
		t.Fatal(err)
	}
	if err := l.Delete(t.Context(), &gone); err != nil {
		t.Fatal(err)
	}
	look("the pool is gone", false)
}
