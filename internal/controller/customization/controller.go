// Package customization keeps the leases of ClusterDeploymentCustomizations true: each
// has at most one cluster, and none stays with a cluster that is gone.
//
// A pool takes a lease before it makes a cluster (package clusterpool). Here it ends,
// when the cluster is destroyed, or when it was never made; and here a cluster that
// lost it, or never had it, gets it. A pass over one customization is observe, decide,
// act. Its writes carry the version of the customization that was read first, so of
// two who take a lease one loses; and before a lease ends, the pool and then the
// cluster are read past all caches.
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
	"hotspare.io/hotspare/internal/metrics"
)

// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterdeploymentcustomizations,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterdeploymentcustomizations/status,verbs=patch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterdeployments,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterpools,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconciler keeps the lease of one customization at a time.
type Reconciler struct {
	// Client reads from caches that Index has been called on.
	Client client.Client
	// Live reads from the API server: no lease ends, and none begins, on a cache's word.
	Live   client.Reader
	Clock  clock.PassiveClock
	Events events.EventRecorder
	// Metrics measure the passes; nil measures nothing.
	Metrics *metrics.Metrics
}

// recheck is when a lease is looked at again whose cluster its pool means to make. That
// the pool drops the cluster's name wakes us; that it can be read again does not.
const recheck = time.Minute

// workers is how many customizations are kept at a time.
const workers = 4

// Reconcile does one pass over the customization, or over the clusters that name one
// which does not exist.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s, err := r.observeCustomization(ctx, req.NamespacedName)
	if err != nil {
		return fault.Requeue(0, err)
	}
	return fault.Requeue(0, r.applyPlan(ctx, req.NamespacedName, s, decide(req.NamespacedName, s.snapshot)))
}

// SetupWithManager starts the controller with mgr.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	if err := Index(ctx, mgr.GetFieldIndexer()); err != nil {
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
