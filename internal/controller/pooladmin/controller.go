// Package pooladmin grants the admins of pools access to the namespaces of their clusters, and
// revokes it.
//
// Admins are the subjects of the RoleBindings in a pool's namespace that refer to the ClusterRole
// hive-cluster-pool-admin. A pass reconciles one cluster: it reads these RoleBindings from
// caches, and writes the RoleBinding in the cluster's namespace if it is not as it should be.
package pooladmin

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/metrics"
	"hotspare.io/hotspare/internal/rbac"
	"hotspare.io/hotspare/internal/rbac/grant"
)

// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterdeployments,verbs=get;list;watch
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=rolebindings,verbs=get;list;watch;create
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles,resourceNames=hive-cluster-pool-admin,verbs=bind

// Reconciler reconciles the admin access of clusters.
type Reconciler struct {
	// Client reads from caches to which AddIndexes has added the indexes.
	Client client.Client
	// Metrics measures the passes; nil disables it.
	Metrics *metrics.Metrics
}

// Names of the indexes that the passes use.
const (
	// byPoolNamespace finds the clusters of all pools in a namespace.
	byPoolNamespace = "poolNamespace"
	// byAdmins finds the RoleBindings that grant pool admin access.
	byAdmins   = "poolAdmins"
	indexValue = "yes"
)

// AddIndexes adds the indexes that this controller needs to a cache.
func AddIndexes(ctx context.Context, ix client.FieldIndexer) error {
	if err := ix.IndexField(ctx, &hivev1.ClusterDeployment{}, byPoolNamespace, func(o client.Object) []string {
		if ref := o.(*hivev1.ClusterDeployment).Spec.ClusterPoolRef; ref != nil {
			return []string{ref.Namespace}
		}
		return nil
	}); err != nil {
		return err
	}
	return ix.IndexField(ctx, &rbacv1.RoleBinding{}, byAdmins, func(o client.Object) []string {
		if rbac.GrantsPoolAdmin(o.(*rbacv1.RoleBinding)) {
			return []string{indexValue}
		}
		return nil
	})
}

// Reconcile grants the admins of a cluster's pool access to its namespace, or revokes it. It
// ignores namespaces that no pool has created.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var cd hivev1.ClusterDeployment
	if err := r.Client.Get(ctx, req.NamespacedName, &cd); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	place, err := grant.CheckNamespace(ctx, r.Client, &cd)
	if err != nil || place != grant.Open {
		return fault.Requeue(0, err)
	}
	want, err := r.desiredBinding(ctx, &cd)
	if err != nil {
		return ctrl.Result{}, err
	}
	return fault.Requeue(0, r.applyBinding(ctx, &cd, want))
}

func (r *Reconciler) desiredBinding(ctx context.Context, cd *hivev1.ClusterDeployment) (*rbacv1.RoleBinding, error) {
	var list rbacv1.RoleBindingList
	pools := cd.Spec.ClusterPoolRef.Namespace
	if err := r.Client.List(ctx, &list, client.InNamespace(pools), client.MatchingFields{byAdmins: indexValue}); err != nil {
		return nil, fmt.Errorf("listing the pool admins of namespace %s: %w", pools, err)
	}
	return rbac.DecideAdminBinding(pools, list.Items, cd.Namespace), nil
}

func (r *Reconciler) applyBinding(ctx context.Context, cd *hivev1.ClusterDeployment, want *rbacv1.RoleBinding) error {
	if want != nil {
		wrote, err := grant.EnsureRoleBinding(ctx, r.Client, want)
		if wrote && err == nil {
			ctrl.LoggerFrom(ctx).Info("granted pool admins access", "pools", cd.Spec.ClusterPoolRef.Namespace, "admins", len(want.Subjects))
		}
		return err
	}
	gone := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: cd.Namespace, Name: hivev1.PoolAdminBinding}}
	wrote, err := grant.DeleteOurs(ctx, r.Client, gone, func(metav1.Object) bool { return true })
	if wrote && err == nil {
		ctrl.LoggerFrom(ctx).Info("revoked access of pool admins", "pools", cd.Spec.ClusterPoolRef.Namespace)
	}
	return err
}

// SetupWithManager starts the controller with mgr.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	if err := AddIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("pooladmin").
		For(&hivev1.ClusterDeployment{}, builder.WithPredicates(createdOnly())).
		Watches(&rbacv1.RoleBinding{}, handler.EnqueueRequestsFromMapFunc(r.clustersOfBinding)).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
		Complete(r.Metrics.WrapReconciler("pooladmin", r))
}

// clustersOfBinding returns requests for the clusters that a RoleBinding concerns: those of the
// pools in its namespace, or the one in its namespace.
func (r *Reconciler) clustersOfBinding(ctx context.Context, o client.Object) []reconcile.Request {
	b := o.(*rbacv1.RoleBinding)
	var out []reconcile.Request
	if b.Name == hivev1.PoolAdminBinding {
		out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: b.Namespace, Name: b.Namespace}})
	}
	if !rbac.GrantsPoolAdmin(b) {
		return out
	}
	var list hivev1.ClusterDeploymentList
	// The list is only read: copying every cluster would be wasteful.
	if err := r.Client.List(ctx, &list, client.MatchingFields{byPoolNamespace: b.Namespace}, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing the clusters of pool admins")
		return out
	}
	for i := range list.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return out
}

// createdOnly passes only create events: a cluster's pool never changes, and everything in its
// namespace is deleted with it.
func createdOnly() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(event.UpdateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}
