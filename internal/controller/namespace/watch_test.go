package namespace

import (
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

func TestANamespaceOutlivesItsCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		defer q.ShutDown()
		enqueueLater(t.Context(), event.DeleteEvent{Object: &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "c", Name: "c"}}}, q)
		deleted := time.Now()
		if request, _ := q.Get(); request.Name != "c" || time.Since(deleted) != deletionDelay {
			t.Errorf("namespace %q is looked at %v after the deletion of the cluster", request.Name, time.Since(deleted))
		}
	})
}
