package power

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/ownership"
)

func TestWhatAPlatformTellsWakesItsCluster(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := hivev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	mine, other := newCluster(time.Now()), newCluster(time.Now())
	other.Name, other.Spec.ClusterMetadata.InfraID = "other", "another"
	r := &Reconciler{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(mine, other).
		WithIndex(&hivev1.ClusterDeployment{}, ownership.ByInfraID, ownership.InfraIDs).Build()}
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()

	from, to := make(chan string), make(chan event.TypedGenericEvent[string])
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); forwardChanges(ctx, from, to) }()
	for _, infraID := range []string{"infra", "nobody's"} {
		from <- infraID
		r.enqueueByInfraID().Generic(t.Context(), <-to, q)
	}
	if n := q.Len(); n != 1 {
		t.Fatalf("%d clusters are woken, want 1", n)
	}
	if got, _ := q.Get(); got.NamespacedName != key {
		t.Errorf("%s is woken, want %s", got, key)
	}
	from <- "infra" // nobody reads it
	cancel()
	<-done
}
