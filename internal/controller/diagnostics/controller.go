// Package diagnostics collects a bundle about each failure of a cluster, and reports its name.
//
// A pass over one ClusterDeployment is observe, failure.Decide, and, once for each failure, collect, store, report.
// The name of a bundle follows from the cluster's UID and the failure, so that no restart collects a bundle twice.
// Nothing waits for a bundle: no finalizer and no other controller does. A failure with a deadline is due at half
// of its time, before the pool deletes the cluster; the bundle of an install that has failed for the last time is
// collected while the cluster is already being deleted, and lacks what is gone by then.
package diagnostics

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// Store keeps bundles.
type Store interface {
	// Has reports whether a bundle is stored.
	Has(name string) bool
	// Write stores a bundle, whole or not at all.
	Write(name string, b *diagnostics.Bundle) error
	// Prune deletes the bundles that exceed the limits of the store.
	Prune(now time.Time) error
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

// collectLimit bounds how long a bundle may take.
const collectLimit = 2 * time.Minute

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
	p := failure.Decide(failure.Snapshot{Now: r.Clock.Now(), Cluster: &cd, ResumeTimeout: timeout})
	if p.Failure == nil {
		return ctrl.Result{RequeueAfter: p.Next}, nil
	}
	name := BundleName(&cd, *p.Failure)
	if isReported(&cd, name) {
		return ctrl.Result{}, nil
	}
	v := r.storeBundle(ctx, &cd, *p.Failure, name)
	if err := ctx.Err(); err != nil { // the process ends: the next one collects the bundle
		return ctrl.Result{}, err
	}
	return fault.Requeue(0, r.reportStatus(ctx, &cd, v))
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

// maxClusterName is how much of a cluster's name is part of the name of a bundle.
const maxClusterName = 100

// BundleName returns the name of the bundle about a failure. It is the same whenever it is computed.
func BundleName(cd *hivev1.ClusterDeployment, f failure.Failure) string {
	uid, _, _ := strings.Cut(string(cd.UID), "-")
	name := cd.Name[:min(len(cd.Name), maxClusterName)]
	return fmt.Sprintf("%s-%s-%s-%s.tar.gz", name, string(f.Kind), f.Since.UTC().Format("20060102T150405Z"), uid)
}

// isReported reports whether the cluster has a condition about the bundle. The condition decides only that nothing
// more is done about the failure of this one cluster.
func isReported(cd *hivev1.ClusterDeployment, name string) bool {
	c := condition.Find(cd.Status.Conditions, hivev1.ClusterDiagnosed)
	return c != nil && strings.Contains(c.Message, name)
}

// storeBundle collects and stores the bundle unless it is stored, and returns the condition.
func (r *Reconciler) storeBundle(ctx context.Context, cd *hivev1.ClusterDeployment, f failure.Failure, name string) condition.Value {
	written := condition.True(hivev1.ReasonBundleWritten, fmt.Sprintf("Bundle %s has what was seen of the cluster when %s.", name, f.Kind))
	if r.Store.Has(name) {
		return written
	}
	ctx, cancel := context.WithTimeout(ctx, collectLimit)
	defer cancel()
	now := r.Clock.Now()
	b, err := r.Collect(ctx, cd, fmt.Sprintf("%s: %s", f.Kind, f.Message), now)
	if err == nil {
		err = r.Store.Write(name, b)
	}
	if err = errors.Join(err, r.Store.Prune(now)); err != nil && !r.Store.Has(name) {
		return condition.False(hivev1.ReasonBundleNotWritten, fmt.Sprintf("Bundle %s could not be written: %s.", name, describeWriteError(err)))
	}
	return written
}

// describeWriteError returns the cause of an error without the names of temporary files.
func describeWriteError(err error) string {
	var number syscall.Errno
	switch {
	case errors.As(err, &number):
		return number.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "it took more than " + collectLimit.String()
	case errors.Is(err, fs.ErrPermission):
		return "hotspare may not write to the folder"
	default:
		return "the store refused it"
	}
}

// reportStatus writes the condition, and records an event for the cluster and for its pool, which outlives the cluster.
func (r *Reconciler) reportStatus(ctx context.Context, cd *hivev1.ClusterDeployment, v condition.Value) error {
	typ := corev1.EventTypeNormal
	if !v.IsTrue() {
		typ = corev1.EventTypeWarning
	}
	before := cd.DeepCopy()
	condition.Apply(&cd.Status.Conditions, hivev1.ClusterDiagnosed, v, r.Clock.Now())
	_, err := patch.Status(ctx, r.Client, before, cd)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reporting diagnostics of %s: %w", client.ObjectKeyFromObject(cd), err)
	}
	r.Events.Eventf(cd, nil, typ, v.Reason, "CollectDiagnostics", "%s", v.Message)
	if ref := cd.Spec.ClusterPoolRef; ref != nil && ref.PoolName != "" {
		var pool hivev1.ClusterPool
		if err := r.Client.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.PoolName}, &pool); err == nil {
			r.Events.Eventf(&pool, cd, typ, v.Reason, "CollectDiagnostics", "Cluster %s: %s", cd.Name, v.Message)
		}
	}
	ctrl.LoggerFrom(ctx).Info("collected diagnostics", "message", v.Message)
	return nil
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
