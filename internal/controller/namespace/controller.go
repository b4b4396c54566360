// Package namespace deletes namespaces that were created for clusters of pools, when the cluster
// was deleted or never created.
package namespace

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/metrics"
)

// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterpools;clusterdeployments,verbs=get;list;watch

// Reconciler reconciles namespaces.
type Reconciler struct {
	// Client reads from caches.
	Client client.Client
	// Live reads from the API server: a namespace is deleted only when it is certain that nothing
	// needs it.
	Live client.Reader
	// Metrics measures the passes; nil disables it.
	Metrics *metrics.Metrics
}

// Reconcile deletes the namespace if it was created for a cluster that does not exist and is not
// about to be created.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var ns corev1.Namespace
	if err := r.Client.Get(ctx, types.NamespacedName{Name: req.Name}, &ns); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if ns.DeletionTimestamp != nil || ns.Labels[hivev1.LabelPoolName] == "" {
		return ctrl.Result{}, nil
	}
	for _, reader := range []client.Reader{r.Client, r.Live} {
		switch use, err := observeUsage(ctx, reader, &ns); {
		case err != nil:
			return ctrl.Result{}, err
		case use == inUse:
			return ctrl.Result{}, nil
		case use == reserved:
			return ctrl.Result{RequeueAfter: recheckInterval}, nil
		}
	}
	err := r.Client.Delete(ctx, &ns, client.Preconditions{UID: &ns.UID})
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("deleting namespace %s of a deleted cluster: %w", ns.Name, err)
	}
	return ctrl.Result{}, nil
}

// usage says what a namespace is used for.
type usage int

const (
	unused   usage = iota
	reserved       // its pool has recorded that it will create a cluster in it
	inUse          // its cluster exists
)

// recheckInterval is when a reserved namespace is checked again: no event reports that a pool was
// deleted without having created the cluster.
const recheckInterval = time.Minute

func observeUsage(ctx context.Context, reader client.Reader, ns *corev1.Namespace) (usage, error) {
	var pool hivev1.ClusterPool
	err := reader.Get(ctx, types.NamespacedName{Namespace: ns.Labels[hivev1.LabelPoolNamespace], Name: ns.Labels[hivev1.LabelPoolName]}, &pool)
	if client.IgnoreNotFound(err) != nil {
		return unused, fmt.Errorf("reading the pool of namespace %s: %w", ns.Name, err)
	}
	recorded := err == nil && slices.Contains(pool.Status.Pending, ns.Name)
	// The cluster is read after the pool: a name leaves the pool's record only when the cluster
	// exists.
	var cd hivev1.ClusterDeployment
	err = reader.Get(ctx, types.NamespacedName{Namespace: ns.Name, Name: ns.Name}, &cd)
	switch {
	case err == nil:
		return inUse, nil
	case !apierrors.IsNotFound(err):
		return unused, fmt.Errorf("reading cluster %s: %w", ns.Name, err)
	case recorded:
		return reserved, nil
	}
	return unused, nil
}

// SetupWithManager starts the controller with mgr.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("namespace").
		For(&corev1.Namespace{}, builder.WithPredicates(predicate.NewPredicateFuncs(isPoolNamespace), createdOnly())).
		Watches(&hivev1.ClusterDeployment{}, handler.Funcs{DeleteFunc: r.enqueueLater}).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
		Complete(r.Metrics.WrapReconciler("namespace", r))
}

func isPoolNamespace(o client.Object) bool { return o.GetLabels()[hivev1.LabelPoolName] != "" }

// deletionDelay is how long a namespace outlives its cluster. Its deletion takes a hub more than a hundred requests, which would
// slow down the release of other clusters at the same time.
const deletionDelay = 5 * time.Second

// enqueueLater enqueues the namespace of a deleted cluster; at once if the pool is deleted, too: hotspare may be uninstalled
// as soon as a pool is gone, and nothing would delete the namespace then.
func (r *Reconciler) enqueueLater(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	cd := e.Object.(*hivev1.ClusterDeployment)
	delay := time.Duration(0)
	if ref := cd.Spec.ClusterPoolRef; ref != nil {
		var pool hivev1.ClusterPool
		err := r.Client.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.PoolName}, &pool)
		if err == nil && pool.DeletionTimestamp == nil {
			delay = deletionDelay
		}
	}
	q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: cd.Namespace}}, delay)
}

func createdOnly() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(event.UpdateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}
