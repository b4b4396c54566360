package clusterpool

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/patch"
	"hotspare.io/hotspare/internal/pool"
)

// report writes the pool's status, if it changed: counts, conditions, and the
// names under which clusters are about to be created.
func (r *Reconciler) report(ctx context.Context, s *seen, rep pool.Report, names []string) error {
	before := s.pool.DeepCopy()
	st := &s.pool.Status
	st.Size = int32(rep.Unclaimed())
	st.Standby = int32(rep.Count[pool.Standby])
	st.Ready = int32(rep.Count[pool.Assignable])
	st.Selector = fmt.Sprintf("%s=%s,%s=%s", hivev1.LabelPoolNamespace, s.pool.Namespace, hivev1.LabelPoolName, s.pool.Name)
	st.Plan = rep.Words
	st.ObservedGeneration = s.pool.Generation
	st.Pending = append(slices.Clone(s.snapshot.Pending), names...)
	r.conditions(s, rep)
	wrote, err := patch.Status(ctx, r.Client, before, s.pool)
	if err != nil {
		return fmt.Errorf("writing the status of pool %s: %w", s.pool.Name, err)
	}
	if wrote {
		r.pools.Note(s.pool.DeepCopy(), r.Clock.Now())
	}
	return nil
}

func (r *Reconciler) conditions(s *seen, rep pool.Report) {
	set := func(typ string, status corev1.ConditionStatus, reason, message string) {
		condition.Set(&s.pool.Status.Conditions, typ, status, reason, message, r.Clock.Now())
	}
	unknown := func(typ string) {
		if condition.Find(s.pool.Status.Conditions, typ) == nil {
			set(typ, corev1.ConditionUnknown, hivev1.ReasonInitialized, "Condition Initialized")
		}
	}
	unknown(hivev1.PoolInventoryValid)
	if s.pool.DeletionTimestamp != nil {
		deletion(set, rep)
		return
	}
	unknown(hivev1.PoolDeletionPossible)
	dependencies(set, s.missing)
	s.capacity(set, rep)
	currency(set, rep)
}

type setter func(typ string, status corev1.ConditionStatus, reason, message string)

func dependencies(set setter, missing []string) {
	if len(missing) > 0 {
		set(hivev1.PoolMissingDependencies, corev1.ConditionTrue, hivev1.ReasonMissing, inWords(missing))
		return
	}
	set(hivev1.PoolMissingDependencies, corev1.ConditionFalse, hivev1.ReasonVerified, "Dependencies verified")
}

func (s *seen) capacity(set setter, rep pool.Report) {
	limit := s.pool.Spec.MaxSize
	switch {
	case !rep.Full:
		set(hivev1.PoolCapacityAvailable, corev1.ConditionTrue, hivev1.ReasonAvailable, "There is capacity to add more clusters to the pool.")
	case limit != nil && len(s.clusters) >= int(*limit):
		set(hivev1.PoolCapacityAvailable, corev1.ConditionFalse, hivev1.ReasonMaxCapacity,
			fmt.Sprintf("Pool is at maximum capacity of %d waiting and claimed clusters.", *limit))
	default:
		set(hivev1.PoolCapacityAvailable, corev1.ConditionFalse, hivev1.ReasonNoRoom, rep.NoRoom)
	}
}

func currency(set setter, rep pool.Report) {
	switch {
	case len(rep.Stale) > 0:
		set(hivev1.PoolAllClustersCurrent, corev1.ConditionFalse, hivev1.ReasonSomeClustersStale,
			"Some unassigned ClusterDeployments do not match the pool configuration: "+strings.Join(rep.Stale, ", "))
	case len(rep.Unversioned) > 0:
		set(hivev1.PoolAllClustersCurrent, corev1.ConditionUnknown, hivev1.ReasonSomeClustersUnknown,
			"Some unassigned ClusterDeployments are missing their pool spec hash annotation: "+strings.Join(rep.Unversioned, ", "))
	default:
		set(hivev1.PoolAllClustersCurrent, corev1.ConditionTrue, hivev1.ReasonClustersCurrent,
			"All unassigned ClusterDeployments match the pool configuration")
	}
}

func deletion(set setter, rep pool.Report) {
	if len(rep.Left) > 0 {
		set(hivev1.PoolDeletionPossible, corev1.ConditionFalse, hivev1.ReasonClustersPendingClean,
			"The following ClusterDeployments are pending cleanup: "+strings.Join(rep.Left, ", "))
		return
	}
	set(hivev1.PoolDeletionPossible, corev1.ConditionTrue, hivev1.ReasonDeletionPossible, "No ClusterDeployments pending cleanup")
}
