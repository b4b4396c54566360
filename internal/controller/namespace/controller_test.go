package namespace_test

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/controller/namespace"
)

// clusterNamespace returns a namespace that pool p in namespace pools created for cluster c.
func clusterNamespace() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "c", UID: "uid-c", Labels: map[string]string{hivev1.LabelPoolNamespace: "pools", hivev1.LabelPoolName: "p"},
	}}
}

func poolWithPending(pending ...string) *hivev1.ClusterPool {
	return &hivev1.ClusterPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: "pools", Name: "p"},
		Status:     hivev1.ClusterPoolStatus{Pending: pending},
	}
}

func clusterDeployment() *hivev1.ClusterDeployment {
	return &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "c", Name: "c"}}
}

func newClient(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), hivev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

func TestNamespacesAreDeletedOnceNothingNeedsThem(t *testing.T) {
	t.Parallel()
	unlabeled := clusterNamespace()
	unlabeled.Labels = nil
	other := clusterDeployment()
	other.Name = "other"
	for name, tc := range map[string]struct {
		namespace *corev1.Namespace
		// cached and live are the other objects that the cache and the API server contain.
		cached, live []client.Object
		wantDeleted  bool
		wantRecheck  time.Duration
	}{
		"the cluster was deleted":                      {namespace: clusterNamespace(), wantDeleted: true},
		"the pool was deleted before it created one":   {namespace: clusterNamespace(), wantDeleted: true},
		"the pool exists and has not recorded it":      {clusterNamespace(), []client.Object{poolWithPending("d")}, []client.Object{poolWithPending("d")}, true, 0},
		"only another cluster is in it":                {clusterNamespace(), []client.Object{other}, []client.Object{other}, true, 0},
		"the cluster exists":                           {clusterNamespace(), []client.Object{clusterDeployment()}, []client.Object{clusterDeployment()}, false, 0},
		"the cache does not show the cluster yet":      {clusterNamespace(), nil, []client.Object{clusterDeployment()}, false, 0},
		"the cluster is deleted, the cache is behind":  {clusterNamespace(), []client.Object{clusterDeployment()}, nil, false, 0},
		"the pool has recorded its name":               {clusterNamespace(), []client.Object{poolWithPending("c")}, []client.Object{poolWithPending("c")}, false, time.Minute},
		"the cache does not show the recorded name":    {clusterNamespace(), nil, []client.Object{poolWithPending("c")}, false, time.Minute},
		"no pool created the namespace":                {unlabeled, nil, nil, false, 0},
		"the pool has recorded it and created it":      {clusterNamespace(), []client.Object{poolWithPending("c"), clusterDeployment()}, nil, false, 0},
		"a pool of this name exists in another place":  {clusterNamespace(), []client.Object{inNamespace(poolWithPending("c"), "elsewhere")}, nil, true, 0},
		"a pool of another name has recorded the name": {clusterNamespace(), []client.Object{named(poolWithPending("c"), "q")}, nil, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cached := newClient(t, append(tc.cached, tc.namespace)...)
			r := &namespace.Reconciler{Client: cached, Live: newClient(t, tc.live...)}
			result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "c"}})
			if err != nil {
				t.Fatal(err)
			}
			if result.RequeueAfter != tc.wantRecheck {
				t.Errorf("rechecked after %s, want %s", result.RequeueAfter, tc.wantRecheck)
			}
			if deleted := apierrors.IsNotFound(cached.Get(t.Context(), client.ObjectKey{Name: "c"}, &corev1.Namespace{})); deleted != tc.wantDeleted {
				t.Errorf("deleted: %t, want %t", deleted, tc.wantDeleted)
			}
		})
	}
}

func inNamespace(o client.Object, namespace string) client.Object {
	o.SetNamespace(namespace)
	return o
}

func named(o client.Object, name string) client.Object {
	o.SetName(name)
	return o
}

func TestAMissingNamespaceNeedsNothing(t *testing.T) {
	t.Parallel()
	r := &namespace.Reconciler{Client: newClient(t), Live: newClient(t)}
	if result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "c"}}); err != nil || result != (ctrl.Result{}) {
		t.Errorf("got %v, %v", result, err)
	}
}
