// Package serviceinstance tells each ServiceInstance what became of it on its data plane,
// and holds it until nothing of it is there.
//
// A pass over one instance is observe, decide, act: one write at most. Where an instance
// goes is decided by package fleetregion, which places none without the finalizer that is
// put on here; what is made of it there, by its data plane's agent. So a data plane has
// something of an instance only if the instance has been told its name: the write that
// takes the finalizer off carries the version of an instance that knows of none, or of
// one whose data plane has said that nothing of it is left.
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
	"hotspare.io/hotspare/internal/metrics"
)

// +kubebuilder:rbac:groups=hotspare.io,resources=serviceinstances,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=hotspare.io,resources=serviceinstances/status,verbs=patch
// +kubebuilder:rbac:groups=hotspare.io,resources=fleetregions;dataplanes;dataplaneagents,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconciler keeps one ServiceInstance at a time.
type Reconciler struct {
	// Client reads from caches that Index has been called on.
	Client client.Client
	// Live reads from the API server: no data plane is gone on a cache's word.
	Live   client.Reader
	Clock  clock.PassiveClock
	Events events.EventRecorder
	// Metrics measure the passes; nil measures nothing.
	Metrics *metrics.Metrics
}

// workers is how many instances are kept at a time.
const workers = 8

// Reconcile does one pass over the instance.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s, err := r.observeInstance(ctx, req.NamespacedName)
	if err != nil || s == nil {
		return fault.Requeue(0, err)
	}
	d := decide(s.instance, s.snapshot)
	return fault.Requeue(0, r.applyPlan(ctx, s.instance, d))
}

// SetupWithManager starts the controller with mgr.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	if err := Index(ctx, mgr.GetFieldIndexer()); err != nil {
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
