package clusterpool

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/patch"
	"hotspare.io/hotspare/internal/pool"
)

// reportEvery is the minimum interval between status writes of a pool that serves claims: its
// counts change with each claim, and each write would delay the next claim.
const reportEvery = time.Second

// statusPatchDelay returns how long the next status write should wait; 0 if the last one was at
// least reportEvery ago.
func (m *poolCache) statusPatchDelay(now time.Time) time.Duration {
	if next := m.statusWrittenAt.Add(reportEvery); now.Before(next) {
		return next.Sub(now)
	}
	return 0
}

// patchPoolStatus writes the pool's status, if it changed: counts, conditions, and the names of
// clusters that are about to be created. While the pool serves claims, it may leave a change of
// counts alone to a later pass: it then returns the delay before that pass.
func (r *Reconciler) patchPoolStatus(ctx context.Context, s *observation, p pool.Plan, names []string) (time.Duration, error) {
	before, now := s.pool.DeepCopy(), r.Clock.Now()
	s.pool.Status = s.poolObjects().PoolStatus(p.Report, s.inventoryPlan, append(s.withoutDropped(s.unobservedPending()), names...), now)
	if p.Report.InDemand && differOnlyInCounts(before.Status, s.pool.Status) {
		if wait := s.cache.statusPatchDelay(now); wait > 0 {
			return wait, nil
		}
	}
	wrote, err := patch.Status(ctx, r.Client, before, s.pool)
	if err != nil {
		return 0, fmt.Errorf("writing the status of pool %s: %w", s.pool.Name, err)
	}
	if wrote {
		s.cache.statusWrittenAt = now
		r.recordPoolWrite(s)
		r.recordEntryEvents(ctx, before, s.pool)
	}
	return 0, nil
}

// differOnlyInCounts reports whether two statuses differ only in counts, in status.plan, which has
// some of them, and in the parts of the condition Progressing that change with these.
func differOnlyInCounts(a, b hivev1.ClusterPoolStatus) bool {
	for _, st := range []*hivev1.ClusterPoolStatus{&a, &b} {
		st.Size, st.Standby, st.Ready, st.Plan = 0, 0, 0, ""
		st.Conditions = slices.Clone(st.Conditions)
		condition.Remove(&st.Conditions, hivev1.ConditionReconciling) // both follow from the others
		condition.Remove(&st.Conditions, hivev1.ConditionStalled)
		c := condition.Find(st.Conditions, hivev1.PoolProgressing)
		if c == nil {
			continue
		}
		blocked := c.Reason == hivev1.ReasonBlocked
		*c = hivev1.Condition{Type: c.Type}
		if blocked {
			c.Reason = hivev1.ReasonBlocked
		}
	}
	return equality.Semantic.DeepEqual(a, b)
}
