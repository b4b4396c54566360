// Package clustergate checks the gates of the spare clusters of pools.
//
// A pass over one ClusterDeployment is observe, gate.Decide, report: it checks the gates of the ClusterBootstrap
// that the pool's PoolPolicy names, and writes the verdict into the cluster's status, on which the pool's
// controller relies. The write carries the resource version that was read, so a verdict about a run that has
// ended meanwhile is refused: the power controller removes the verdict in the write that ends the run. Passes
// are triggered by changes of clusters, policies and bootstraps, and by a timer, because nothing notifies the
// hub of changes in the clusters. A cluster of a pool without gates is neither read nor written.
package clustergate

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
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
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
// +kubebuilder:rbac:groups=hotspare.io,resources=clusterbootstraps/status,verbs=patch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterdeployments,verbs=get;list;watch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterdeployments/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Spokes checks gates in clusters.
type Spokes interface {
	// CheckGates checks gates of the cluster whose admin kubeconfig is in the Secret, and returns their answers
	// by name. run identifies the current run of the cluster, and the version of the gates: no gate passes while the cluster
	// has a pod of another one. An error is the hub's own.
	CheckGates(ctx context.Context, secret types.NamespacedName, gates []v1alpha1.Gate, run string) (map[string]gate.Answer, error)
	// DeleteGatePods deletes the pods of all gates in the cluster, or returns why it could not. An error is the hub's own.
	DeleteGatePods(ctx context.Context, secret types.NamespacedName) (trouble string, err error)
}

// Reconciler checks the gates of ClusterDeployments.
type Reconciler struct {
	Client client.Client
	Spokes Spokes
	Clock  clock.PassiveClock
	Events events.EventRecorder
	// Metrics measures the passes and counts the verdicts; nil disables it.
	Metrics *metrics.Metrics
	// Workers is the number of clusters whose gates are checked concurrently; 0 means 10. Each worker may wait
	// for a cluster.
	Workers int
}

// Reconcile does one pass over the cluster.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var cd hivev1.ClusterDeployment
	if err := r.Client.Get(ctx, req.NamespacedName, &cd); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !concernsGates(&cd) {
		return ctrl.Result{}, nil
	}
	s, err := r.observeCluster(ctx, &cd)
	if err != nil {
		return fault.Requeue(0, fmt.Errorf("observing the gates of %s: %w", req.NamespacedName, err))
	}
	if s.Undecided {
		return ctrl.Result{}, nil
	}
	p := gate.Decide(s)
	return fault.Requeue(p.Next, r.reportStatus(ctx, &cd, p))
}

// concernsGates reports whether a pass over a cluster may have anything to do. A claimed cluster keeps the
// verdict with which it was claimed.
func concernsGates(cd *hivev1.ClusterDeployment) bool {
	ref := cd.Spec.ClusterPoolRef
	return ref != nil && ref.PoolName != "" && ref.ClaimName == "" && cd.DeletionTimestamp == nil && cd.Unreadable == "" &&
		!hivev1.IsTrue(cd.Annotations, hivev1.AnnotationReconcilePause)
}

// reportStatus writes the verdict into the cluster's status, and records an event if it has changed.
func (r *Reconciler) reportStatus(ctx context.Context, cd *hivev1.ClusterDeployment, p gate.Plan) error {
	before, now := cd.DeepCopy(), r.Clock.Now()
	cd.Status.Gates = p.Record
	if p.Condition == (condition.Value{}) {
		condition.Remove(&cd.Status.Conditions, hivev1.ClusterGatesPassed)
	}
	condition.Apply(&cd.Status.Conditions, hivev1.ClusterGatesPassed, p.Condition, now)
	if equality.Semantic.DeepEqual(before.Status, cd.Status) {
		return nil
	}
	if cd.Spec.Installed {
		kstatus.ReportClusterDeployment(cd, now)
	}
	if _, err := patch.Status(ctx, r.Client, before, cd); err != nil {
		return fmt.Errorf("reporting the gates of %s: %w", client.ObjectKeyFromObject(cd), err)
	}
	if !p.Changes(condition.Find(before.Status.Conditions, hivev1.ClusterGatesPassed)) {
		return nil
	}
	typ := corev1.EventTypeNormal
	if !p.Condition.IsTrue() {
		typ = corev1.EventTypeWarning
	}
	r.Events.Eventf(cd, nil, typ, p.Condition.Reason, "CheckGates", "%s", p.Condition.Message)
	r.Metrics.RecordGateVerdict(cd, p.Condition.IsTrue())
	ctrl.LoggerFrom(ctx).Info("checked gates", "passed", p.Condition.IsTrue(), "message", p.Condition.Message)
	return nil
}

// Backoff after errors of the hub itself.
const (
	firstBackoff   = 50 * time.Millisecond
	longestBackoff = time.Minute
)

// newWatch selects the changes after which the gates of a cluster must be checked, or its verdict reported.
func (r *Reconciler) newWatch() sparerequirements.Watch {
	return sparerequirements.Watch{Cached: r.Client, Concerns: concernsGates, Changed: func(before, after *hivev1.ClusterDeployment) bool {
		return hasVerdict(before) && !hasVerdict(after) || bootstrap.IsFinished(before) != bootstrap.IsFinished(after) ||
			bootstrap.HasBegun(before) != bootstrap.HasBegun(after)
	}}
}

func hasVerdict(cd *hivev1.ClusterDeployment) bool {
	return cd.Status.Gates != nil && cd.Status.Gates.Version != ""
}

// SetupWithManager starts the controllers with mgr.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	workers := r.Workers
	if workers == 0 {
		workers = 10
	}
	b := ctrl.NewControllerManagedBy(mgr).Named("clustergate")
	err := r.newWatch().AddTo(b).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstBackoff, longestBackoff),
		}).
		Complete(r.Metrics.WrapReconciler("clustergate", r))
	if err != nil {
		return fmt.Errorf("setting up the controller of gates: %w", err)
	}
	return (&BootstrapSpecReconciler{Client: r.Client, Clock: r.Clock, Events: r.Events, Metrics: r.Metrics}).SetupWithManager(mgr)
}
