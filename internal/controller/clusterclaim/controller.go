// Package clusterclaim reconciles ClusterClaims: it writes their conditions, deletes them when
// their lifetime has elapsed or their heartbeat is missing, and keeps the finalizer of a deleted claim until its cluster is
// deleted.
//
// The pool controller (package clusterpool) binds clusters to claims.
package clusterclaim

import (
	"context"
	"errors"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/claim"
	"hotspare.io/hotspare/internal/claimpolicy"
	"hotspare.io/hotspare/internal/claimset"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/heartbeat/tracker"
	"hotspare.io/hotspare/internal/metrics"
	"hotspare.io/hotspare/internal/mutationcache"
)

// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterclaims,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterclaims/status,verbs=patch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterpools,verbs=get;list;watch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterdeployments,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=hotspare.io,resources=claimpolicies;claimsets,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// A Reconciler reconciles ClusterClaims.
type Reconciler struct {
	// Client reads from caches that AddIndexes has been called on.
	Client client.Client
	// Live reads from the API server: the finalizer of a claim is removed only if its cluster is
	// certainly deleted, and PoolNotFound is set only if the pool certainly does not exist.
	Live   client.Reader
	Clock  clock.PassiveClock
	Events events.EventRecorder
	// Metrics measures how long claims wait; nil measures nothing.
	Metrics *metrics.Metrics
	// Policies returns the ClaimPolicies of a namespace; nil means that there are none.
	Policies func(ctx context.Context, namespace string) ([]claimpolicy.Policy, error)
	// Sets returns the ClaimSets of a namespace; nil means that there are none.
	Sets func(ctx context.Context, namespace string) (claimset.Sets, error)
	// Workers is the number of claims that are reconciled concurrently; 0 means 32. To grant access takes up to
	// 0.2 s with an API server other than the embedded one, which lists the rights of who grants.
	Workers int

	heartbeats tracker.Heartbeats
	claims     mutationcache.Writes[*hivev1.ClusterClaim]
}

// Reconcile runs one pass over the claim.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s, err := r.observeClaim(ctx, req.NamespacedName)
	switch {
	case err != nil:
		return fault.Requeue(0, err)
	case s == nil:
		r.heartbeats.Forget(req.NamespacedName)
		r.claims.ForgetKey(req.NamespacedName)
		return fault.Requeue(0, r.revokeOrphanedAccess(ctx, req.NamespacedName))
	}
	p := claim.Decide(s.Snapshot)
	accessErr := r.reconcileAccess(ctx, s, &p)
	if accessErr != nil && fault.KindOf(accessErr) == fault.Conflict {
		return fault.Requeue(0, accessErr)
	}
	return fault.Requeue(p.Next, errors.Join(accessErr, r.applyPlan(ctx, s, p)))
}

// SetupWithManager starts the controller with mgr.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	if err := AddIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	workers := r.Workers
	if workers == 0 {
		workers = 32
	}
	return r.watchAccessObjects(ctrl.NewControllerManagedBy(mgr).
		Named("clusterclaim").
		For(&hivev1.ClusterClaim{}).
		Watches(&hivev1.ClusterDeployment{}, handler.EnqueueRequestsFromMapFunc(claimOfCluster), builder.WithPredicates(predicate.Or(clusterChanged(), clusterSecretsChanged()))).
		Watches(&hivev1.ClusterPool{}, handler.EnqueueRequestsFromMapFunc(r.claimsOfPool), builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, poolDeletionChanged()))).
		Watches(&v1alpha1.ClaimPolicy{}, handler.EnqueueRequestsFromMapFunc(r.claimsOfPolicy), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.ClaimSet{}, handler.EnqueueRequestsFromMapFunc(claimsOfSet), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers})).
		Complete(r.Metrics.WrapReconciler("clusterclaim", r))
}
