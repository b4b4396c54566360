package bootstrapstep

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/bootstrap/lookup"
	"hotspare.io/hotspare/internal/gate"
)

// addWatches watches the clusters in which steps may be taken, and what says which steps these are. Nothing
// watches the ConfigMaps and Secrets: a step in progress reads them in each attempt.
func (r *Reconciler) addWatches(b *builder.Builder) *builder.Builder {
	policies := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	bootstraps := builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, validityChanged()))
	return b.
		For(&hivev1.ClusterDeployment{}, builder.WithPredicates(clusterConcerned())).
		Watches(&v1alpha1.PoolPolicy{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
			return r.sparesOfPools(ctx, o.GetNamespace(), map[string]bool{o.GetName(): true})
		}), policies).
		Watches(&v1alpha1.ClusterBootstrap{}, handler.EnqueueRequestsFromMapFunc(r.sparesOfBootstrap), bootstraps)
}

// clusterConcerned selects changes after which a cluster may take a step, or its condition must be written: not
// every write of its status is one.
func clusterConcerned() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return concernsSteps(e.Object.(*hivev1.ClusterDeployment)) },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, after := e.ObjectOld.(*hivev1.ClusterDeployment), e.ObjectNew.(*hivev1.ClusterDeployment)
			if !concernsSteps(after) {
				return false
			}
			return !concernsSteps(before) || gate.IsCheckable(before) != gate.IsCheckable(after) || !gate.RunStart(before).Equal(gate.RunStart(after)) ||
				before.Status.Bootstrap != nil && after.Status.Bootstrap == nil
		},
	}
}

// validityChanged selects the updates that change the conditions of a bootstrap.
func validityChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*v1alpha1.ClusterBootstrap), e.ObjectNew.(*v1alpha1.ClusterBootstrap)
		return !equality.Semantic.DeepEqual(before.Status.Conditions, after.Status.Conditions)
	}}
}

// sparesOfBootstrap returns the unclaimed clusters of the pools that use a bootstrap.
func (r *Reconciler) sparesOfBootstrap(ctx context.Context, o client.Object) []reconcile.Request {
	list, err := lookup.PoolsOf(ctx, r.Client, client.ObjectKeyFromObject(o))
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "finding the pools of a bootstrap")
	}
	pools := map[string]bool{}
	for _, p := range list {
		pools[p.Name] = true
	}
	return r.sparesOfPools(ctx, o.GetNamespace(), pools)
}

// sparesOfPools returns the clusters of pools of a namespace that have steps to take.
func (r *Reconciler) sparesOfPools(ctx context.Context, namespace string, pools map[string]bool) []reconcile.Request {
	if len(pools) == 0 {
		return nil
	}
	var list hivev1.ClusterDeploymentList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing clusters")
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		cd := &list.Items[i]
		if ref := cd.Spec.ClusterPoolRef; concernsSteps(cd) && ref.Namespace == namespace && pools[ref.PoolName] {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(cd)})
		}
	}
	return out
}
