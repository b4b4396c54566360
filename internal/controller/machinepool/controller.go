// Package machinepool gives clusters the machines that their MachinePools ask for.
//
// A pass over one MachinePool is observe, decide (internal/machinepool), act, report. Clusters
// are not watched: they are polled, and more often while a change is in progress. Nothing is done
// in a cluster that hibernates or does not answer; the next pass does what a pass could not do.
package machinepool

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/install"
	"hotspare.io/hotspare/internal/machinepool"
	"hotspare.io/hotspare/internal/metrics"
	"hotspare.io/hotspare/internal/patch"
)

// +kubebuilder:rbac:groups=hive.openshift.io,resources=machinepools,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=machinepools/status,verbs=patch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterdeployments,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Spokes connects to clusters.
type Spokes interface {
	// Client returns a client of the cluster whose admin kubeconfig is in the Secret, or trouble,
	// which says why there is no client. An error is the hub's own.
	Client(ctx context.Context, secret types.NamespacedName) (spoke client.Client, trouble string, err error)
}

// Reconciler reconciles MachinePools.
type Reconciler struct {
	Client client.Client
	Spokes Spokes
	// Workers has the platforms on which hotspare creates workers, by the key in spec.platform.
	// On the others, the cluster creates them from MachineSets.
	Workers map[string]install.Workers
	Clock   clock.PassiveClock
	Events  events.EventRecorder
	// Metrics measures the passes; nil disables it.
	Metrics *metrics.Metrics
}

// Requeue delays.
const (
	// workersJoiningDelay applies while workers join or leave, which takes seconds;
	// machinesComingDelay while an OpenShift cluster creates machines, which takes minutes.
	workersJoiningDelay = time.Second
	machinesComingDelay = 15 * time.Second
	// autoscaledDelay applies while hotspare autoscales a pool, steadyDelay while all is as it
	// should be, and steadySetsDelay the same where the cluster creates the machines.
	autoscaledDelay = 10 * time.Second
	steadyDelay     = 30 * time.Second
	steadySetsDelay = 2 * time.Minute
	// retryDelay applies when the cluster, or this computer, could not do what was asked.
	retryDelay = 30 * time.Second
)

// Reconcile does one pass over the MachinePool.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var mp hivev1.MachinePool
	if err := r.Client.Get(ctx, req.NamespacedName, &mp); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if mp.Unreadable != "" {
		return ctrl.Result{}, nil
	}
	next, err := r.reconcilePool(ctx, &mp)
	return fault.Requeue(next, err)
}

func (r *Reconciler) reconcilePool(ctx context.Context, mp *hivev1.MachinePool) (time.Duration, error) {
	cd, err := r.getCluster(ctx, mp)
	if err != nil {
		return 0, err
	}
	if mp.DeletionTimestamp != nil && canReleaseAtOnce(cd) {
		return 0, r.removeFinalizer(ctx, mp)
	}
	if s := blockedState(cd, mp); s != nil {
		return 0, r.patchStatus(ctx, mp, *s)
	}
	if mp.DeletionTimestamp == nil && controllerutil.AddFinalizer(mp, hivev1.FinalizerMachinePool) {
		before := mp.DeepCopy()
		controllerutil.RemoveFinalizer(before, hivev1.FinalizerMachinePool)
		if _, err := patch.Object(ctx, r.Client, before, mp); err != nil {
			return 0, fmt.Errorf("adding the finalizer to %s: %w", client.ObjectKeyFromObject(mp), err)
		}
	}
	return r.syncCluster(ctx, mp, cd)
}

// getCluster returns the MachinePool's cluster, nil if there is none.
func (r *Reconciler) getCluster(ctx context.Context, mp *hivev1.MachinePool) (*hivev1.ClusterDeployment, error) {
	var cd hivev1.ClusterDeployment
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: mp.Namespace, Name: mp.Spec.ClusterDeploymentRef.Name}, &cd)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // a missing cluster is not an error
	}
	if err != nil {
		return nil, fmt.Errorf("reading the cluster of %s: %w", client.ObjectKeyFromObject(mp), err)
	}
	return &cd, nil
}

// removeFinalizer removes the finalizer from a MachinePool of which nothing is left in the
// cluster.
func (r *Reconciler) removeFinalizer(ctx context.Context, mp *hivev1.MachinePool) error {
	before := mp.DeepCopy()
	if !controllerutil.RemoveFinalizer(mp, hivev1.FinalizerMachinePool) {
		return nil
	}
	if _, err := patch.Object(ctx, r.Client, before, mp); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the finalizer from %s: %w", client.ObjectKeyFromObject(mp), err)
	}
	return nil
}

// syncCluster carries out one pass's steps in the cluster.
func (r *Reconciler) syncCluster(ctx context.Context, mp *hivev1.MachinePool, cd *hivev1.ClusterDeployment) (time.Duration, error) {
	pool := machinepool.NewPool(mp)
	var err error
	if pool.DuplicateOf, err = r.findDuplicatePool(ctx, mp); err != nil {
		return 0, err
	}
	spoke, trouble, err := r.Spokes.Client(ctx, kubeconfigSecret(cd))
	if err != nil {
		return 0, err
	}
	if trouble != "" {
		return retryDelay, r.patchStatus(ctx, mp, unreachableState(trouble))
	}
	t, err := r.observeAndDecide(ctx, cd, mp, pool, spoke)
	if err != nil {
		return retryDelay, r.patchStatus(ctx, mp, observeFailedState(err))
	}
	log := ctrl.LoggerFrom(ctx).V(1)
	for _, s := range t.Steps {
		log.Info("decided", "step", s.String())
	}
	if mp.DeletionTimestamp != nil && len(t.Steps) == 0 && t.Waiting == "" {
		return 0, r.removeFinalizer(ctx, mp)
	}
	if err := r.patchOwnedStatus(ctx, mp, t.Owned); err != nil {
		return 0, err
	}
	err = r.applySteps(ctx, mp, t)
	if kind := fault.KindOf(err); err != nil && (ctx.Err() != nil || kind == fault.Conflict) {
		return 0, err
	}
	return t.requeueDelay(err), r.patchStatus(ctx, mp, stepsOutcome(t.Plan, err))
}

// findDuplicatePool returns the oldest other MachinePool for the same pool of the same cluster,
// if it is older than mp.
func (r *Reconciler) findDuplicatePool(ctx context.Context, mp *hivev1.MachinePool) (string, error) {
	var list hivev1.MachinePoolList
	if err := r.Client.List(ctx, &list, client.InNamespace(mp.Namespace)); err != nil {
		return "", fmt.Errorf("listing MachinePools: %w", err)
	}
	first := mp
	for i := range list.Items {
		o := &list.Items[i]
		if o.Spec.Name == mp.Spec.Name && o.Spec.ClusterDeploymentRef.Name == mp.Spec.ClusterDeploymentRef.Name && isOlderPool(o, first) {
			first = o
		}
	}
	if first.Name == mp.Name {
		return "", nil
	}
	return first.Name, nil
}

func isOlderPool(a, b *hivev1.MachinePool) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Name < b.Name
}

// Backoff after errors of the hub itself; a cluster's errors are reported and retried.
const (
	firstBackoff   = 50 * time.Millisecond
	longestBackoff = time.Minute
	// concurrency is how many MachinePools are reconciled at a time: each pass may wait for a
	// cluster.
	concurrency = 10
)

// SetupWithManager starts the controller with mgr.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("machinepool").
		For(&hivev1.MachinePool{}, builder.WithPredicates(
			predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}),
		)).
		Watches(&hivev1.ClusterDeployment{}, handler.EnqueueRequestsFromMapFunc(r.poolsOfCluster)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: concurrency,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstBackoff, longestBackoff),
		}).
		Complete(r.Metrics.WrapReconciler("machinepool", r))
}

// poolsOfCluster returns requests for the MachinePools of a cluster.
func (r *Reconciler) poolsOfCluster(ctx context.Context, cd client.Object) []reconcile.Request {
	var list hivev1.MachinePoolList
	if err := r.Client.List(ctx, &list, client.InNamespace(cd.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing MachinePools")
		return nil
	}
	list.Items = slices.DeleteFunc(slices.Clone(list.Items), func(mp hivev1.MachinePool) bool {
		return mp.Spec.ClusterDeploymentRef.Name != cd.GetName()
	})
	var out []reconcile.Request
	for i := range list.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return out
}
