// Package clusterinstall follows the installs of clusters that another installer creates: those
// whose spec.clusterInstallRef names an object of that installer, such as an AgentClusterInstall,
// that follows Hive's ClusterInstall contract.
//
// A pass reads that object from the API server, calls provision.DecideClusterInstall, and writes
// the result in this order: the names of the created resources, the conditions, and then that the
// cluster is installed. A reader that sees the last also finds the others. The other installer
// destroys the cluster.
package clusterinstall

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/metrics"
	"hotspare.io/hotspare/internal/patch"
	"hotspare.io/hotspare/internal/provision"
)

// recheckInterval is the interval between passes over an install without events: a kind that does
// not exist yet cannot be watched.
const recheckInterval = time.Minute

// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterdeployments,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterdeployments/status,verbs=patch
// +kubebuilder:rbac:groups=extensions.hive.openshift.io,resources=*,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// A Reconciler follows the installs of clusters.
type Reconciler struct {
	// Client reads from a cache and writes; Live reads from the API server.
	Client client.Client
	Live   client.Reader
	Clock  clock.PassiveClock
	Events events.EventRecorder
	// Metrics measures the passes; nil measures nothing.
	Metrics *metrics.Metrics

	// watch starts watching a kind; if it is nil, no kind is watched.
	watch   func(schema.GroupVersionKind) error
	mu      sync.Mutex
	watched map[schema.GroupVersionKind]bool
}

// SetupWithManager registers the controller. The controller watches the metadata of a kind once a
// cluster names an existing object of it.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	c, err := ctrl.NewControllerManagedBy(mgr).
		Named("clusterinstall").
		For(&hivev1.ClusterDeployment{}, builder.WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool {
			return o.(*hivev1.ClusterDeployment).Spec.ClusterInstallRef != nil
		}))).
		Build(r.Metrics.WrapReconciler("clusterinstall", r))
	if err != nil {
		return err
	}
	r.watch = r.newKindWatcher(c, mgr.GetCache())
	return nil
}

// newKindWatcher returns a function that starts watching a kind.
func (r *Reconciler) newKindWatcher(c controller.Controller, in cache.Cache) func(schema.GroupVersionKind) error {
	return func(kind schema.GroupVersionKind) error {
		obj := &metav1.PartialObjectMetadata{}
		obj.SetGroupVersionKind(kind)
		return c.Watch(source.Kind(in, client.Object(obj), handler.EnqueueRequestsFromMapFunc(r.clustersOfKind(kind))))
	}
}

// clustersOfKind returns a function that maps an object of that kind to the clusters that name it.
func (r *Reconciler) clustersOfKind(kind schema.GroupVersionKind) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		var list hivev1.ClusterDeploymentList
		if err := r.Client.List(ctx, &list, client.InNamespace(o.GetNamespace())); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "listing clusters of an install")
			return nil
		}
		var out []reconcile.Request
		for i := range list.Items {
			cd := &list.Items[i]
			if ref := cd.Spec.ClusterInstallRef; ref != nil && ref.Name == o.GetName() && installKindOf(ref) == kind {
				out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(cd)})
			}
		}
		return out
	}
}

// Reconcile runs one pass over one cluster.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var cd hivev1.ClusterDeployment
	if err := r.Client.Get(ctx, req.NamespacedName, &cd); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !needsObservation(&cd) {
		return ctrl.Result{}, nil
	}
	f, made, err := r.observeInstall(ctx, &cd)
	if err != nil {
		return fault.Requeue(0, fmt.Errorf("mirroring the install of %s: %w", req.NamespacedName, err))
	}
	return fault.Requeue(recheckInterval, r.applyPlan(ctx, &cd, provision.DecideClusterInstall(f), made))
}

// applyPlan writes the plan.
func (r *Reconciler) applyPlan(ctx context.Context, cd *hivev1.ClusterDeployment, plan provision.ClusterInstallPlan, made *hivev1.ClusterMetadata) error {
	if plan.Adopt {
		before := cd.DeepCopy()
		cd.Spec.ClusterMetadata = made
		if _, err := patch.Object(ctx, r.Client, before, cd); err != nil {
			return fmt.Errorf("recording the cluster's metadata: %w", err)
		}
	}
	if err := r.patchStatus(ctx, cd, plan); err != nil {
		return fmt.Errorf("patching the status: %w", err)
	}
	if !plan.Finish || cd.Spec.Installed {
		return nil
	}
	before := cd.DeepCopy()
	cd.Spec.Installed = true
	wrote, err := patch.Object(ctx, r.Client, before, cd)
	if err != nil {
		return fmt.Errorf("marking the cluster installed: %w", err)
	}
	if wrote {
		ref := cd.Spec.ClusterInstallRef
		r.Events.Eventf(cd, nil, corev1.EventTypeNormal, "Installed", "Install", "The cluster is installed: %s %s has completed", ref.Kind, ref.Name)
		r.Metrics.RecordInstall(cd)
	}
	return nil
}
