package clusterpool

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/kstatus"
	"hotspare.io/hotspare/internal/patch"
)

// reportUnreadable tells why nothing is done for a pool that could not be read whole: what
// is missing of it may be a limit. The conditions are ones that every other pass sets.
func (r *Reconciler) reportUnreadable(ctx context.Context, s *observation) error {
	before, p := s.pool.DeepCopy(), s.pool
	why := fmt.Sprintf("%s: correct it with kubectl edit clusterpool %s -n %s; until then nothing is done for this pool",
		p.Unreadable, p.Name, p.Namespace)
	p.Status.Plan = "parked: " + why
	p.Status.ObservedGeneration = p.Generation
	condition.Set(&p.Status.Conditions, hivev1.PoolMissingDependencies, corev1.ConditionUnknown, hivev1.ReasonUnreadable, why, r.Clock.Now())
	condition.Set(&p.Status.Conditions, hivev1.PoolProgressing, corev1.ConditionFalse, hivev1.ReasonUnreadable, why, r.Clock.Now())
	kstatus.ReportClusterPool(p, &p.Status, r.Clock.Now())
	wrote, err := patch.Status(ctx, r.Client, before, p)
	if err != nil {
		return fmt.Errorf("parking pool %s: %w", p.Name, err)
	}
	if wrote {
		r.pools.RecordWrite(p, r.Clock.Now())
		r.Events.Eventf(p, nil, corev1.EventTypeWarning, hivev1.ReasonUnreadable, "Park", "%s", why)
	}
	return nil
}

// poolKeyOf is a cluster's pool; empty without one. An unreadable cluster may have
// nothing but its labels to tell it.
func poolKeyOf(cd *hivev1.ClusterDeployment) types.NamespacedName {
	if ref := cd.Spec.ClusterPoolRef; ref != nil && ref.PoolName != "" {
		return types.NamespacedName{Namespace: ref.Namespace, Name: ref.PoolName}
	}
	if cd.Unreadable == "" {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: cd.Labels[hivev1.LabelPoolNamespace], Name: cd.Labels[hivev1.LabelPoolName]}
}
