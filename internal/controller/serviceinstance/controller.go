// Package serviceinstance writes the state of each ServiceInstance on its data plane to its status,
// and keeps the instance until nothing of it is left there.
//
// A pass over one instance is observe, instance.Decide, act: one write at most. Package fleetregion places
// instances, and only those with the finalizer that this package adds; the data plane's agent
// creates their objects. A data plane therefore has objects of an instance only if the instance's
// status has named it: the write that removes the finalizer has the resource version of an instance
// that names no data plane, or one whose data plane has reported that nothing of it is left.
package serviceinstance

import (
	"context"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/fleet/instance"
	"hotspare.io/hotspare/internal/metrics"
)

// +kubebuilder:rbac:groups=hotspare.io,resources=serviceinstances,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=hotspare.io,resources=serviceinstances/status,verbs=patch
// +kubebuilder:rbac:groups=hotspare.io,resources=fleetregions;dataplanes;dataplaneagents,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconciler reconciles ServiceInstances.
type Reconciler struct {
	// Client reads from caches that AddIndexes has been called on.
	Client client.Client
	// Live reads from the API server: a cache alone does not prove that a data plane was deleted.
	Live   client.Reader
	Clock  clock.PassiveClock
	Events events.EventRecorder
	// Metrics records the passes; nil records nothing.
	Metrics *metrics.Metrics
}

// workers is the number of instances that are reconciled at the same time.
const workers = 8

// Reconcile does one pass over the instance.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s, err := r.observeInstance(ctx, req.NamespacedName)
	if err != nil || s == nil {
		return fault.Requeue(0, err)
	}
	return fault.Requeue(0, r.applyPlan(ctx, s.Instance, instance.Decide(*s)))
}

// SetupWithManager adds the controller to mgr.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	if err := AddIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("serviceinstance").
		For(&v1alpha1.ServiceInstance{}, builder.WithPredicates(instanceChanged())).
		Watches(&v1alpha1.DataPlaneAgent{}, r.onReport()).
		Watches(&v1alpha1.DataPlane{}, r.onPlane()).
		Watches(&v1alpha1.FleetRegion{}, r.onRegion()).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r.Metrics.WrapReconciler("serviceinstance", r))
}
