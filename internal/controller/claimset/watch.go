package claimset

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/claimset"
)

// setsOfClaim returns the set that a claim names, and the one of whose claims it has the name: it may free the name.
func setsOfClaim(_ context.Context, o client.Object) []reconcile.Request {
	var out []reconcile.Request
	add := func(name string) {
		out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}})
	}
	ref := claimset.FindOwner(o.(*hivev1.ClusterClaim))
	if ref != nil {
		add(ref.Name)
	}
	if i := strings.LastIndex(o.GetName(), "-"); i > 0 && (ref == nil || ref.Name != o.GetName()[:i]) {
		add(o.GetName()[:i])
	}
	return out
}

// waitingSetsOfNamespace returns the sets that a change of a pool or a ClaimPolicy may concern: those of its namespace
// that have no clusters.
func (r *Reconciler) waitingSetsOfNamespace(ctx context.Context, o client.Object) []reconcile.Request {
	var list v1alpha1.ClaimSetList
	if err := r.Client.List(ctx, &list, client.InNamespace(o.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing the ClaimSets of a namespace")
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		if list.Items[i].Status.ServedTime == nil {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return out
}

// deletionChanged selects the updates that begin a deletion.
func deletionChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return (e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil)
	}}
}

// heartbeatChanged selects the updates of a set that renew its heartbeat, or change the timeout of it.
func heartbeatChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations()
		return before[hivev1.AnnotationHeartbeat] != after[hivev1.AnnotationHeartbeat] ||
			before[hivev1.AnnotationHeartbeatTimeout] != after[hivev1.AnnotationHeartbeatTimeout]
	}}
}

// waitingClaimDeleted selects the deletions of claims without a cluster: more clusters of their pool are free then.
func waitingClaimDeleted() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(event.UpdateEvent) bool { return false },
		DeleteFunc: func(e event.DeleteEvent) bool { return e.Object.(*hivev1.ClusterClaim).Spec.Namespace == "" },
	}
}

// poolChanged selects the updates of a pool that the choice of a pool, or its explanation, depends on.
func poolChanged() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, deletionChanged(),
		predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
			before, after := e.ObjectOld.(*hivev1.ClusterPool), e.ObjectNew.(*hivev1.ClusterPool)
			was, is := readPool(before, 0), readPool(after, 0)
			return was.Free != is.Free || was.Blocked != is.Blocked || was.NoRoom != is.NoRoom
		}})
}
