// Package bootstrapstep takes the steps of ClusterBootstraps in the spare clusters of pools.
//
// A pass over one ClusterDeployment is observe, bootstrap.Decide, report, attempt, bootstrap.Decide, report: it
// records which step of which version begins before it attempts the step, and what came of the attempt after it.
// Each write carries the resource version that was read. A process that is killed anywhere repeats the attempt,
// which changes nothing that is done already. Before the last step is done, and if there are no steps any more, a pass
// removes from the cluster what the steps of other versions have left in it. The pool's controller relies on the record: it assigns no cluster, and
// hibernates none, before every step is done. A cluster of a pool without steps is neither read nor written.
package bootstrapstep

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/bootstrap"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/gate"
	"hotspare.io/hotspare/internal/kstatus"
	"hotspare.io/hotspare/internal/metrics"
	"hotspare.io/hotspare/internal/patch"
	"hotspare.io/hotspare/internal/sparerequirements"
)

// +kubebuilder:rbac:groups=hotspare.io,resources=poolpolicies;clusterbootstraps,verbs=get;list;watch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterdeployments,verbs=get;list;watch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterdeployments/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=secrets;configmaps,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Spokes takes steps in clusters.
type Spokes interface {
	// TakeStep attempts a step in the cluster whose admin kubeconfig is in the Secret. It may be repeated.
	// secrets are texts that the Outcome must not contain. An error is the hub's own.
	TakeStep(ctx context.Context, secret types.NamespacedName, step bootstrap.Step, secrets []string) (bootstrap.Outcome, error)
	// RemoveOtherVersions deletes what steps of other versions have left in the cluster; an empty version deletes that of
	// all. It is Done when nothing of it exists any more. It may be repeated. An error is the hub's own.
	RemoveOtherVersions(ctx context.Context, secret types.NamespacedName, version string) (bootstrap.Outcome, error)
}

// Reconciler takes the steps of bootstraps in ClusterDeployments.
type Reconciler struct {
	Client client.Client
	// Live reads from the API server.
	Live   client.Reader
	Spokes Spokes
	Clock  clock.PassiveClock
	Events events.EventRecorder
	// Metrics measures the passes and counts the steps; nil disables it.
	Metrics *metrics.Metrics
	// Workers is the number of clusters in which steps are taken concurrently; 0 means 10. Each worker may wait
	// for a cluster.
	Workers int
}

// Reconcile does one pass over the cluster.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var cd hivev1.ClusterDeployment
	if err := r.Client.Get(ctx, req.NamespacedName, &cd); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !concernsSteps(&cd) {
		return ctrl.Result{}, nil
	}
	s, err := r.observeCluster(ctx, &cd)
	if err != nil {
		return fault.Requeue(0, fmt.Errorf("observing the bootstrap of %s: %w", req.NamespacedName, err))
	}
	p := bootstrap.Decide(s)
	if err := r.reportStatus(ctx, &cd, s, p); err != nil {
		return fault.Requeue(0, err)
	}
	if p.Attempt == nil && !p.RemoveOthers {
		return fault.Requeue(p.Next, nil)
	}
	if p.Unchanged {
		if err := r.confirmCurrent(ctx, &cd); err != nil {
			return fault.Requeue(0, err)
		}
	}
	outcome, err := r.attempt(ctx, &cd, s, p)
	if err != nil {
		return fault.Requeue(0, fmt.Errorf("taking a step of the bootstrap of %s: %w", req.NamespacedName, err))
	}
	s.Record, s.Reported, s.Outcome, s.Now = cd.Status.Bootstrap, true, &outcome, r.Clock.Now()
	p = bootstrap.Decide(s)
	return fault.Requeue(p.Next, r.reportStatus(ctx, &cd, s, p))
}

// concernsSteps reports whether a pass over a cluster may have anything to do. A claimed cluster keeps the record
// with which it was claimed, and one that has taken every step keeps it, too.
func concernsSteps(cd *hivev1.ClusterDeployment) bool {
	ref := cd.Spec.ClusterPoolRef
	return ref != nil && ref.PoolName != "" && ref.ClaimName == "" && cd.DeletionTimestamp == nil && cd.Unreadable == "" &&
		!hivev1.IsTrue(cd.Annotations, hivev1.AnnotationReconcilePause) && !bootstrap.IsFinished(cd)
}

// reportStatus writes the plan into the cluster's status, and records events about what has changed.
func (r *Reconciler) reportStatus(ctx context.Context, cd *hivev1.ClusterDeployment, s bootstrap.Snapshot, p bootstrap.Plan) error {
	if p.Unchanged {
		return nil
	}
	before, now := cd.DeepCopy(), r.Clock.Now()
	cd.Status.Bootstrap = p.Record
	if !bootstrap.HasBegun(before) && bootstrap.HasBegun(cd) {
		gate.Forget(cd, now)
	}
	if p.Condition == (condition.Value{}) {
		condition.Remove(&cd.Status.Conditions, hivev1.ClusterBootstrapped)
	}
	condition.Apply(&cd.Status.Conditions, hivev1.ClusterBootstrapped, p.Condition, now)
	if equality.Semantic.DeepEqual(before.Status, cd.Status) {
		return nil
	}
	if cd.Spec.Installed {
		kstatus.ReportClusterDeployment(cd, now)
	}
	if _, err := patch.Status(ctx, r.Client, before, cd); err != nil {
		return fmt.Errorf("reporting the bootstrap of %s: %w", client.ObjectKeyFromObject(cd), err)
	}
	r.recordChanges(ctx, before, cd, s, p)
	return nil
}

// recordChanges records what has happened: a step that is done, and one that has begun to fail.
func (r *Reconciler) recordChanges(ctx context.Context, before, cd *hivev1.ClusterDeployment, s bootstrap.Snapshot, p bootstrap.Plan) {
	log := ctrl.LoggerFrom(ctx)
	if s.Outcome != nil && s.Outcome.Done && len(s.Requirement.Steps) > 0 {
		r.Events.Eventf(cd, nil, corev1.EventTypeNormal, "StepDone", "TakeStep", "Step %s of the bootstrap is done", before.Status.Bootstrap.Step)
		r.Metrics.RecordBootstrapStep(cd, true)
		log.Info("took step", "step", before.Status.Bootstrap.Step)
	}
	was := condition.Find(before.Status.Conditions, hivev1.ClusterBootstrapped)
	if was != nil && was.Reason == p.Condition.Reason {
		return
	}
	switch p.Condition.Reason {
	case hivev1.ReasonStepsDone:
		r.Events.Eventf(cd, nil, corev1.EventTypeNormal, p.Condition.Reason, "TakeStep", "%s", p.Condition.Message)
	case hivev1.ReasonStepFailed:
		r.Events.Eventf(cd, nil, corev1.EventTypeWarning, p.Condition.Reason, "TakeStep", "%s", p.Condition.Message)
		r.Metrics.RecordBootstrapStep(cd, false)
		log.Info("step failed", "message", p.Condition.Message)
	case hivev1.ReasonBootstrapChanged:
		r.Events.Eventf(cd, nil, corev1.EventTypeNormal, p.Condition.Reason, "TakeStep", "%s", p.Condition.Message)
	}
}

// Backoff after errors of the hub itself.
const (
	firstBackoff   = 50 * time.Millisecond
	longestBackoff = time.Minute
)

// newWatch selects the changes after which a cluster may take a step, or its condition must be written. A step in
// progress reads its ConfigMaps and Secrets in each attempt.
func (r *Reconciler) newWatch() sparerequirements.Watch {
	return sparerequirements.Watch{Cached: r.Client, Concerns: concernsSteps, Changed: func(before, after *hivev1.ClusterDeployment) bool {
		return before.Status.Bootstrap != nil && after.Status.Bootstrap == nil || !bootstrap.HasBegun(before) && bootstrap.HasBegun(after)
	}}
}

// SetupWithManager starts the controller with mgr.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	workers := r.Workers
	if workers == 0 {
		workers = 10
	}
	b := ctrl.NewControllerManagedBy(mgr).Named("bootstrapstep")
	return r.newWatch().AddTo(b).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstBackoff, longestBackoff),
		}).
		Complete(r.Metrics.WrapReconciler("bootstrapstep", r))
}
