package clusterpool

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/inventory/lease"
	"hotspare.io/hotspare/internal/pool/facts"
	"hotspare.io/hotspare/internal/sparerequirements"
)

func poolOfCluster(_ context.Context, o client.Object) []reconcile.Request {
	p := poolKeyOf(o.(*hivev1.ClusterDeployment))
	if p.Name == "" {
		return nil
	}
	return poolRequest(p.Namespace, p.Name)
}

func poolOfClaim(_ context.Context, o client.Object) []reconcile.Request {
	return poolRequest(o.GetNamespace(), o.(*hivev1.ClusterClaim).Spec.ClusterPoolName)
}

func (r *Reconciler) poolsOfImageSet(ctx context.Context, o client.Object) []reconcile.Request {
	var list hivev1.ClusterPoolList
	if err := r.Client.List(ctx, &list); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing pools of an image set")
		return nil
	}
	var out []reconcile.Request
	for _, p := range list.Items {
		if p.Spec.ImageSetRef.Name == o.GetName() {
			r.poolCaches.expireDependencies(&p)
			out = append(out, poolRequest(p.Namespace, p.Name)...)
		}
	}
	return out
}

// deferralDelay is the delay for events that no waiting claim depends on: each served claim changes
// a cluster and the claim itself, and immediate passes for those changes would delay the next
// claim.
const deferralDelay = 100 * time.Millisecond

// enqueuePool enqueues the pool of an object, after deferralDelay if the event is not urgent.
func enqueuePool(pool handler.MapFunc, canWait func(before, now client.Object) bool) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	wake := func(ctx context.Context, q queue, before, now client.Object) {
		wait := time.Duration(0)
		if canWait(before, now) {
			wait = deferralDelay
		}
		for _, o := range []client.Object{before, now} {
			if o == nil {
				continue
			}
			for _, r := range pool(ctx, o) {
				q.AddAfter(r, wait)
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { wake(ctx, q, nil, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { wake(ctx, q, e.ObjectOld, e.ObjectNew) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { wake(ctx, q, e.Object, nil) },
	}
}

// canBeDeferred reports whether no claim depends on a change of a cluster: no claim waits on its
// pool, or the cluster is already bound to a claim.
func (r *Reconciler) canBeDeferred(before, now client.Object) bool {
	for _, o := range []client.Object{before, now} {
		if o != nil {
			ref := o.(*hivev1.ClusterDeployment).Spec.ClusterPoolRef
			if ref != nil && (ref.ClaimName != "" || !r.poolCaches.hasWaitingClaims(types.NamespacedName{Namespace: ref.Namespace, Name: ref.PoolName})) {
				return true
			}
		}
	}
	return false
}

// canClaimWait reports whether the event neither creates nor admits a claim: such a claim waits for a
// cluster.
func canClaimWait(before, now client.Object) bool {
	return before != nil && (now == nil || admissionStatus(before) == admissionStatus(now))
}

func poolRequest(namespace, name string) []reconcile.Request {
	var q reconcile.Request
	q.Namespace, q.Name = namespace, name
	return []reconcile.Request{q}
}

// memberChanged selects the updates of a cluster that a plan could depend on.
func memberChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*hivev1.ClusterDeployment), e.ObjectNew.(*hivev1.ClusterDeployment)
		never := time.Time{}
		return facts.ReadMember(before, never) != facts.ReadMember(after, never)
	}}
}

// finalizersChanged selects updates that begin or advance a deletion.
func finalizersChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return !e.ObjectOld.GetDeletionTimestamp().Equal(e.ObjectNew.GetDeletionTimestamp()) ||
			!equality.Semantic.DeepEqual(e.ObjectOld.GetFinalizers(), e.ObjectNew.GetFinalizers())
	}}
}

// admissionChanged selects the updates that admit a claim, withdraw its admission, or remove the condition
// with the last ClaimPolicy.
func admissionChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return admissionStatus(e.ObjectOld) != admissionStatus(e.ObjectNew)
		},
	}
}

// priorityChanged selects the updates that change the priority of a claim.
func priorityChanged() predicate.Predicate {
	priority := func(o client.Object) string { return o.GetAnnotations()[hivev1.AnnotationPriority] }
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool { return priority(e.ObjectOld) != priority(e.ObjectNew) },
	}
}

// admissionStatus returns the status of condition Admitted of a claim; "" if it has none.
func admissionStatus(o client.Object) corev1.ConditionStatus {
	found := condition.Find(o.(*hivev1.ClusterClaim).Status.Conditions, hivev1.ClaimAdmitted)
	if found == nil {
		return ""
	}
	return found.Status
}

// existenceChanged selects the creation and the deletion of an object.
func existenceChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return (e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil)
	}}
}

// poolsOfNamespace returns the pools in the namespace of a ClaimPolicy or a ClaimSet. The first ClaimPolicy holds
// claims, the end of the last one frees them, and each limits the priorities of claims. A ClaimSet has the priority of
// its claims, and its deletion holds them.
func (r *Reconciler) poolsOfNamespace(ctx context.Context, o client.Object) []reconcile.Request {
	var list hivev1.ClusterPoolList
	if err := r.Client.List(ctx, &list, client.InNamespace(o.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing pools of a namespace")
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		out = append(out, poolRequest(list.Items[i].Namespace, list.Items[i].Name)...)
	}
	return out
}

// poolsOfCustomization returns the pools that list, have recorded, or have clusters of a
// customization.
func (r *Reconciler) poolsOfCustomization(ctx context.Context, o client.Object) []reconcile.Request {
	var list hivev1.ClusterPoolList
	if err := r.Client.List(ctx, &list, client.InNamespace(o.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing pools of a customization")
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		p := &list.Items[i]
		_, recorded := p.Status.Inventory[o.GetName()]
		ref := p.Spec.CustomizationRef
		if ref != nil && ref.Name == o.GetName() {
			r.poolCaches.expireDependencies(p)
		} else if !recorded && !slices.Contains(p.Spec.Inventory.Names(), o.GetName()) {
			continue
		}
		out = append(out, poolRequest(p.Namespace, p.Name)...)
	}
	return out
}

// customizationChanged selects the updates of a customization that matter to a pool: of its
// patches, its holder, and its deletion.
func customizationChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*hivev1.ClusterDeploymentCustomization), e.ObjectNew.(*hivev1.ClusterDeploymentCustomization)
		was, held := lease.Holder(before)
		is, holds := lease.Holder(after)
		return before.Generation != after.Generation || was != is || held != holds ||
			before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero()
	}}
}

// poolKeyOf returns a cluster's pool; empty if it has none. For an unreadable cluster, its labels
// may be the only record of the pool.
func poolKeyOf(cd *hivev1.ClusterDeployment) types.NamespacedName {
	if ref := cd.Spec.ClusterPoolRef; ref != nil && ref.PoolName != "" {
		return types.NamespacedName{Namespace: ref.Namespace, Name: ref.PoolName}
	}
	if cd.Unreadable == "" {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: cd.Labels[hivev1.LabelPoolNamespace], Name: cd.Labels[hivev1.LabelPoolName]}
}

// poolOfPolicy returns the pool of a policy, which has its name.
func poolOfPolicy(_ context.Context, o client.Object) []reconcile.Request {
	return poolRequest(o.GetNamespace(), o.GetName())
}

// poolsOfBootstrap returns the pools that use a ClusterBootstrap.
func (r *Reconciler) poolsOfBootstrap(ctx context.Context, o client.Object) []reconcile.Request {
	pools, err := sparerequirements.PoolsOf(ctx, r.Client, client.ObjectKeyFromObject(o))
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "finding the pools of a bootstrap")
	}
	var out []reconcile.Request
	for _, p := range pools {
		out = append(out, reconcile.Request{NamespacedName: p})
	}
	return out
}
