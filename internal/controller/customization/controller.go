// Package customization reconciles the leases of ClusterDeploymentCustomizations: each
// customization has at most one cluster, and no lease outlives its cluster.
//
// A pool acquires a lease before it creates a cluster (package clusterpool). This package releases
// it when the cluster is destroyed, or was never created; and it acquires the lease for a cluster
// that lost it or never had it. A pass over one customization is observe, lease.Decide, act. Its writes
// carry the version of the customization that was read first, so if two processes acquire a lease,
// one gets a conflict. Before a pass releases a lease, it reads the pool and then the cluster from
// the API server.
package customization

import (
	"context"
	"time"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/inventory/lease"
	"hotspare.io/hotspare/internal/metrics"
)

// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterdeploymentcustomizations,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterdeploymentcustomizations/status,verbs=patch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterdeployments,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterpools,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// A Reconciler reconciles the leases of customizations.
type Reconciler struct {
	// Client reads from caches that AddIndexes has been called on.
	Client client.Client
	// Live reads from the API server: leases are never acquired or released on cached data alone.
	Live   client.Reader
	Clock  clock.PassiveClock
	Events events.EventRecorder
	// Metrics measures the passes; nil measures nothing.
	Metrics *metrics.Metrics
}

// recheck is the interval between passes over a lease whose cluster the pool has recorded for
// creation. An event starts a pass when the pool drops the cluster's name, but not when the pool
// becomes readable again.
const recheck = time.Minute

// workers is the number of customizations that are reconciled concurrently.
const workers = 4

// Reconcile runs one pass over the customization, or over the clusters that name one that does not
// exist.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s, err := r.observeCustomization(ctx, req.NamespacedName)
	if err != nil {
		return fault.Requeue(0, err)
	}
	return fault.Requeue(0, r.applyPlan(ctx, s, lease.Decide(s.Snapshot)))
}

// SetupWithManager starts the controller with mgr.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	if err := AddIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("customization").
		For(&hivev1.ClusterDeploymentCustomization{}).
		Watches(&hivev1.ClusterDeployment{}, handler.EnqueueRequestsFromMapFunc(r.customizationsOfCluster), builder.WithPredicates(clusterChanged())).
		Watches(&hivev1.ClusterPool{}, r.enqueueDroppedPending()).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r.Metrics.WrapReconciler("customization", r))
}
