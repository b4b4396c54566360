// Package claimpolicy admits claims within the limits of the ClaimPolicies of their namespace.
//
// A pass decides on all claims of one namespace, because several policies may apply to a claim. The
// pool controller (package clusterpool) assigns clusters only to admitted claims, and the claim controller
// (package clusterclaim) reports why a claim is not admitted, and limits lifetimes.
package claimpolicy

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/claimpolicy"
	"hotspare.io/hotspare/internal/claimset"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/metrics"
	"hotspare.io/hotspare/internal/patch"
)

// +kubebuilder:rbac:groups=hotspare.io,resources=claimpolicies,verbs=get;list;watch
// +kubebuilder:rbac:groups=hotspare.io,resources=claimpolicies/status,verbs=patch
// +kubebuilder:rbac:groups=hotspare.io,resources=claimsets,verbs=get;list;watch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterclaims;clusterpools,verbs=get;list;watch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterclaims/status,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconciler admits the claims of namespaces. A request's Namespace is the namespace; its Name is
// empty.
type Reconciler struct {
	// Client reads from caches, Live from the API server: a claim is admitted only if the limits
	// certainly permit it.
	Client client.Client
	Live   client.Reader
	Clock  clock.PassiveClock
	Events events.EventRecorder
	// Metrics measures the passes; nil disables it.
	Metrics *metrics.Metrics
}

// ListPolicies returns the ClaimPolicies of a namespace that are not being deleted.
func ListPolicies(ctx context.Context, c client.Reader, namespace string) ([]claimpolicy.Policy, error) {
	var list v1alpha1.ClaimPolicyList
	if err := c.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing ClaimPolicies of namespace %s: %w", namespace, err)
	}
	return claimpolicy.ReadPolicies(list.Items), nil
}

// NewLister returns a function that calls ListPolicies with c.
func NewLister(c client.Reader) func(ctx context.Context, namespace string) ([]claimpolicy.Policy, error) {
	return func(ctx context.Context, namespace string) ([]claimpolicy.Policy, error) {
		return ListPolicies(ctx, c, namespace)
	}
}

// observation is everything that a pass has read.
type observation struct {
	claimpolicy.Snapshot
	policies []v1alpha1.ClaimPolicy
	claims   map[string]*hivev1.ClusterClaim
}

func observe(ctx context.Context, c client.Reader, namespace string) (*observation, error) {
	var policies v1alpha1.ClaimPolicyList
	var claims hivev1.ClusterClaimList
	var pools hivev1.ClusterPoolList
	var sets v1alpha1.ClaimSetList
	for _, list := range []client.ObjectList{&policies, &claims, &pools, &sets} {
		if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("listing ClaimPolicies, claims, ClaimSets and pools of namespace %s: %w", namespace, err)
		}
	}
	s := &observation{policies: policies.Items, claims: map[string]*hivev1.ClusterClaim{}}
	s.Policies, s.Pools = claimpolicy.ReadPolicies(policies.Items), claimpolicy.ReadPools(pools.Items)
	known, claimsOf := claimset.ByUID(sets.Items), map[types.UID][]claimpolicy.Claim{}
	for i := range claims.Items {
		c := &claims.Items[i]
		s.claims[c.Name] = c
		set, orphaned := known.FindSet(c)
		read := claimpolicy.ReadClaim(c).InSet(set)
		read.Orphaned = orphaned
		s.Claims = append(s.Claims, read)
		if set != nil {
			claimsOf[set.UID] = append(claimsOf[set.UID], read)
		}
	}
	for i := range sets.Items {
		s.Claims = append(s.Claims, claimpolicy.MissingClaims(&sets.Items[i], claimsOf[sets.Items[i].UID])...)
	}
	return s, nil
}

// Reconcile does one pass over a namespace.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s, err := observe(ctx, r.Client, req.Namespace)
	if err != nil {
		return fault.Requeue(0, err)
	}
	p := claimpolicy.Decide(s.Snapshot)
	if p.Admits() {
		// The cache may lack an admission by this process or its predecessor.
		if s, err = observe(ctx, r.Live, req.Namespace); err != nil {
			return fault.Requeue(0, err)
		}
		p = claimpolicy.Decide(s.Snapshot)
	}
	var errs []error
	for _, st := range p.Steps {
		if err := r.applyStep(ctx, s.claims[st.Claim], st); err != nil {
			errs = append(errs, fmt.Errorf("step %q: %w", st, err))
		}
	}
	return fault.Requeue(0, errors.Join(append(errs, r.reportCounts(ctx, s, p))...))
}

// applyStep sets the condition Admitted of a claim, unless the claim has changed since it was read.
func (r *Reconciler) applyStep(ctx context.Context, c *hivev1.ClusterClaim, st claimpolicy.Step) error {
	before := c.DeepCopy()
	if st.Admitted == (condition.Value{}) {
		condition.Remove(&c.Status.Conditions, hivev1.ClaimAdmitted)
	} else {
		condition.Apply(&c.Status.Conditions, hivev1.ClaimAdmitted, st.Admitted, r.Clock.Now())
	}
	_, err := patch.Status(ctx, r.Client, before, c)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	was := condition.Find(before.Status.Conditions, hivev1.ClaimAdmitted)
	if err == nil && st.Admitted.Status == corev1.ConditionFalse && (was == nil || was.Reason != st.Admitted.Reason) {
		r.Events.Eventf(c, nil, corev1.EventTypeNormal, st.Admitted.Reason, "Hold", "%s", st.Admitted.Message)
	}
	return nil
}

// reportCounts writes the statuses of the policies.
func (r *Reconciler) reportCounts(ctx context.Context, s *observation, p claimpolicy.Plan) error {
	var errs []error
	for i := range s.policies {
		policy := &s.policies[i]
		n, exists := p.Counts[policy.Name]
		if !exists {
			continue // it is being deleted
		}
		before := policy.DeepCopy()
		policy.Status.ObservedGeneration = policy.Generation
		policy.Status.Admitted, policy.Status.Waiting = int32(n.Admitted), int32(n.Waiting) //nolint:gosec // numbers of claims
		if _, err := patch.Status(ctx, r.Client, before, policy); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("reporting ClaimPolicy %s: %w", policy.Name, err))
		}
	}
	return errors.Join(errs...)
}

// SetupWithManager starts the controller with mgr.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("claimpolicy").
		Watches(&v1alpha1.ClaimPolicy{}, handler.EnqueueRequestsFromMapFunc(namespaceOf), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&hivev1.ClusterClaim{}, handler.EnqueueRequestsFromMapFunc(r.namespaceOfClaim), builder.WithPredicates(claimChanged())).
		Watches(&v1alpha1.ClaimSet{}, handler.EnqueueRequestsFromMapFunc(namespaceOf), builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, existenceChanged(), expectationChanged()))).
		Watches(&hivev1.ClusterPool{}, handler.EnqueueRequestsFromMapFunc(r.namespaceOfPool), builder.WithPredicates(existenceChanged())).
		Complete(r.Metrics.WrapReconciler("claimpolicy", r))
}

func namespaceOf(_ context.Context, o client.Object) []reconcile.Request {
	var q reconcile.Request
	q.Namespace = o.GetNamespace()
	return []reconcile.Request{q}
}

// namespaceOfClaim enqueues the namespace of a claim, if it has ClaimPolicies or the claim has a condition
// that is left of one.
func (r *Reconciler) namespaceOfClaim(ctx context.Context, o client.Object) []reconcile.Request {
	policies, err := ListPolicies(ctx, r.Client, o.GetNamespace())
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "looking for the ClaimPolicies of a claim")
	}
	if err == nil && len(policies) == 0 && condition.Find(o.(*hivev1.ClusterClaim).Status.Conditions, hivev1.ClaimAdmitted) == nil {
		return nil
	}
	return namespaceOf(ctx, o)
}

// namespaceOfPool enqueues the namespace of a pool, if it has ClaimPolicies.
func (r *Reconciler) namespaceOfPool(ctx context.Context, o client.Object) []reconcile.Request {
	policies, err := ListPolicies(ctx, r.Client, o.GetNamespace())
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "looking for the ClaimPolicies of a pool")
	}
	if err == nil && len(policies) == 0 {
		return nil
	}
	return namespaceOf(ctx, o)
}

// existenceChanged selects the creation and the deletion of an object.
func existenceChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return (e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil)
	}}
}

// expectationChanged selects the updates of a ClaimSet after which other claims of it are missing.
func expectationChanged() predicate.Predicate {
	type expectation struct {
		pool            string
		served, stalled bool
	}
	read := func(o client.Object) expectation {
		st := o.(*v1alpha1.ClaimSet).Status
		return expectation{st.ClusterPoolName, st.ServedTime != nil, meta.IsStatusConditionTrue(st.Conditions, hivev1.ConditionStalled)}
	}
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return read(e.ObjectOld) != read(e.ObjectNew) }}
}

// claimChanged selects the updates of a claim that an admission could depend on.
func claimChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := claimpolicy.ReadClaim(e.ObjectOld.(*hivev1.ClusterClaim)), claimpolicy.ReadClaim(e.ObjectNew.(*hivev1.ClusterClaim))
		return !reflect.DeepEqual(before, after)
	}}
}
