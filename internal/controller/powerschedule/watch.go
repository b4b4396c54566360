package powerschedule

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
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

// enqueueDelay is how long the reported number of clusters may lag. Without it, each change in a
// burst of claims would trigger every schedule, although the number is not urgent.
const enqueueDelay = time.Second

// addWatches watches everything that can change which clusters a schedule selects.
func (r *Reconciler) addWatches(b *builder.Builder) *builder.Builder {
	counts := builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}))
	labelled := builder.WithPredicates(predicate.LabelChangedPredicate{})
	return b.
		Watches(&hivev1.ClusterDeployment{}, r.enqueueDelayed(concernsCluster), counts).
		Watches(&hivev1.ClusterClaim{}, r.enqueueDelayed(concernsClaim), counts).
		Watches(&corev1.Namespace{}, r.enqueueDelayed(concernsNamespace), labelled)
}

func concernsCluster(ps *v1alpha1.PowerSchedule, o client.Object) bool {
	if ps.Spec.ClaimSelector != nil {
		ref := o.(*hivev1.ClusterDeployment).Spec.ClusterPoolRef
		return ref != nil && ref.ClaimName != "" && ref.Namespace == ps.Namespace
	}
	return ps.Spec.NamespaceSelector != nil || o.GetNamespace() == ps.Namespace
}

func concernsClaim(ps *v1alpha1.PowerSchedule, o client.Object) bool {
	return ps.Spec.ClaimSelector != nil && o.GetNamespace() == ps.Namespace
}

func concernsNamespace(ps *v1alpha1.PowerSchedule, _ client.Object) bool {
	return ps.Spec.NamespaceSelector != nil
}

// enqueueDelayed enqueues, after enqueueDelay, the schedules that an object concerns.
func (r *Reconciler) enqueueDelayed(concerns func(*v1alpha1.PowerSchedule, client.Object) bool) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	wake := func(ctx context.Context, q queue, objects ...client.Object) {
		for _, name := range r.concernedSchedules(ctx, concerns, objects) {
			q.AddAfter(reconcile.Request{NamespacedName: name}, enqueueDelay)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { wake(ctx, q, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { wake(ctx, q, e.ObjectOld, e.ObjectNew) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { wake(ctx, q, e.Object) },
	}
}

func (r *Reconciler) concernedSchedules(ctx context.Context, concerns func(*v1alpha1.PowerSchedule, client.Object) bool, objects []client.Object) []types.NamespacedName {
	var list v1alpha1.PowerScheduleList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing schedules")
		return nil
	}
	var out []types.NamespacedName
	for i := range list.Items {
		for _, o := range objects {
			if concerns(&list.Items[i], o) {
				out = append(out, client.ObjectKeyFromObject(&list.Items[i]))
				break
			}
		}
	}
	return out
}
