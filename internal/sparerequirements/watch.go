package sparerequirements

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
	"hotspare.io/hotspare/internal/gate"
)

// A Watch selects what a controller of spares watches: clusters, and what says what their pools require of them.
// Nothing watches the ConfigMaps and Secrets of a ClusterBootstrap.
type Watch struct {
	// Cached reads from caches.
	Cached client.Reader
	// Concerns reports whether a pass over a cluster may have anything to do. It is false for clusters without a pool.
	Concerns func(*hivev1.ClusterDeployment) bool
	// Changed reports whether an update of a cluster of concern needs a pass, other than one that begins or ends a
	// run: not every write of its status does.
	Changed func(before, after *hivev1.ClusterDeployment) bool
}

// AddTo adds the watches to a controller.
func (w Watch) AddTo(b *builder.Builder) *builder.Builder {
	policies := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	bootstraps := builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, validityChanged()))
	return b.
		For(&hivev1.ClusterDeployment{}, builder.WithPredicates(w.clusterChanged())).
		Watches(&v1alpha1.PoolPolicy{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
			return w.sparesOfPools(ctx, o.GetNamespace(), map[string]bool{o.GetName(): true})
		}), policies).
		Watches(&hivev1.ClusterPool{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
			return w.sparesOfPools(ctx, o.GetNamespace(), map[string]bool{o.GetName(): true})
		}), builder.WithPredicates(stepsSinceChanged())).
		Watches(&v1alpha1.ClusterBootstrap{}, handler.EnqueueRequestsFromMapFunc(w.sparesOfBootstrap), bootstraps)
}

// clusterChanged selects the changes of clusters that need a pass.
func (w Watch) clusterChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return w.Concerns(e.Object.(*hivev1.ClusterDeployment)) },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, after := e.ObjectOld.(*hivev1.ClusterDeployment), e.ObjectNew.(*hivev1.ClusterDeployment)
			if !w.Concerns(after) {
				return false
			}
			return !w.Concerns(before) || gate.IsCheckable(before) != gate.IsCheckable(after) ||
				!gate.RunStart(before).Equal(gate.RunStart(after)) || w.Changed(before, after)
		},
	}
}

// stepsSinceChanged selects the updates of pools after which another set of spares predates the steps.
func stepsSinceChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, after := e.ObjectOld.(*hivev1.ClusterPool), e.ObjectNew.(*hivev1.ClusterPool)
			return !before.Status.StepsSince.Equal(after.Status.StepsSince)
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

// sparesOfBootstrap returns the clusters of concern of the pools that use a bootstrap.
func (w Watch) sparesOfBootstrap(ctx context.Context, o client.Object) []reconcile.Request {
	list, err := PoolsOf(ctx, w.Cached, client.ObjectKeyFromObject(o))
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "finding the pools of a bootstrap")
	}
	pools := map[string]bool{}
	for _, p := range list {
		pools[p.Name] = true
	}
	return w.sparesOfPools(ctx, o.GetNamespace(), pools)
}

// sparesOfPools returns the clusters of concern of pools of a namespace.
func (w Watch) sparesOfPools(ctx context.Context, namespace string, pools map[string]bool) []reconcile.Request {
	if len(pools) == 0 {
		return nil
	}
	var list hivev1.ClusterDeploymentList
	if err := w.Cached.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing clusters")
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		cd := &list.Items[i]
		if ref := cd.Spec.ClusterPoolRef; w.Concerns(cd) && ref.Namespace == namespace && pools[ref.PoolName] {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(cd)})
		}
	}
	return out
}
