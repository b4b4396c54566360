// Package diagnostics collects a bundle about each failure of a cluster, and reports its name.
//
// A pass over one ClusterDeployment is observe, failure.Decide, and, once for each failure, collect, store, report.
// The name of a bundle follows from the cluster's UID and the failure, so that no restart collects a bundle twice.
// Nothing waits for the bundle of a failure: no finalizer and no other controller does. A failure with a deadline is
// due at half of its time, before the pool deletes the cluster; the bundle of an install that has failed for the last
// time is collected while the cluster is already being deleted, and lacks what is gone by then.
//
// For the bundle that a claim requests at its release, controller provision waits with the destruction of the
// cluster: until condition Diagnosed has the name of that bundle, and failure.ReleaseLimit at most.
package diagnostics

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/diagnostics"
	"hotspare.io/hotspare/internal/diagnostics/failure"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/metrics"
	"hotspare.io/hotspare/internal/patch"
	"hotspare.io/hotspare/internal/pool/facts"
)

// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterdeployments;clusterpools;clusterclaims;clusterprovisions,verbs=get;list;watch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterdeployments/status,verbs=patch
// +kubebuilder:rbac:groups=hotspare.io,resources=poolpolicies;clusterbootstraps,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list
// +kubebuilder:rbac:groups="",resources=events,verbs=list
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Store keeps bundles. The messages of its errors are diagnostics.StoreErrors if they have remedies.
type Store interface {
	// Has reports whether a bundle is stored.
	Has(ctx context.Context, name string) (bool, error)
	// Write stores a bundle, whole or not at all.
	Write(ctx context.Context, name string, b *diagnostics.Bundle) error
	// Prune deletes the bundles that exceed the limits of the store.
	Prune(ctx context.Context, now time.Time) error
}

// Reconciler collects diagnostics of ClusterDeployments that have failed.
type Reconciler struct {
	Client client.Client
	// Collect collects a bundle. It returns an error only if ctx ends.
	Collect func(ctx context.Context, cd *hivev1.ClusterDeployment, cause string, at time.Time) (*diagnostics.Bundle, error)
	Store   Store
	Clock   clock.PassiveClock
	Events  events.EventRecorder
	Metrics *metrics.Metrics
}

// Limits of the time that a bundle may take: to be collected and to be stored. At a release, both together take until
// failure.ReleaseLimit; a bundle that is late, because hotspare was not running, has lateLimit.
const (
	collectLimit = 90 * time.Second
	storeLimit   = time.Minute
	lateLimit    = 30 * time.Second
)

// workers is the number of bundles that are collected concurrently.
const workers = 4

// Reconcile does one pass over the cluster.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var cd hivev1.ClusterDeployment
	if err := r.Client.Get(ctx, req.NamespacedName, &cd); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if cd.Unreadable != "" {
		return ctrl.Result{}, nil
	}
	timeout, err := r.readResumeTimeout(ctx, &cd)
	if err != nil {
		return fault.Requeue(0, err)
	}
	claim, err := r.readReleasedClaim(ctx, &cd)
	if err != nil {
		return fault.Requeue(0, err)
	}
	p := failure.Decide(failure.Snapshot{Now: r.Clock.Now(), Cluster: &cd, Claim: claim, ResumeTimeout: timeout})
	if p.Failure == nil {
		return ctrl.Result{RequeueAfter: p.Next}, nil
	}
	if failure.IsSettled(&cd, *p.Failure) {
		return ctrl.Result{}, nil
	}
	return r.diagnose(ctx, &cd, claim, *p.Failure)
}

// diagnose collects, stores and reports the bundle of a failure, unless it was tried in vain and is not due again.
func (r *Reconciler) diagnose(ctx context.Context, cd *hivev1.ClusterDeployment, claim *hivev1.ClusterClaim, f failure.Failure) (ctrl.Result, error) {
	now := r.Clock.Now()
	first := now
	if c := failure.FindReport(cd, f); c != nil {
		first = c.LastTransitionTime.Time
		if wait := failure.NextTry(f, first, c.LastProbeTime.Time).Sub(now); wait > 0 {
			return ctrl.Result{RequeueAfter: wait}, nil
		}
	}
	v, next := r.tryBundle(ctx, cd, f, first)
	if err := ctx.Err(); err != nil { // the process ends: the next one collects the bundle
		return ctrl.Result{}, err
	}
	return fault.Requeue(next, r.reportStatus(ctx, cd, claim, f, v))
}

// readReleasedClaim returns the claim of a cluster that is being deleted; nil if there is none.
func (r *Reconciler) readReleasedClaim(ctx context.Context, cd *hivev1.ClusterDeployment) (*hivev1.ClusterClaim, error) {
	ref := cd.Spec.ClusterPoolRef
	if cd.DeletionTimestamp == nil || ref == nil || ref.ClaimName == "" {
		return nil, nil
	}
	var claim hivev1.ClusterClaim
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.ClaimName}, &claim)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading claim %s: %w", ref.ClaimName, err)
	}
	return &claim, nil
}

// readResumeTimeout returns the resume timeout of the cluster's pool; 0 if there is none.
func (r *Reconciler) readResumeTimeout(ctx context.Context, cd *hivev1.ClusterDeployment) (time.Duration, error) {
	ref := cd.Spec.ClusterPoolRef
	if ref == nil || ref.PoolName == "" || cd.Status.PowerTransition == nil {
		return 0, nil
	}
	var pool hivev1.ClusterPool
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.PoolName}, &pool)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("reading pool %s: %w", ref.PoolName, err)
	}
	if d := facts.ResumeTimeout(&pool); d != nil {
		timeout, _ := d.Parse() // a stored value that cannot be parsed is no timeout
		return timeout, nil
	}
	return 0, nil
}

// tryBundle collects and stores the bundle of a failure that was first tried at a time, and returns the condition, and
// when it is tried again; 0 if it is not.
func (r *Reconciler) tryBundle(ctx context.Context, cd *hivev1.ClusterDeployment, f failure.Failure, first time.Time) (condition.Value, time.Duration) {
	name := failure.BundleName(cd, f)
	left, err := r.storeBundle(ctx, cd, f, name)
	if err == nil {
		message := fmt.Sprintf("Bundle %s contains what hotspare saw of the cluster when %s.", name, f.Kind)
		if left != nil {
			message += fmt.Sprintf(" Old bundles could not be deleted: %s.", describeStoreError(left))
		}
		return condition.True(hivev1.ReasonBundleWritten, message), 0
	}
	now := r.Clock.Now()
	if next := failure.NextTry(f, first, now); !next.IsZero() {
		end := "the failure ends, for at most an hour"
		if f.Kind == failure.Release {
			end = "the cluster is destroyed"
		}
		return condition.False(hivev1.ReasonBundleDelayed, fmt.Sprintf("Bundle %s could not be written, and hotspare tries again until %s: %s.",
			name, end, describeStoreError(err))), next.Sub(now)
	}
	return condition.False(hivev1.ReasonBundleNotWritten, fmt.Sprintf("Bundle %s could not be written: %s.", name, describeStoreError(err))), 0
}

// storeBundle collects and stores the bundle unless it is stored, and then deletes old ones. It returns why old ones
// remain, and why the bundle is not stored.
func (r *Reconciler) storeBundle(ctx context.Context, cd *hivev1.ClusterDeployment, f failure.Failure, name string) (left, err error) {
	now := r.Clock.Now()
	ctx, cancel := context.WithTimeout(ctx, timeLimit(f, now))
	defer cancel()
	if stored, err := r.Store.Has(ctx, name); stored || err != nil {
		return nil, err
	}
	b, err := r.collectBundle(ctx, cd, f, now)
	if err != nil {
		return nil, err
	}
	if err := r.Store.Write(ctx, name, b); err != nil {
		return nil, err
	}
	return r.Store.Prune(ctx, now), nil
}

// timeLimit returns how long the bundle of a failure may take.
func timeLimit(f failure.Failure, now time.Time) time.Duration {
	if f.Kind == failure.Release {
		return max(f.Since.Add(failure.ReleaseLimit).Sub(now), lateLimit)
	}
	return collectLimit + storeLimit
}

// collectBundle collects the bundle.
func (r *Reconciler) collectBundle(ctx context.Context, cd *hivev1.ClusterDeployment, f failure.Failure, now time.Time) (*diagnostics.Bundle, error) {
	ctx, cancel := context.WithTimeout(ctx, collectLimit)
	defer cancel()
	return r.Collect(ctx, cd, fmt.Sprintf("%s: %s", f.Kind, f.Message), now)
}

// describeStoreError returns the cause of an error without the names of temporary files.
func describeStoreError(err error) string {
	var explained *diagnostics.StoreError
	var number syscall.Errno
	switch {
	case errors.As(err, &explained):
		return explained.Message
	case errors.As(err, &number):
		return number.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "it took too long"
	case errors.Is(err, fs.ErrPermission):
		return "hotspare may not write to the folder"
	default:
		return "the store refused it"
	}
}

// reportStatus writes the condition. If it has changed, it records an event for the cluster and for its pool, which
// outlives the cluster, and at a release for the claim, whose user has requested the bundle.
func (r *Reconciler) reportStatus(ctx context.Context, cd *hivev1.ClusterDeployment, claim *hivev1.ClusterClaim, f failure.Failure, v condition.Value) error {
	before := cd.DeepCopy()
	if failure.FindReport(cd, f) == nil {
		condition.Remove(&cd.Status.Conditions, hivev1.ClusterDiagnosed) // the times of the condition are those of this bundle
	}
	now := r.Clock.Now()
	changed := condition.Apply(&cd.Status.Conditions, hivev1.ClusterDiagnosed, v, now)
	condition.Find(cd.Status.Conditions, hivev1.ClusterDiagnosed).LastProbeTime = metav1.NewTime(now.Truncate(time.Second)) // NextTry counts from it
	if _, err := patch.Status(ctx, r.Client, before, cd); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reporting diagnostics of %s: %w", client.ObjectKeyFromObject(cd), err)
	}
	if !changed {
		return nil
	}
	r.recordEvents(ctx, cd, claim, f, v)
	ctrl.LoggerFrom(ctx).Info("reported diagnostics", "message", v.Message)
	return nil
}

func (r *Reconciler) recordEvents(ctx context.Context, cd *hivev1.ClusterDeployment, claim *hivev1.ClusterClaim, f failure.Failure, v condition.Value) {
	typ := corev1.EventTypeNormal
	if !v.IsTrue() {
		typ = corev1.EventTypeWarning
	}
	r.Events.Eventf(cd, nil, typ, v.Reason, "CollectDiagnostics", "%s", v.Message)
	if claim != nil && f.Kind == failure.Release {
		r.Events.Eventf(claim, cd, typ, v.Reason, "CollectDiagnostics", "%s", v.Message)
	}
	if ref := cd.Spec.ClusterPoolRef; ref != nil && ref.PoolName != "" {
		var pool hivev1.ClusterPool
		if err := r.Client.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.PoolName}, &pool); err == nil {
			r.Events.Eventf(&pool, cd, typ, v.Reason, "CollectDiagnostics", "Cluster %s: %s", cd.Name, v.Message)
		}
	}
}

// failurePossible selects the clusters that have a failure, now or in time: most changes are of clusters without one.
func failurePossible() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool { return failure.IsPossible(o.(*hivev1.ClusterDeployment)) })
}

// SetupWithManager starts the controller with mgr.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("diagnostics").
		For(&hivev1.ClusterDeployment{}, builder.WithPredicates(failurePossible())).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r.Metrics.WrapReconciler("diagnostics", r))
}
