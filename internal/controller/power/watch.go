package power

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/ownership"
)

// userChangePredicate accepts updates that may express a request. It ignores status updates, most
// of which are the controller's own.
func userChangePredicate() predicate.Predicate {
	return predicate.Or(
		predicate.GenerationChangedPredicate{}, // a deletion changes the generation, too
		predicate.LabelChangedPredicate{},
		predicate.AnnotationChangedPredicate{},
	)
}

// watchPlatforms reconciles a cluster when its platform reports that a machine has changed. On
// platforms without such reports, changes are seen in the next periodic pass.
func (r *Reconciler) watchPlatforms(ctx context.Context, mgr ctrl.Manager, b *builder.Builder) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, &hivev1.ClusterDeployment{}, ownership.ByInfraID, ownership.InfraIDs); err != nil {
		return err
	}
	for _, platform := range r.Actuators {
		teller, ok := platform.(cloud.ChangeNotifier)
		if !ok {
			continue
		}
		told := make(chan event.TypedGenericEvent[string])
		if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
			forwardChanges(ctx, teller.Changes(), told)
			return nil
		})); err != nil {
			return err
		}
		b.WatchesRawSource(source.TypedChannel(told, r.enqueueByInfraID()))
	}
	return nil
}

// forwardChanges forwards the platform's reports until ctx ends.
func forwardChanges(ctx context.Context, from <-chan string, to chan<- event.TypedGenericEvent[string]) {
	for {
		select {
		case <-ctx.Done():
			return
		case infraID := <-from:
			select {
			case <-ctx.Done():
				return
			case to <- event.TypedGenericEvent[string]{Object: infraID}:
			}
		}
	}
}

// enqueueByInfraID enqueues the clusters whose machines have an infraID.
func (r *Reconciler) enqueueByInfraID() handler.TypedEventHandler[string, reconcile.Request] {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.TypedFuncs[string, reconcile.Request]{
		GenericFunc: func(ctx context.Context, e event.TypedGenericEvent[string], q queue) {
			var list hivev1.ClusterDeploymentList
			if err := r.Client.List(ctx, &list, client.MatchingFields{ownership.ByInfraID: e.Object}); err != nil {
				ctrl.LoggerFrom(ctx).Error(err, "listing clusters by their machines", "infraID", e.Object)
				return
			}
			for _, cd := range list.Items {
				q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&cd)})
			}
		},
	}
}
