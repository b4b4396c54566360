package poolpolicy

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// enqueueDelay is how long a pass waits after a change of a claim: each claim of a burst would trigger
// one otherwise, and the pool serves claims by itself.
const enqueueDelay = time.Second

// addWatches watches what changes the demand, and the counts of pools. How long clusters took, each
// pass reads: it does not get lost between two of them.
func (r *Reconciler) addWatches(b *builder.Builder) *builder.Builder {
	edited := builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))
	return b.
		For(&v1alpha1.PoolPolicy{}, edited).
		Watches(&hivev1.ClusterPool{}, r.enqueuePolicy(func(o client.Object) string { return o.GetName() }, 0), edited).
		Watches(&hivev1.ClusterClaim{}, r.enqueuePolicy(func(o client.Object) string {
			return o.(*hivev1.ClusterClaim).Spec.ClusterPoolName //nolint:forcetypeassert // the watch is of one kind
		}, enqueueDelay))
}

// enqueuePolicy enqueues the policy of the pool that an object names, if there is one.
func (r *Reconciler) enqueuePolicy(pool func(client.Object) string, delay time.Duration) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	wake := func(ctx context.Context, q queue, o client.Object) {
		key := client.ObjectKey{Namespace: o.GetNamespace(), Name: pool(o)}
		var p v1alpha1.PoolPolicy
		if err := r.Client.Get(ctx, key, &p); err != nil {
			if client.IgnoreNotFound(err) != nil {
				ctrl.LoggerFrom(ctx).Error(err, "reading the policy of a pool")
			}
			return
		}
		q.AddAfter(reconcile.Request{NamespacedName: key}, delay)
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { wake(ctx, q, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { wake(ctx, q, e.ObjectNew) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { wake(ctx, q, e.Object) },
	}
}
