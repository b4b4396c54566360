// Package powerschedule hibernates and resumes clusters on a schedule.
//
// A pass over one PowerSchedule is observe, schedule.Decide, report, act. The slot is recorded in
// the schedule's status before the first cluster is changed, and on each cluster in the write
// that sets its power state. A process that dies after any write is therefore followed by one
// that neither repeats nor misses a slot. Passes are triggered by timers, and, to update the
// number of clusters, by changes of clusters.
package powerschedule

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/metrics"
	"hotspare.io/hotspare/internal/power/schedule"
)

// +kubebuilder:rbac:groups=hotspare.io,resources=powerschedules,verbs=get;list;watch
// +kubebuilder:rbac:groups=hotspare.io,resources=powerschedules/status,verbs=patch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterdeployments,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterclaims,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconciler reconciles PowerSchedules.
type Reconciler struct {
	// Client reads from caches, Live from the API server: only Live returns managedFields, which
	// show when a field was written.
	Client client.Client
	Live   client.Reader
	Clock  clock.PassiveClock
	Events events.EventRecorder
	// Metrics measures the passes; nil disables it.
	Metrics *metrics.Metrics
}

const (
	// maxRequeueDelay is the longest time between two passes: a timer fires late by the time for
	// which the machine was suspended.
	maxRequeueDelay = time.Minute
	// retryDelay is the delay before a failed step is retried.
	retryDelay = 10 * time.Second
)

// Reconcile does one pass over the schedule.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var ps v1alpha1.PowerSchedule
	if err := r.Client.Get(ctx, req.NamespacedName, &ps); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if ps.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	plan, faults := parseSpec(ps.Spec)
	if len(faults) > 0 {
		return fault.Requeue(0, r.reportInvalidSpec(ctx, &ps, faults))
	}
	s, err := r.observeClusters(ctx, &ps, plan)
	if err != nil {
		return fault.Requeue(0, fmt.Errorf("observing %s: %w", req.NamespacedName, err))
	}
	d, err := r.decideSteps(ctx, s)
	if err != nil {
		return fault.Requeue(0, err)
	}
	if err := r.reportPlan(ctx, &ps, d, len(s.clusters)); err != nil {
		return fault.Requeue(0, err)
	}
	next := maxRequeueDelay
	if d.RequeueAfter > 0 {
		next = min(d.RequeueAfter, maxRequeueDelay)
	}
	return fault.Requeue(next, r.applySteps(ctx, &ps, s, d.Steps))
}

// decideSteps calls schedule.Decide. Before clusters are changed for a missed slot, it reads when
// their power state was last changed, and decides again.
func (r *Reconciler) decideSteps(ctx context.Context, s *snapshot) (schedule.Plan, error) {
	now := r.Clock.Now()
	d := schedule.Decide(s.Snapshot, now)
	if len(d.Steps) > 0 && d.Record.StartedAt.Sub(d.Record.At) > missedSlotDelay {
		if err := r.observeLastChanges(ctx, s, d.Steps); err != nil {
			return d, err
		}
		d = schedule.Decide(s.Snapshot, now)
	}
	log := ctrl.LoggerFrom(ctx).V(1)
	for _, st := range d.Steps {
		log.Info("decided", "step", st.String())
	}
	return d, nil
}

// Backoff after errors of the hub itself. The maximum keeps it from extending past the next slot.
const (
	firstBackoff   = 50 * time.Millisecond
	longestBackoff = time.Minute
)

// SetupWithManager starts the controller with mgr.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	b := ctrl.NewControllerManagedBy(mgr).
		Named("powerschedule").
		For(&v1alpha1.PowerSchedule{}, builder.WithPredicates(predicate.GenerationChangedPredicate{}))
	return r.addWatches(b).
		WithOptions(controller.Options{
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstBackoff, longestBackoff),
		}).
		Complete(r.Metrics.WrapReconciler("powerschedule", r))
}
