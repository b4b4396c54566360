// Package clusterpool reconciles ClusterPools: it binds running clusters to claims, sets the power
// state of unclaimed clusters, and creates and replaces clusters.
//
// A pass is observe, pool.Decide, act. It observes caches, which may be behind; so every write
// carries the resource version that it was decided on, and a pass records the names of new clusters
// in the pool's status before it creates anything under them. The next pass completes a pass that
// was interrupted anywhere.
package clusterpool

import (
	"context"
	"errors"
	"sync"
	"time"

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
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/claimpolicy"
	"hotspare.io/hotspare/internal/claimset"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/metrics"
	"hotspare.io/hotspare/internal/mutationcache"
	"hotspare.io/hotspare/internal/pool"
)

// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterpools,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterpools/status,verbs=patch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterclaims,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterclaims/status,verbs=patch
// +kubebuilder:rbac:groups=hotspare.io,resources=claimpolicies;claimsets,verbs=get;list;watch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterdeployments,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterdeployments/status,verbs=patch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterimagesets;clusterdeploymentcustomizations,verbs=get;list;watch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterdeploymentcustomizations;clusterdeploymentcustomizations/status,verbs=patch
// +kubebuilder:rbac:groups=hotspare.io,resources=recipes,verbs=use
// +kubebuilder:rbac:groups=hotspare.io,resources=poolpolicies;clusterbootstraps,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=create
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;create
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Room returns the number of clusters like p's that still fit on their platform, and explains the
// limit as text. A nil number means no limit.
type Room func(p hivev1.Platform) (more *int, why string)

// Obstacle returns what prevents the creation of clusters like p's on their platform, whatever room
// there is, and what to do about it; "" if nothing does.
type Obstacle func(p hivev1.Platform) string

// Recipes says what the clusters of a pool of platform exec are created with.
type Recipes interface {
	// CheckPool returns what the clusters of a pool lack, one text each, and a version that changes when
	// they are created in another way; "" if it is unknown. image is the release image of the pool's image
	// set; empty if there is none. It returns immediately, and may be called in each pass.
	CheckPool(ctx context.Context, p *hivev1.ClusterPool, image string) (missing []string, version string)
}

// A Reconciler reconciles ClusterPools.
type Reconciler struct {
	// Client reads from caches that AddIndexes has been called on.
	Client client.Client
	// Live reads from the API server.
	Live   client.Reader
	Clock  clock.PassiveClock
	Events events.EventRecorder
	// Installers are the platforms that clusters can be installed on, sorted; empty if unknown.
	Installers []string
	// Room maps the key of a platform in spec.platform to its limits; platforms without known
	// limits are absent.
	Room map[string]Room
	// Obstacles has the platforms that may lack something; others are absent.
	Obstacles map[string]Obstacle
	// Recipes are the recipes of platform exec; nil if there are none.
	Recipes Recipes
	// Policies returns the ClaimPolicies of a namespace. If there is one, a claim must be admitted before
	// it gets a cluster. nil means that there are none.
	Policies func(ctx context.Context, namespace string) ([]claimpolicy.Policy, error)
	// Sets returns the ClaimSets of a namespace. nil means that there are none.
	Sets func(ctx context.Context, namespace string) (claimset.Sets, error)
	// Suffix returns the random part of a cluster's name.
	Suffix func() string
	// Metrics counts the steps; nil counts nothing.
	Metrics *metrics.Metrics
	// Workers is the number of pools that are reconciled concurrently; 0 means 4.
	Workers int

	// shared reads the same objects of a pool as Client, without copies; nil until there is a
	// manager.
	shared *sharedIndexes

	clusters mutationcache.Writes[*hivev1.ClusterDeployment]
	claims   mutationcache.Writes[*hivev1.ClusterClaim]
	pools    mutationcache.Writes[*hivev1.ClusterPool]
	// customizations are the customizations whose leases this process acquired.
	customizations mutationcache.Writes[*hivev1.ClusterDeploymentCustomization]
	poolCaches     poolCaches
	// began is when this process made its first pass, as leader.
	began sync.Once
	since time.Time
}

// watchedSince returns when this process made its first pass.
func (r *Reconciler) watchedSince() time.Time {
	r.began.Do(func() { r.since = r.Clock.Now() })
	return r.since
}

// Reconcile runs one pass over the pool.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s, err := r.observePool(ctx, req.NamespacedName)
	if apierrors.IsNotFound(err) {
		r.Metrics.DeletePoolSeries(req.NamespacedName)
		r.poolCaches.remove(req.NamespacedName)
	}
	if err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	p := pool.Decide(s.snapshot)
	s.cache.recordPlan(p, s.snapshot.Now)
	t := newExecution(r, s)
	serveErr := t.applySteps(ctx, p, stagesBeforeStatus)
	p, nameErr := t.nameNewClusters(ctx, p)
	wait, reportErr := t.reportStatus(ctx, p)
	createErr := t.applySteps(ctx, p, stagesAfterStatus)
	s.cache.refusedWrite = findRefusal(createErr)
	return fault.Requeue(fault.SoonerDelay(p.Next, wait), errors.Join(s.secretsErr, serveErr, nameErr, reportErr, createErr))
}

// SetupWithManager starts the controller with mgr.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	if err := AddIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
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
		Watches(&hivev1.ClusterClaim{}, enqueuePool(poolOfClaim, canClaimWait), builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, finalizersChanged(), admissionChanged(), priorityChanged()))).
		Watches(&v1alpha1.ClaimPolicy{}, handler.EnqueueRequestsFromMapFunc(r.poolsOfNamespace), builder.WithPredicates(predicate.Or(
			existenceChanged(), predicate.GenerationChangedPredicate{}))).
		Watches(&v1alpha1.ClaimSet{}, handler.EnqueueRequestsFromMapFunc(r.poolsOfNamespace), builder.WithPredicates(predicate.Or(
			existenceChanged(), predicate.GenerationChangedPredicate{}))).
		Watches(&hivev1.ClusterDeploymentCustomization{}, handler.EnqueueRequestsFromMapFunc(r.poolsOfCustomization), builder.WithPredicates(customizationChanged())).
		Watches(&hivev1.ClusterImageSet{}, handler.EnqueueRequestsFromMapFunc(r.poolsOfImageSet)).
		Watches(&v1alpha1.PoolPolicy{}, handler.EnqueueRequestsFromMapFunc(poolOfPolicy), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.ClusterBootstrap{}, handler.EnqueueRequestsFromMapFunc(r.poolsOfBootstrap)).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r.Metrics.WrapReconciler("clusterpool", r))
}

// recordEvent records an event about a step that was taken. Events about one object are aggregated
// if their reasons and their clusters are the same: without the cluster, only the first would be
// shown.
func (r *Reconciler) recordEvent(about client.Object, cluster *hivev1.ClusterDeployment, reason, action, note string, args ...any) {
	r.Events.Eventf(about, cluster, corev1.EventTypeNormal, reason, action, note, args...)
}
