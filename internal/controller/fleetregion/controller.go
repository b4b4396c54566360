// Package fleetregion creates and removes the data planes of regions, and places instances on them.
//
// A pass over one FleetRegion is observe, decide (internal/fleet/scaling), report, act. Each new data
// plane is first recorded in the region, with its name; each place for an instance is first
// recorded in its DataPlane (ADR 0018). Each write has the resource version of the observed object:
// of two contradicting passes, one fails. Package dataplane manages the lifecycle of each data
// plane.
package fleetregion

import (
	"context"
	"errors"
	"time"

	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/fleet/scaling"
	"hotspare.io/hotspare/internal/metrics"
	"hotspare.io/hotspare/internal/mutationcache"
)

// +kubebuilder:rbac:groups=hotspare.io,resources=fleetregions;instancetypes,verbs=get;list;watch
// +kubebuilder:rbac:groups=hotspare.io,resources=fleetregions/status;instancetypes/status;serviceinstances/status;dataplanes/status,verbs=patch
// +kubebuilder:rbac:groups=hotspare.io,resources=serviceinstances,verbs=get;list;watch
// +kubebuilder:rbac:groups=hotspare.io,resources=dataplanes,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=hotspare.io,resources=dataplaneagents,verbs=get;list;watch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterpools,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconciler reconciles FleetRegions.
type Reconciler struct {
	// Client reads from caches that AddIndexes has been called on.
	Client client.Client
	// Live reads from the API server: nothing is released based on a cache alone.
	Live   client.Reader
	Clock  clock.PassiveClock
	Events events.EventRecorder
	// Started is when this process started. Earlier answers of agents do not count: the hub may
	// have been restored from a backup.
	Started time.Time
	// Suffix returns the end of a data plane's name: five characters that no other name has.
	Suffix func() string
	// Metrics records the passes; nil records nothing.
	Metrics *metrics.Metrics

	// Writes that are not in the cache yet. They avoid conflicts.
	regions   mutationcache.Writes[*v1alpha1.FleetRegion]
	planes    mutationcache.Writes[*v1alpha1.DataPlane]
	instances mutationcache.Writes[*v1alpha1.ServiceInstance]
}

// Reconcile does one pass over the FleetRegion.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s, err := r.observeRegion(ctx, req.NamespacedName)
	if err != nil || s == nil {
		return fault.Requeue(0, err)
	}
	if s.duplicateReason != "" {
		return fault.Requeue(0, r.reportDuplicate(ctx, s))
	}
	snapshot, err := s.BuildSnapshot(r.Clock.Now())
	if err != nil {
		return ctrl.Result{}, nil //nolint:nilerr // it cannot be read; its next change starts another pass
	}
	plan := scaling.Decide(snapshot)
	log := ctrl.LoggerFrom(ctx).V(1)
	for _, st := range plan.Steps {
		log.Info("decided", "step", st.String())
	}
	if err := r.patchRegionStatus(ctx, s, plan); err != nil {
		return fault.Requeue(0, err)
	}
	return fault.Requeue(plan.Next, errors.Join(r.applyPlan(ctx, s, plan), r.reportWaitingInstances(ctx, s, plan)))
}

const (
	firstBackoff   = 50 * time.Millisecond
	longestBackoff = time.Minute
	// concurrency is the number of regions that are reconciled at the same time.
	concurrency = 4
)

// SetupWithManager adds the controller to mgr.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	if err := AddIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("fleetregion").
		For(&v1alpha1.FleetRegion{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		// When a region is deleted, the next one with the same provider and region takes over.
		Watches(&v1alpha1.FleetRegion{}, handler.EnqueueRequestsFromMapFunc(r.requestsForInstance), builder.WithPredicates(deletedPredicate())).
		Watches(&v1alpha1.DataPlane{}, handler.EnqueueRequestsFromMapFunc(r.requestsForPlane), builder.WithPredicates(planeChanged())).
		Watches(&v1alpha1.ServiceInstance{}, handler.EnqueueRequestsFromMapFunc(r.requestsForInstance), builder.WithPredicates(instanceChanged())).
		Watches(&v1alpha1.InstanceType{}, handler.EnqueueRequestsFromMapFunc(r.requestsForType), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&hivev1.ClusterPool{}, handler.EnqueueRequestsFromMapFunc(r.requestsForPool), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: concurrency,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstBackoff, longestBackoff),
		}).
		Complete(r.Metrics.WrapReconciler("fleetregion", r))
}
