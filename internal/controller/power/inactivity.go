package power

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/patch"
	"hotspare.io/hotspare/internal/power"
)

// observeInactivity adds to the snapshot what the decision about inactivity needs from the hub and the platform.
func (r *Reconciler) observeInactivity(ctx context.Context, actuator cloud.Actuator, cd *hivev1.ClusterDeployment, s *power.Snapshot) error {
	s.Inactivity = power.ParseInactivityRecord(cd.Annotations[hivev1.AnnotationInactivity])
	if holder, ok := actuator.(cloud.AddressHolder); ok && s.Actuator && s.InfraID != "" {
		s.HoldsAddresses = true
		s.WaitingConnections = holder.CountWaiting(cloudRef(cd))
	}
	if s.ClaimedAt.IsZero() {
		return nil
	}
	return r.observeInactivityLimit(ctx, poolOf(cd), s)
}

// observeInactivityLimit adds to the snapshot after how much inactivity the claimed clusters of a pool hibernate, and what
// does not count as use, if its PoolPolicy says so.
func (r *Reconciler) observeInactivityLimit(ctx context.Context, pool types.NamespacedName, s *power.Snapshot) error {
	var policy v1alpha1.PoolPolicy
	if err := r.Client.Get(ctx, pool, &policy); err != nil {
		return client.IgnoreNotFound(err)
	}
	claimed := policy.Spec.ClaimedClusters
	if claimed == nil {
		return nil
	}
	limit, err := claimed.HibernateAfterInactivity.Parse()
	if err != nil {
		s.SpecProblem = joinSentences(s.SpecProblem,
			fmt.Sprintf("spec.claimedClusters.hibernateAfterInactivity of PoolPolicy %s is ignored: %s.", pool, err))
		return nil
	}
	s.Limits.Inactivity, s.IgnoredNamespaces = limit, claimed.IgnoredNamespaces
	return nil
}

func poolOf(cd *hivev1.ClusterDeployment) types.NamespacedName {
	if p := cd.Spec.ClusterPoolRef; p != nil {
		return types.NamespacedName{Namespace: p.Namespace, Name: p.PoolName}
	}
	return types.NamespacedName{}
}

// applyAddress makes the platform keep the address of the cluster, or not, as the plan says. It returns the plan, or,
// if that failed, the plan that says so.
func (r *Reconciler) applyAddress(ctx context.Context, cd *hivev1.ClusterDeployment, s power.Snapshot, d power.Plan) power.Plan {
	holder, ok := r.Actuators.ActuatorFor(cd.Spec.Platform).(cloud.AddressHolder)
	ref := cloudRef(cd)
	if !ok || ref.InfraID == "" {
		return d
	}
	apply := holder.DropAddress
	if d.HoldAddress {
		apply = holder.HoldAddress
		if err := r.confirmOwner(ctx, cd, ref.InfraID); err != nil {
			return d.AfterAddressFailure(err.Error())
		}
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := apply(ctx, ref); err != nil && s.Installed {
		return d.AfterAddressFailure(err.Error())
	}
	return d
}

func setInactivityRecord(cd *hivev1.ClusterDeployment, to power.InactivityRecord) {
	if text := to.String(); text != "" {
		if cd.Annotations == nil {
			cd.Annotations = map[string]string{}
		}
		cd.Annotations[hivev1.AnnotationInactivity] = text
		return
	}
	delete(cd.Annotations, hivev1.AnnotationInactivity)
}

// patchInactivityRecord records a change of the inactivity that does not change the power state.
func (r *Reconciler) patchInactivityRecord(ctx context.Context, cd *hivev1.ClusterDeployment, to power.InactivityRecord) error {
	before := cd.DeepCopy()
	setInactivityRecord(cd, to)
	if _, err := patch.Object(ctx, r.Client, before, cd); err != nil {
		return fmt.Errorf("recording the inactivity of %s: %w", client.ObjectKeyFromObject(cd), err)
	}
	return nil
}

// watchPolicies reconciles the claimed clusters of a pool when its PoolPolicy changes.
func (r *Reconciler) watchPolicies(b *builder.Builder) {
	enqueue := func(ctx context.Context, o client.Object) []reconcile.Request {
		var list hivev1.ClusterDeploymentList
		if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil { // policies change rarely
			ctrl.LoggerFrom(ctx).Error(err, "listing clusters by their pool", "pool", client.ObjectKeyFromObject(o))
			return nil
		}
		var out []reconcile.Request
		for i := range list.Items {
			cd := &list.Items[i]
			if ref := cd.Spec.ClusterPoolRef; ref != nil && ref.ClaimName != "" && poolOf(cd) == client.ObjectKeyFromObject(o) {
				out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(cd)})
			}
		}
		return out
	}
	b.Watches(&v1alpha1.PoolPolicy{}, handler.EnqueueRequestsFromMapFunc(enqueue), builder.WithPredicates(predicate.GenerationChangedPredicate{}))
}
