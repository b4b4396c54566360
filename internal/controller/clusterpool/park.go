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

// reportUnreadable reports why the controller does nothing for a pool that could not be read
// completely: the missing part may be a limit. It sets conditions that every other pass sets too.
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

// poolKeyOf returns a cluster's pool; empty if it has none. For an unreadable cluster, its labels
// may be the only record of the pool.
func poolKeyOf(cd *hivev1.ClusterDeployment) types.NamespacedName {
	if ref := cd.Spec.ClusterPoolRef; ref != nil && ref.PoolName != "" {
		return types.NamespacedName{Namespace: ref.Namespace, Name: ref.PoolName}
	}
	if cd.Unreadable == "" {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: cd.Labels[hivev1.LabelPoolNamespace], Name: cd.Labels[hivev1.LabelPoolName]}
}
