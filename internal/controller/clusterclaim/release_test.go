package clusterclaim

import (
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/crashtest/chaos"
)

// The watches of claims and of clusters are two: a cache may show that the claim
// is being deleted, and not yet that the cluster was given to it.
func TestADeletedClaimIsHeldByAClusterThatTheCacheDoesNotShow(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), rbacv1.AddToScheme(scheme), hivev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	now := clocktesting.NewFakePassiveClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	store := chaos.New(scheme, now, &corev1.Namespace{}, &hivev1.ClusterPool{}, &hivev1.ClusterClaim{}, &hivev1.ClusterDeployment{},
		&rbacv1.Role{}, &rbacv1.RoleBinding{})
	claim := &hivev1.ClusterClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "x", Finalizers: []string{hivev1.FinalizerClaim}},
		Spec:       hivev1.ClusterClaimSpec{ClusterPoolName: "p", Namespace: "a"},
	}
	cluster := &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "a"}}
	cluster.Spec.ClusterPoolRef = &hivev1.ClusterPoolReference{Namespace: "n", PoolName: "p", ClaimName: "x"}
	api := store.NewClient()
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}},
		&hivev1.ClusterPool{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p"}}, claim, cluster,
	} {
		if err := api.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	if err := api.Delete(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	var ix chaos.Indexes
	if err := AddIndexes(t.Context(), &ix); err != nil {
		t.Fatal(err)
	}
	view := store.NewView(&ix)
	view.ShowNextWrites(claim, 2)
	view.ShowNextWrites(&hivev1.ClusterPool{}, 1)
	r := &Reconciler{Client: view.NewClient(), Live: api, Clock: now, Events: &events.FakeRecorder{}}
	pass := func() {
		t.Helper()
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(claim)}); err != nil {
			t.Fatal(err)
		}
	}
	pass()
	held, _ := store.GetSharedObject(claim, client.ObjectKeyFromObject(claim)).(*hivev1.ClusterClaim)
	if held == nil || !slices.Contains(held.Finalizers, hivev1.FinalizerClaim) {
		t.Fatal("the claim was let go, and its cluster is there")
	}
	if err := api.Delete(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	pass()
	if store.GetSharedObject(claim, client.ObjectKeyFromObject(claim)) != nil {
		t.Error("the claim is held, and its cluster is gone")
	}
}
