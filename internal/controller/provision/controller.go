// Package provision installs the clusters of ClusterDeployments, and destroys them.
//
// A pass observes one cluster (observe.go), has internal/provision decide what to do, does it
// (act.go), stores the status (report.go) and completes what is done. If a decision depends on an
// executor's answer, it is repeated with the answer in the same pass, so that a cluster that
// installs at once needs only one pass.
//
// # Crashes and stale caches
//
// A crash may follow any step, and ClusterDeployments and ClusterProvisions are read from a cache
// that may lag behind. The following rules prevent a second cluster and leaks:
//
//   - The name of an attempt's ClusterProvision is derived from the cluster's
//     UID and the attempt's number. If it is recorded twice, the existing one is read live.
//   - Every patch carries the resource version that was read: a step decided on
//     a stale object is refused before its executor is asked.
//   - The executor is asked to install only what the cluster already names in
//     spec.clusterMetadata: the cluster alone suffices to destroy it.
//   - An attempt is destroyed only by a pass that has seen it failed, so no
//     later pass, however stale, asks to install it again.
//   - An infraID in clusterMetadata that no cached ClusterProvision explains is
//     looked up live before it is treated as a failed attempt's leftover.
package provision

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/install"
	"hotspare.io/hotspare/internal/metrics"
	"hotspare.io/hotspare/internal/mutationcache"
)

// defaultConcurrency is how many clusters are reconciled at a time. Executors return at once, so
// it limits API calls, not installs.
const defaultConcurrency = 8

// Reconciler installs and destroys clusters.
type Reconciler struct {
	// Client reads from a cache and writes.
	Client client.Client
	// Live reads from the API server: Secrets, so that no process keeps all of a hub's Secrets in
	// memory, and objects for which a stale cache could cost a cluster.
	Live client.Reader
	// Executors install on platforms; Fake installs clusters that are annotated as fake.
	Executors install.Registry
	Fake      install.Executor
	Clock     clock.PassiveClock
	Events    events.EventRecorder
	// Metrics counts installs; nil disables it.
	Metrics *metrics.Metrics
	// GlobalPullSecret is a pull secret whose registries all clusters get in addition to those of
	// their own pull secret, which take precedence. If it has no name, there is none.
	GlobalPullSecret types.NamespacedName
	// CertificateAuthorities are the Secrets with CA certificates that executors read for all
	// clusters.
	CertificateAuthorities []types.NamespacedName
	// StoresBundles is set if controller diagnostics runs, and stores bundles of diagnostics.
	StoresBundles bool
	// Wake triggers passes over clusters whose executor has news; may be nil.
	Wake <-chan event.GenericEvent
	// Concurrency is how many clusters are reconciled at a time; 0 means 8.
	Concurrency int

	// clusters are the clusters that this process wrote. Without them, the pass after a write would often repeat it, on a
	// cache that is behind.
	clusters mutationcache.Writes[*hivev1.ClusterDeployment]
}

// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterdeployments,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterdeployments/status,verbs=patch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterdeployments/finalizers,verbs=update
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterclaims,verbs=get;list;watch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterprovisions,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterprovisions/status,verbs=patch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterdeprovisions,verbs=get;list;watch;create
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterdeprovisions/status,verbs=patch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterimagesets,verbs=get;list;watch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterdeploymentcustomizations,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager registers the controller. It watches only the metadata of Secrets.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	concurrency := r.Concurrency
	if concurrency == 0 {
		concurrency = defaultConcurrency
	}
	b := ctrl.NewControllerManagedBy(mgr).
		Named("provision").
		For(&hivev1.ClusterDeployment{}, builder.WithPredicates(selectInstallChanges())).
		Owns(&hivev1.ClusterProvision{}).
		Owns(&hivev1.ClusterDeprovision{}).
		Watches(&hivev1.ClusterImageSet{}, handler.EnqueueRequestsFromMapFunc(r.awaitingImageSet)).
		Watches(&hivev1.ClusterDeploymentCustomization{}, handler.EnqueueRequestsFromMapFunc(r.awaitingCustomization)).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.awaitingSecret), builder.OnlyMetadata).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency})
	if r.Wake != nil {
		b = b.WatchesRawSource(source.Channel(r.Wake, &handler.EnqueueRequestForObject{}))
	}
	return b.Complete(r.Metrics.WrapReconciler("provision", r))
}

// Reconcile does one pass over one cluster.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	p, err := r.observeCluster(ctx, req.NamespacedName)
	if err != nil || p == nil {
		return fault.Requeue(0, err)
	}
	if why := p.cluster.Unreadable; why != "" {
		r.Events.Eventf(p.cluster, nil, corev1.EventTypeWarning, "Unreadable", "Wait", "%s: correct it; until then the cluster is left alone", why)
		return fault.Requeue(0, nil)
	}
	if err := p.encodeMetadata(ctx); err != nil {
		return fault.Requeue(0, err)
	}
	plan, err := p.decideAndApply(ctx)
	if err == nil {
		err = p.patchClusterStatus(ctx, plan)
	}
	if err == nil {
		err = p.applySteps(ctx, plan.Last)
	}
	if err == nil {
		err = p.patchAttemptStatuses(ctx, plan)
	}
	return fault.Requeue(plan.Next, err)
}
