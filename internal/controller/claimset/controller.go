// Package claimset reconciles ClaimSets: it creates the claims of a set, all on one pool, moves them to another pool if
// that can serve the set sooner, and releases them with the set. It deletes a set whose heartbeat is missing.
//
// The pool controller (package clusterpool) assigns clusters to the claims of a set, all in one pass.
package claimset

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/claimset"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/heartbeat/tracker"
	"hotspare.io/hotspare/internal/metrics"
)

// +kubebuilder:rbac:groups=hotspare.io,resources=claimsets,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=hotspare.io,resources=claimsets/status,verbs=patch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterclaims,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterpools,verbs=get;list;watch
// +kubebuilder:rbac:groups=hotspare.io,resources=claimpolicies,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// A Reconciler reconciles ClaimSets.
type Reconciler struct {
	// Client reads from caches, Live from the API server: claims are created and deleted only by what the API server
	// itself says.
	Client client.Client
	Live   client.Reader
	Clock  clock.PassiveClock
	Events events.EventRecorder
	// Metrics measures the passes; nil disables it.
	Metrics *metrics.Metrics

	heartbeats tracker.Heartbeats
}

// NewLister returns a function that returns the ClaimSets of a namespace, read by c. Do not change them.
func NewLister(c client.Reader) func(ctx context.Context, namespace string) (claimset.Sets, error) {
	return func(ctx context.Context, namespace string) (claimset.Sets, error) {
		var list v1alpha1.ClaimSetList
		if err := c.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing ClaimSets of namespace %s: %w", namespace, err)
		}
		return claimset.ByUID(list.Items), nil
	}
}

// refusalRetryDelay is the delay before claims that the hub has refused are created again: a quota, or an admission
// policy, may permit them later.
const refusalRetryDelay = 30 * time.Second

// Reconcile does one pass over the set.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s, err := r.observeSet(ctx, r.Client, req.NamespacedName)
	if err != nil || s == nil {
		return fault.Requeue(0, err)
	}
	p := claimset.Decide(s.Snapshot)
	if p.CountSteps(claimset.CreateClaim, claimset.DeleteClaim, claimset.DeleteSet, claimset.ReleaseSet, claimset.RemoveFinalizer) > 0 {
		// The cache may lack a claim that this process, or its predecessor, has created.
		if s, err = r.observeSet(ctx, r.Live, req.NamespacedName); err != nil || s == nil {
			return fault.Requeue(0, err)
		}
		p = claimset.Decide(s.Snapshot)
	}
	done, err := r.applySteps(ctx, s, p)
	if refusal := refusalOf(err); refusal != "" {
		s.Refusal = refusal
		p = claimset.Decide(s.Snapshot)
		p.Next, err = fault.SoonerDelay(p.Next, refusalRetryDelay), nil
	}
	if err != nil || done {
		return fault.Requeue(0, err)
	}
	return fault.Requeue(p.Next, r.reportStatus(ctx, s, p))
}

// SetupWithManager starts the controller with mgr.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("claimset").
		For(&v1alpha1.ClaimSet{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, deletionChanged(), heartbeatChanged()))).
		Watches(&hivev1.ClusterClaim{}, handler.EnqueueRequestsFromMapFunc(setsOfClaim)).
		Watches(&hivev1.ClusterClaim{}, handler.EnqueueRequestsFromMapFunc(r.waitingSetsOfNamespace), builder.WithPredicates(waitingClaimDeleted())).
		Watches(&hivev1.ClusterPool{}, handler.EnqueueRequestsFromMapFunc(r.waitingSetsOfNamespace), builder.WithPredicates(poolChanged())).
		Watches(&v1alpha1.ClaimPolicy{}, handler.EnqueueRequestsFromMapFunc(r.waitingSetsOfNamespace), builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, deletionChanged()))).
		Complete(r.Metrics.WrapReconciler("claimset", r))
}

// recordEvent records an event about the set.
func (r *Reconciler) recordEvent(set *v1alpha1.ClaimSet, reason, action, note string, args ...any) {
	r.Events.Eventf(set, nil, corev1.EventTypeNormal, reason, action, note, args...)
}
