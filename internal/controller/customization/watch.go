package customization

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/inventory/lease"
)

const (
	// byCustomization indexes clusters by the customization that they name.
	byCustomization = "customization"
	// byHolder indexes customizations by the cluster that has their lease.
	byHolder = "holder"
)

// AddIndexes adds the indexes that this controller needs to a cache.
func AddIndexes(ctx context.Context, ix client.FieldIndexer) error {
	err := ix.IndexField(ctx, &hivev1.ClusterDeployment{}, byCustomization, func(o client.Object) []string {
		if cd := o.(*hivev1.ClusterDeployment); isRelevantCluster(cd) {
			return []string{customizationOf(cd).String()}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("indexing clusters by customization: %w", err)
	}
	err = ix.IndexField(ctx, &hivev1.ClusterDeploymentCustomization{}, byHolder, func(o client.Object) []string {
		if holder, ok := lease.Holder(o.(*hivev1.ClusterDeploymentCustomization)); ok {
			return []string{holder.String()}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("indexing customizations by cluster: %w", err)
	}
	return nil
}

// customizationsOfCluster returns the customization that a cluster names, and those whose lease it
// has.
func (r *Reconciler) customizationsOfCluster(ctx context.Context, o client.Object) []reconcile.Request {
	out := r.customizationsHeldBy(ctx, client.ObjectKeyFromObject(o))
	if cd := o.(*hivev1.ClusterDeployment); isRelevantCluster(cd) {
		named := reconcile.Request{NamespacedName: customizationOf(cd)}
		if !slices.Contains(out, named) {
			out = append(out, named)
		}
	}
	return out
}

func (r *Reconciler) customizationsHeldBy(ctx context.Context, holder types.NamespacedName) []reconcile.Request {
	var list hivev1.ClusterDeploymentCustomizationList
	if err := r.Client.List(ctx, &list, client.MatchingFields{byHolder: holder.String()}, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing customizations of a cluster")
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return out
}

// enqueueDroppedPending enqueues the customizations of clusters that a pool has removed from its
// recorded names.
func (r *Reconciler) enqueueDroppedPending() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	wake := func(ctx context.Context, q queue, names []string) {
		for _, name := range names {
			for _, req := range r.customizationsHeldBy(ctx, types.NamespacedName{Namespace: name, Name: name}) {
				q.Add(req)
			}
		}
	}
	return handler.Funcs{
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			after := e.ObjectNew.(*hivev1.ClusterPool).Status.Pending
			wake(ctx, q, slices.DeleteFunc(slices.Clone(e.ObjectOld.(*hivev1.ClusterPool).Status.Pending), func(name string) bool {
				return slices.Contains(after, name)
			}))
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			wake(ctx, q, e.Object.(*hivev1.ClusterPool).Status.Pending)
		},
	}
}

// clusterChanged selects the updates of a cluster that a lease depends on.
func clusterChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return readCluster(e.ObjectOld.(*hivev1.ClusterDeployment)) != readCluster(e.ObjectNew.(*hivev1.ClusterDeployment))
	}}
}
