package fleetregion

import (
	"context"
	"fmt"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/fleet/facts"
	"hotspare.io/hotspare/internal/metrics"
	"hotspare.io/hotspare/internal/patch"
)

// TypeReconciler reports in each InstanceType whether its sizes fit.
type TypeReconciler struct {
	Client client.Client
	Clock  clock.PassiveClock
	// Metrics records the passes; nil records nothing.
	Metrics *metrics.Metrics
}

// Reconcile does one pass over the InstanceType.
func (t *TypeReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var it v1alpha1.InstanceType
	if err := t.Client.Get(ctx, req.NamespacedName, &it); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if it.Unreadable != "" {
		return ctrl.Result{}, nil
	}
	after := it.DeepCopy()
	after.Status = facts.BuildTypeStatus(&it, t.Clock.Now())
	if _, err := patch.Status(ctx, t.Client, &it, after); client.IgnoreNotFound(err) != nil {
		return fault.Requeue(0, fmt.Errorf("writing the status of InstanceType %s: %w", it.Name, err))
	}
	return ctrl.Result{}, nil
}

// SetupWithManager adds the controller to mgr.
func (t *TypeReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("instancetype").
		For(&v1alpha1.InstanceType{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(t.Metrics.WrapReconciler("instancetype", t))
}
