// Package poolpolicy sizes pools by the claims that were seen.
//
// A pass over one PoolPolicy is observe, counts.Decide, act, report. What was seen is kept in memory
// and saved in a ConfigMap next to the pool, from which another process continues. The counts are
// written to the pool together with what must be known about them later, in one patch: a process that
// dies after any write is followed by one that neither takes its own change for one by hand nor the
// other way round. Passes are triggered by claims, by changes of the policy and its pool, and, because
// the expected demand changes with time, by a timer.
package poolpolicy

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/metrics"
	"hotspare.io/hotspare/internal/sizing"
	"hotspare.io/hotspare/internal/sizing/counts"
	"hotspare.io/hotspare/internal/sizing/policy"
	"hotspare.io/hotspare/internal/sizing/record"
)

// +kubebuilder:rbac:groups=hotspare.io,resources=poolpolicies,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=hotspare.io,resources=poolpolicies/status,verbs=patch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterpools,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterdeployments;clusterclaims,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;create;patch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// FieldManager is the field manager of the counts that this controller writes.
const FieldManager = "hotspare-sizing"

// Reconciler reconciles PoolPolicies.
type Reconciler struct {
	// Client reads from caches, Live from the API server: only Live returns ConfigMaps, Secrets, and
	// managedFields, which show who has changed the counts.
	Client client.Client
	Live   client.Reader
	Clock  clock.PassiveClock
	Events events.EventRecorder
	// Namespace is that of hotspare, with the ConfigMap of prices. If it is empty, the default table of prices is used.
	Namespace string
	// Metrics measures the passes; nil disables it.
	Metrics *metrics.Metrics

	mu      sync.Mutex
	records map[types.NamespacedName]*storedRecord
}

// maxRequeueDelay is the longest time between two passes: the expected demand changes with time.
const maxRequeueDelay = time.Minute

// Reconcile does one pass over the policy.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var p v1alpha1.PoolPolicy
	if err := r.Client.Get(ctx, req.NamespacedName, &p); err != nil {
		if client.IgnoreNotFound(err) != nil {
			return fault.Requeue(0, fmt.Errorf("reading PoolPolicy %s: %w", req, err))
		}
		return fault.Requeue(0, r.closeRecord(ctx, req.NamespacedName))
	}
	if p.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	if p.Unreadable != "" {
		usual, _ := policy.Parse(v1alpha1.PoolPolicySpec{}, policy.HubDefaults) // the defaults are valid
		return r.recordOnly(ctx, &p, usual, []policy.FieldError{{Reason: reasonUnreadable, Field: "it", Problem: "cannot be read: " + p.Unreadable}})
	}
	estimate, err := r.estimatePrices(ctx, &p)
	if err != nil {
		return fault.Requeue(0, fmt.Errorf("estimating the prices of PoolPolicy %s: %w", req, err))
	}
	parsed, faults := policy.Parse(p.Spec, policy.HubDefaults.WithEstimate(estimate))
	rungs, more := parseLadder(p.Spec)
	if faults = append(faults, more...); len(faults) > 0 {
		return r.recordOnly(ctx, &p, parsed, faults)
	}
	s, err := r.observePolicy(ctx, &p, parsed)
	if err != nil {
		return fault.Requeue(0, fmt.Errorf("observing PoolPolicy %s: %w", req, err))
	}
	if s.obstacle != nil {
		return fault.Requeue(0, errors.Join(r.reportObstacle(ctx, &p, s), r.closeRecord(ctx, req.NamespacedName)))
	}
	refusal, err := r.applyLadder(ctx, &p, s, rungs.String(), "")
	if err != nil {
		return fault.Requeue(0, err)
	}
	return r.decideAndAct(ctx, &p, s, refusal)
}

// recordOnly records claims while the specification is not valid, and reports what is wrong with it: no count is set, but
// the claims of a weekend are not lost because of a wrong price.
func (r *Reconciler) recordOnly(ctx context.Context, p *v1alpha1.PoolPolicy, parsed policy.Policy, faults []policy.FieldError) (ctrl.Result, error) {
	parsed.Objective = sizing.Objective{} // the record keeps the one that it has
	s, err := r.observePolicy(ctx, p, parsed)
	if err != nil {
		return fault.Requeue(0, errors.Join(err, r.reportInvalid(ctx, p, parsed.Estimate, nil, faults)))
	}
	if s.obstacle != nil {
		recorded := isFalse(v1alpha1.PolicyRecordUsable, s.obstacle.reason, s.obstacle.message)
		return fault.Requeue(0, errors.Join(r.reportInvalid(ctx, p, parsed.Estimate, &recorded, faults), r.closeRecord(ctx, client.ObjectKeyFromObject(p))))
	}
	s.record.refusal = r.saveRecord(ctx, s.record, s.pool)
	recorded := describeRecord(s.record, r.Clock.Now())
	return fault.Requeue(maxRequeueDelay, r.reportInvalid(ctx, p, parsed.Estimate, &recorded, faults))
}

// decideAndAct does the rest of a pass over a policy that has a pool. The refusal is why the API server refuses the ladder of the
// specification; empty if it does not.
func (r *Reconciler) decideAndAct(ctx context.Context, p *v1alpha1.PoolPolicy, s *observation, refusal string) (ctrl.Result, error) {
	plan, err := r.decide(ctx, s)
	if err != nil {
		return fault.Requeue(0, err)
	}
	refused := refusals{ladder: refusal}
	if refused.counts, err = r.act(ctx, p, s, plan); err != nil {
		return fault.Requeue(0, err)
	}
	if s.ladder = decideLadder(p.Spec, s, plan); s.ladder != nil {
		if refused.ladder, err = r.applyLadder(ctx, p, s, s.ladder.String(), s.ladder.Reason); err != nil {
			return fault.Requeue(0, err)
		}
	}
	noteDecision(s, plan)
	s.record.refusal = r.saveRecord(ctx, s.record, s.pool)
	err = r.reportStatus(ctx, p, s, plan, refused)
	next := maxRequeueDelay
	if m := plan.Manual; m != nil {
		next = max(min(next, m.Until.Sub(r.Clock.Now())), time.Second)
	}
	return fault.Requeue(next, err)
}

// noteDecision records what was decided, and which counts the pool has now.
func noteDecision(s *observation, plan counts.Plan) {
	in := s.snapshot.Sizing
	s.record.tracker.Note(record.Note{
		Pool: poolSetting(s.pool), Recommended: plan.Recommended.Setting(), Static: plan.Static,
		Computed: plan.Recommended.Computed, FollowsForecast: plan.Recommended.FollowsForecast(), Forecast: sizing.ForecastHour(in),
	}, in.Now)
}

// Backoff after errors of the hub itself.
const (
	firstBackoff   = 50 * time.Millisecond
	longestBackoff = time.Minute
)

// SetupWithManager starts the controller with mgr, and saves the records when mgr stops.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := mgr.Add(manager.RunnableFunc(r.saveAtExit)); err != nil {
		return fmt.Errorf("adding the writer of records: %w", err)
	}
	b := ctrl.NewControllerManagedBy(mgr).Named("poolpolicy")
	return r.addWatches(b).
		WithOptions(controller.Options{
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstBackoff, longestBackoff),
		}).
		Complete(r.Metrics.WrapReconciler("poolpolicy", r))
}
