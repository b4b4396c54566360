package clusterclaim

import (
	"context"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/claimset"
	"hotspare.io/hotspare/internal/rbac"
)

// byClaim indexes clusters by the claim that they are bound to, as namespace/name.
const byClaim = "claim"

// AddIndexes adds the index that this controller needs to a cache.
func AddIndexes(ctx context.Context, ix client.FieldIndexer) error {
	return ix.IndexField(ctx, &hivev1.ClusterDeployment{}, byClaim, func(o client.Object) []string {
		if ref := o.(*hivev1.ClusterDeployment).Spec.ClusterPoolRef; ref != nil && ref.ClaimName != "" {
			return []string{ref.Namespace + "/" + ref.ClaimName}
		}
		return nil
	})
}

func claimOfCluster(_ context.Context, o client.Object) []reconcile.Request {
	ref := o.(*hivev1.ClusterDeployment).Spec.ClusterPoolRef
	if ref == nil || ref.ClaimName == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: ref.Namespace, Name: ref.ClaimName}}}
}

// claimsOfPool enqueues the claims of a pool that is created or deleted, or whose limits change.
func (r *Reconciler) claimsOfPool(ctx context.Context, o client.Object) []reconcile.Request {
	var list hivev1.ClusterClaimList
	if err := r.Client.List(ctx, &list, client.InNamespace(o.GetNamespace())); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing claims of a pool")
		return nil
	}
	var out []reconcile.Request
	for _, c := range list.Items {
		if c.Spec.ClusterPoolName == o.GetName() {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&c)})
		}
	}
	return out
}

// claimsOfPolicy enqueues the claims in the namespace of a ClaimPolicy, which limits their lifetimes.
func (r *Reconciler) claimsOfPolicy(ctx context.Context, o client.Object) []reconcile.Request {
	var list hivev1.ClusterClaimList
	if err := r.Client.List(ctx, &list, client.InNamespace(o.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing claims of a ClaimPolicy")
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return out
}

// claimsOfSet returns the claims of a ClaimSet: they have its priority.
func claimsOfSet(_ context.Context, o client.Object) []reconcile.Request {
	var out []reconcile.Request
	for i := range o.(*v1alpha1.ClaimSet).Spec.Size {
		out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: claimset.ClaimName(o.GetName(), int(i))}})
	}
	return out
}

// clusterChanged selects the updates of a cluster that affect its claim.
func clusterChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return *readCluster(e.ObjectOld.(*hivev1.ClusterDeployment)) != *readCluster(e.ObjectNew.(*hivev1.ClusterDeployment))
	}}
}

func poolDeletionChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return !e.ObjectOld.GetDeletionTimestamp().Equal(e.ObjectNew.GetDeletionTimestamp())
	}}
}

// watchAccessObjects enqueues a claim when the Role or RoleBinding of its subjects changes.
func (r *Reconciler) watchAccessObjects(b *builder.Builder) *builder.Builder {
	ours := builder.WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() == hivev1.ClaimOwnerRole }))
	claims := handler.EnqueueRequestsFromMapFunc(r.claimOfAccess)
	return b.Watches(&rbacv1.Role{}, claims, ours).Watches(&rbacv1.RoleBinding{}, claims, ours)
}

func (r *Reconciler) claimOfAccess(ctx context.Context, o client.Object) []reconcile.Request {
	var cd hivev1.ClusterDeployment
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetNamespace()}, &cd)
	if err != nil {
		if client.IgnoreNotFound(err) != nil {
			ctrl.LoggerFrom(ctx).Error(err, "finding the cluster of a Role or RoleBinding")
		}
		return nil
	}
	return claimOfCluster(ctx, &cd)
}

// clusterSecretsChanged selects the updates of a cluster that change which Secrets its owners may
// read.
func clusterSecretsChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := rbac.ReadableSecrets(e.ObjectOld.(*hivev1.ClusterDeployment)), rbac.ReadableSecrets(e.ObjectNew.(*hivev1.ClusterDeployment))
		return !slices.Equal(before, after)
	}}
}
