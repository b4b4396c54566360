// Package clusterclaim reconciles ClusterClaims: it writes their conditions, deletes them when
// their lifetime has elapsed, and keeps the finalizer of a deleted claim until its cluster is
// deleted.
//
// The pool controller (package clusterpool) binds clusters to claims.
package clusterclaim

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/explain/clusterstate"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/kstatus"
	"hotspare.io/hotspare/internal/metrics"
	"hotspare.io/hotspare/internal/patch"
	"hotspare.io/hotspare/internal/rbac"
)

// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterclaims,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterclaims/status,verbs=patch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterpools,verbs=get;list;watch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterdeployments,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// A Reconciler reconciles ClusterClaims.
type Reconciler struct {
	// Client reads from caches that Index has been called on.
	Client client.Client
	// Live reads from the API server: the finalizer of a claim is removed only if its cluster is
	// certainly deleted, and PoolNotFound is set only if the pool certainly does not exist.
	Live   client.Reader
	Clock  clock.PassiveClock
	Events events.EventRecorder
	// Metrics measures how long claims wait; nil measures nothing.
	Metrics *metrics.Metrics
	// Workers is the number of claims that are reconciled concurrently; 0 means 8.
	Workers int
}

// byClaim indexes clusters by the claim that they are bound to, as namespace/name.
const byClaim = "claim"

// Index adds the index that this controller needs to a cache.
func Index(ctx context.Context, ix client.FieldIndexer) error {
	return ix.IndexField(ctx, &hivev1.ClusterDeployment{}, byClaim, func(o client.Object) []string {
		if ref := o.(*hivev1.ClusterDeployment).Spec.ClusterPoolRef; ref != nil && ref.ClaimName != "" {
			return []string{ref.Namespace + "/" + ref.ClaimName}
		}
		return nil
	})
}

// Reconcile runs one pass over the claim.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var claim hivev1.ClusterClaim
	if err := r.Client.Get(ctx, req.NamespacedName, &claim); err != nil {
		if apierrors.IsNotFound(err) {
			err = r.revokeOrphanedAccess(ctx, req.NamespacedName)
		}
		return fault.Requeue(0, err)
	}
	f, cd, err := r.observeClaim(ctx, &claim)
	if err != nil {
		return ctrl.Result{}, err
	}
	v := decide(claim.Name, f, r.Clock.Now())
	admitted := r.reconcileAccess(ctx, &claim, cd, &v)
	if admitted != nil && fault.KindOf(admitted) == fault.Conflict {
		return fault.Requeue(0, admitted)
	}
	return fault.Requeue(v.next, errors.Join(admitted, r.applyPlan(ctx, &claim, cd, v)))
}

func (r *Reconciler) observeClaim(ctx context.Context, claim *hivev1.ClusterClaim) (snapshot, *hivev1.ClusterDeployment, error) {
	f := snapshot{
		created:       claim.CreationTimestamp.Time,
		deleting:      claim.DeletionTimestamp != nil,
		cluster:       claim.Spec.Namespace,
		lifetime:      claim.Spec.Lifetime,
		hasConditions: len(claim.Status.Conditions) > 0,

		unreadable: claim.Unreadable,
	}
	if at := claim.DeletionTimestamp; at != nil {
		f.deletedAt = at.Time
	}
	pool, err := r.getPool(ctx, claim)
	if client.IgnoreNotFound(err) != nil {
		return f, nil, fmt.Errorf("reading pool %s: %w", claim.Spec.ClusterPoolName, err)
	}
	f.poolExists, f.poolDeleting, f.poolHasReady = err == nil, pool.DeletionTimestamp != nil, pool.Status.Ready > 0
	if limits := pool.Spec.ClaimLifetime; limits != nil {
		f.fallback, f.maximum = limits.Default, limits.Maximum
	}
	if f.assignmentRefused, err = r.isAssignmentRefused(ctx, claim); err != nil {
		return f, nil, err
	}
	cd, err := r.findCluster(ctx, claim)
	if cd != nil {
		f.assigned = readCluster(cd)
		if f.unreadable == "" && f.assigned.unreadable {
			f.unreadable = "ClusterDeployment " + cd.Name + ": " + cd.Unreadable
		}
		if f.assigned.claim == claim.Name && !rbac.HasCluster(claim, cd) {
			f.assigned.claim, f.assigned.pooled = "", false // the cluster is bound to a claim of the same name in another namespace
		}
	}
	return f, cd, err
}

// getPool reads the claim's pool. It confirms a NotFound from the cache with the API server: the
// claim may be observed before a pool that was created just before it.
func (r *Reconciler) getPool(ctx context.Context, claim *hivev1.ClusterClaim) (hivev1.ClusterPool, error) {
	var pool hivev1.ClusterPool
	key := types.NamespacedName{Namespace: claim.Namespace, Name: claim.Spec.ClusterPoolName}
	err := r.Client.Get(ctx, key, &pool)
	if apierrors.IsNotFound(err) {
		err = r.Live.Get(ctx, key, &pool)
	}
	return pool, err
}

// findCluster returns the claim's cluster: the one in its spec.namespace or, for a deleted claim
// without one, the cluster that names this claim; nil if there is none.
func (r *Reconciler) findCluster(ctx context.Context, claim *hivev1.ClusterClaim) (*hivev1.ClusterDeployment, error) {
	if name := claim.Spec.Namespace; name != "" {
		var cd hivev1.ClusterDeployment
		err := r.Client.Get(ctx, types.NamespacedName{Namespace: name, Name: name}, &cd)
		if err != nil {
			return nil, client.IgnoreNotFound(err)
		}
		return &cd, nil
	}
	if claim.DeletionTimestamp == nil {
		return nil, nil
	}
	return r.findReservedCluster(ctx, claim)
}

// isAssignmentRefused reports whether the hub refused to let hotspare assign the cluster that is
// reserved for a waiting claim.
func (r *Reconciler) isAssignmentRefused(ctx context.Context, claim *hivev1.ClusterClaim) (bool, error) {
	pending := condition.Find(claim.Status.Conditions, hivev1.ClaimPending)
	if claim.Spec.Namespace != "" || pending == nil || pending.Reason != hivev1.ReasonAssignmentRefused {
		return false, nil
	}
	cd, err := r.findReservedCluster(ctx, claim)
	return cd != nil, err
}

// findReservedCluster returns the cluster that names the claim; nil if there is none.
func (r *Reconciler) findReservedCluster(ctx context.Context, claim *hivev1.ClusterClaim) (*hivev1.ClusterDeployment, error) {
	var given hivev1.ClusterDeploymentList
	if err := r.Client.List(ctx, &given, client.MatchingFields{byClaim: claim.Namespace + "/" + claim.Name}); err != nil {
		return nil, fmt.Errorf("looking for the cluster of claim %s: %w", claim.Name, err)
	}
	if len(given.Items) == 0 {
		return nil, nil
	}
	return &given.Items[0], nil
}

func readCluster(cd *hivev1.ClusterDeployment) *clusterSnapshot {
	f := &clusterSnapshot{
		deleting: cd.DeletionTimestamp != nil,
		running:  cd.Status.PowerState == hivev1.StatusRunning && (cd.Spec.PowerState != hivev1.PowerHibernating || clusterstate.IsHibernationUnsupported(cd)),
		power:    cd.Status.PowerState,

		unreadable: cd.Unreadable != "",
	}
	if ref := cd.Spec.ClusterPoolRef; ref != nil {
		f.pooled, f.claim = true, ref.ClaimName
		if ref.ClaimedTimestamp != nil {
			f.claimed = ref.ClaimedTimestamp.Time
		}
	}
	return f
}

func (r *Reconciler) applyPlan(ctx context.Context, claim *hivev1.ClusterClaim, cd *hivev1.ClusterDeployment, v plan) error {
	before := claim.DeepCopy()
	switch {
	case v.removeFinalizer:
		return r.releaseClaim(ctx, claim)
	case v.expired:
		return r.deleteExpiredClaim(ctx, claim)
	case v.deleteCluster:
		if err := r.Client.Delete(ctx, cd, client.Preconditions{UID: &cd.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting cluster %s: %w", cd.Name, err)
		}
	}
	r.setClaimStatus(claim, v)
	_, err := patch.Status(ctx, r.Client, before, claim)
	if err == nil {
		r.Metrics.RecordClaimWait(before, claim, cd, r.Clock.Now())
	}
	return err
}

// releaseClaim removes the finalizer of a deleted claim, if the API server confirms that its
// cluster is deleted or not its own: the cache of clusters may be behind that of claims. If the
// finalizer were removed too early, a new claim of the same name could get a cluster that has been
// used.
func (r *Reconciler) releaseClaim(ctx context.Context, claim *hivev1.ClusterClaim) error {
	before := claim.DeepCopy()
	if !controllerutil.RemoveFinalizer(claim, hivev1.FinalizerClaim) {
		return nil
	}
	if err := r.confirmClusterGone(ctx, claim); err != nil {
		return err
	}
	_, err := patch.Object(ctx, r.Client, before, claim)
	return err
}

// confirmClusterGone returns a Conflict while the claim's cluster still exists and is its own.
func (r *Reconciler) confirmClusterGone(ctx context.Context, claim *hivev1.ClusterClaim) error {
	name := claim.Spec.Namespace
	if name == "" { // Hive adds its finalizer to waiting claims too
		return nil
	}
	var cd hivev1.ClusterDeployment
	err := r.Live.Get(ctx, types.NamespacedName{Namespace: name, Name: name}, &cd)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("looking for cluster %s of claim %s: %w", name, claim.Name, err)
	}
	if ref := cd.Spec.ClusterPoolRef; err == nil && ref != nil && ref.ClaimName == claim.Name {
		return fault.New(fault.Conflict, fmt.Errorf("cluster %s of claim %s is still there", name, claim.Name))
	}
	return nil
}

func (r *Reconciler) deleteExpiredClaim(ctx context.Context, claim *hivev1.ClusterClaim) error {
	err := r.Client.Delete(ctx, claim, client.Preconditions{UID: &claim.UID, ResourceVersion: &claim.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting claim %s, whose lifetime is over: %w", claim.Name, err)
	}
	if err == nil {
		r.Events.Eventf(claim, nil, corev1.EventTypeNormal, "Expired", "Delete", "its lifetime is over")
	}
	return nil
}

func (r *Reconciler) setClaimStatus(claim *hivev1.ClusterClaim, v plan) {
	now := r.Clock.Now()
	condition.Apply(&claim.Status.Conditions, hivev1.ClaimPending, v.pending, now)
	condition.Apply(&claim.Status.Conditions, hivev1.ClaimClusterRunning, v.running, now)
	if v.pending.Reason != hivev1.ReasonNoClusters && v.pending.Status != "" {
		claim.Status.Position, claim.Status.EstimatedReadyTime = nil, nil
	}
	if v.lifetime != nil || v.pending.Status == corev1.ConditionFalse {
		claim.Status.Lifetime = v.lifetime
	}
	if v.pending.Status != "" || v.running.Status != "" {
		kstatus.ReportClusterClaim(claim, v.stalled, r.Clock.Now())
	}
}

// SetupWithManager starts the controller with mgr.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	if err := Index(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	workers := r.Workers
	if workers == 0 {
		workers = 8
	}
	return r.watchAccessObjects(ctrl.NewControllerManagedBy(mgr).
		Named("clusterclaim").
		For(&hivev1.ClusterClaim{}).
		Watches(&hivev1.ClusterDeployment{}, handler.EnqueueRequestsFromMapFunc(claimOfCluster), builder.WithPredicates(predicate.Or(clusterChanged(), clusterSecretsChanged()))).
		Watches(&hivev1.ClusterPool{}, handler.EnqueueRequestsFromMapFunc(r.claimsOfPool), builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, poolDeletionChanged()))).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers})).
		Complete(r.Metrics.WrapReconciler("clusterclaim", r))
}

func claimOfCluster(_ context.Context, o client.Object) []reconcile.Request {
	ref := o.(*hivev1.ClusterDeployment).Spec.ClusterPoolRef
	if ref == nil || ref.ClaimName == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: ref.Namespace, Name: ref.ClaimName}}}
}

// claimsOfPool enqueues the claims of a pool that is created or deleted, or whose limits change.
func (r *Reconciler) claimsOfPool(ctx context.Context, o client.Object) []reconcile.Request {
	var list hivev1.ClusterClaimList
	if err := r.Client.List(ctx, &list, client.InNamespace(o.GetNamespace())); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing claims of a pool")
		return nil
	}
	var out []reconcile.Request
	for _, c := range list.Items {
		if c.Spec.ClusterPoolName == o.GetName() {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&c)})
		}
	}
	return out
}

// clusterChanged selects the updates of a cluster that affect its claim.
func clusterChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return *readCluster(e.ObjectOld.(*hivev1.ClusterDeployment)) != *readCluster(e.ObjectNew.(*hivev1.ClusterDeployment))
	}}
}

func poolDeletionChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return !e.ObjectOld.GetDeletionTimestamp().Equal(e.ObjectNew.GetDeletionTimestamp())
	}}
}
