// Package clusterpool keeps ClusterPools: it gives running clusters to claims,
// sets the power of unclaimed ones, and makes and replaces clusters.
//
// A pass is observe, pool.Decide, act. What is observed comes from caches, so it
// may be behind; every write carries the version it was decided on, and names of
// new clusters are recorded in the pool's status before anything is made under
// them. A pass that was cut off anywhere is completed by the next.
package clusterpool

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/fresh"
	"hotspare.io/hotspare/internal/metrics"
	"hotspare.io/hotspare/internal/pool"
)

// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterpools,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterpools/status,verbs=patch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterclaims,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterclaims/status,verbs=patch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterdeployments,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterimagesets;clusterdeploymentcustomizations,verbs=get;list;watch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterdeploymentcustomizations;clusterdeploymentcustomizations/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=create
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;create
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Room tells how many more clusters like p's fit on their platform, and in words
// why not more. A nil number is no limit.
type Room func(p hivev1.Platform) (more *int, why string)

// Reconciler keeps one pool at a time.
type Reconciler struct {
	// Client reads from caches that Index has been called on.
	Client client.Client
	// Live reads from the API server.
	Live   client.Reader
	Clock  clock.PassiveClock
	Events events.EventRecorder
	// Installers are the platforms that clusters can be made on, sorted; empty when nobody knows.
	Installers []string
	// Room has an entry for each platform that knows its limits, by its key in spec.platform.
	Room map[string]Room
	// Suffix makes the random part of a cluster's name.
	Suffix func() string
	// Metrics count the steps; nil counts nothing.
	Metrics *metrics.Metrics
	// Workers is how many pools are kept at a time. 0: 4.
	Workers int

	// shared reads what Client would read of a pool, without copies; nil until there is a manager.
	shared *sharedIndexes

	clusters fresh.Writes[*hivev1.ClusterDeployment]
	claims   fresh.Writes[*hivev1.ClusterClaim]
	pools    fresh.Writes[*hivev1.ClusterPool]
	// customizations are the leases that were taken.
	customizations fresh.Writes[*hivev1.ClusterDeploymentCustomization]
	poolCaches     poolCaches
}

// Reconcile does one pass over the pool.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s, err := r.observePool(ctx, req.NamespacedName)
	if apierrors.IsNotFound(err) {
		r.Metrics.DeletePoolSeries(req.NamespacedName)
		r.poolCaches.removePool(req.NamespacedName)
	}
	if err != nil || s == nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if s.pool.Unreadable != "" {
		return fault.Requeue(0, r.reportUnreadable(ctx, s))
	}
	p := pool.Decide(s.snapshot)
	s.cache.waiting.Store(p.Report.Waiting > 0)
	next, err := r.applyPlan(ctx, s, p)
	return fault.Requeue(next, err)
}

// Names of the indexes that the passes read by.
const (
	byPool  = "pool"
	byClaim = "spec.clusterPoolName"
)

// Index adds the indexes that this controller needs to a cache.
func Index(ctx context.Context, ix client.FieldIndexer) error {
	if err := ix.IndexField(ctx, &hivev1.ClusterDeployment{}, byPool, func(o client.Object) []string {
		return poolIndexKeys(o.(*hivev1.ClusterDeployment))
	}); err != nil {
		return err
	}
	return ix.IndexField(ctx, &hivev1.ClusterClaim{}, byClaim, func(o client.Object) []string {
		return []string{o.(*hivev1.ClusterClaim).Spec.ClusterPoolName}
	})
}

// SetupWithManager starts the controller with mgr.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	if err := Index(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	var err error
	if r.shared, err = newSharedIndexes(ctx, mgr.GetCache()); err != nil {
		return err
	}
	workers := r.Workers
	if workers == 0 {
		workers = 4
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("clusterpool").
		For(&hivev1.ClusterPool{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, finalizersChanged()))).
		Watches(&hivev1.ClusterDeployment{}, enqueuePool(poolOfCluster, r.canBeDeferred), builder.WithPredicates(memberChanged())).
		Watches(&hivev1.ClusterClaim{}, enqueuePool(poolOfClaim, isExistingClaim), builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, finalizersChanged()))).
		Watches(&hivev1.ClusterDeploymentCustomization{}, handler.EnqueueRequestsFromMapFunc(r.poolsOfCustomization), builder.WithPredicates(customizationChanged())).
		Watches(&hivev1.ClusterImageSet{}, handler.EnqueueRequestsFromMapFunc(r.poolsOfImageSet)).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r.Metrics.WrapReconciler("clusterpool", r))
}

// recordEvent tells users of a step that was taken. Events about one object are
// counted as one when their reasons are the same and so is the cluster: with the
// cluster left out, only the first would be told.
func (r *Reconciler) recordEvent(about client.Object, cluster *hivev1.ClusterDeployment, reason, action, note string, args ...any) {
	r.Events.Eventf(about, cluster, corev1.EventTypeNormal, reason, action, note, args...)
}
