package namespace

import (
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

func TestANamespaceOutlivesItsCluster(t *testing.T) {
	pool := func(edit func(*hivev1.ClusterPool)) *hivev1.ClusterPool {
		p := &hivev1.ClusterPool{ObjectMeta: metav1.ObjectMeta{Namespace: "pools", Name: "p"}}
		edit(p)
		return p
	}
	ref := &hivev1.ClusterPoolReference{Namespace: "pools", PoolName: "p"}
	for name, tc := range map[string]struct {
		ref  *hivev1.ClusterPoolReference
		pool *hivev1.ClusterPool
		want time.Duration
	}{
		"its pool exists": {ref: ref, pool: pool(func(*hivev1.ClusterPool) {}), want: deletionDelay},
		"its pool is being deleted": {ref: ref, pool: pool(func(p *hivev1.ClusterPool) {
			p.Finalizers, p.DeletionTimestamp = []string{"x"}, &metav1.Time{Time: time.Now()}
		})},
		"its pool is gone": {ref: ref, pool: pool(func(p *hivev1.ClusterPool) { p.Name = "other" })},
		"it has no pool":   {pool: pool(func(*hivev1.ClusterPool) {})},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				scheme := runtime.NewScheme()
				if err := hivev1.AddToScheme(scheme); err != nil {
					t.Fatal(err)
				}
				r := &Reconciler{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.pool).Build()}
				q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
				defer q.ShutDown()
				cd := &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "c", Name: "c"}, Spec: hivev1.ClusterDeploymentSpec{ClusterPoolRef: tc.ref}}
				r.enqueueLater(t.Context(), event.DeleteEvent{Object: cd}, q)
				deleted := time.Now()
				if request, _ := q.Get(); request.Name != "c" || time.Since(deleted) != tc.want {
					t.Errorf("namespace %q is reconciled %v after the deletion of the cluster, want %v", request.Name, time.Since(deleted), tc.want)
				}
			})
		})
	}
}
