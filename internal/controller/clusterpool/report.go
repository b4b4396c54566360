package clusterpool

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

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
func (c *poolCache) statusPatchDelay(now time.Time) time.Duration {
	if next := c.statusWrittenAt.Add(reportEvery); now.Before(next) {
		return next.Sub(now)
	}
	return 0
}

// reportStatus writes the pool's status, if it changed: counts, conditions, and the names of the
// clusters that p creates. While the pool serves claims, it may leave a change of counts alone to a
// later pass: it then returns the delay before that pass. If it fails, the pass ends: no cluster is
// created under a name that is not recorded.
func (t *execution) reportStatus(ctx context.Context, p pool.Plan) (time.Duration, error) {
	if t.ended {
		return 0, nil
	}
	now, pending := t.Clock.Now(), t.withoutDropped(t.seen.unobservedPending())
	for _, st := range p.DueStepsOf(pool.Create) {
		pending = append(pending, st.Cluster)
	}
	after := t.pool.DeepCopy()
	after.Status = t.seen.poolObjects().PoolStatus(p.Report, t.inventoryPlan, pending, now)
	if p.Report.InDemand && differOnlyInCounts(t.pool.Status, after.Status) {
		if wait := t.seen.cache.statusPatchDelay(now); wait > 0 {
			return wait, nil
		}
	}
	wrote, err := patch.Status(ctx, t.Client, t.pool, after)
	if err != nil {
		t.ended = true
		return 0, fmt.Errorf("writing the status of pool %s: %w", t.pool.Name, err)
	}
	if wrote {
		t.seen.cache.statusWrittenAt = now
		if why := p.Report.Unreadable; why != "" {
			t.Events.Eventf(after, nil, corev1.EventTypeWarning, hivev1.ReasonUnreadable, "Park", "%s", why)
		}
		t.recordEntryEvents(ctx, t.pool, after)
		t.recordPoolWrite(after)
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

// entryEventReasons maps the statuses of inventory entries that a user must fix to the reasons of
// their events.
var entryEventReasons = map[hivev1.InventoryStatus]string{
	hivev1.InventoryMissing:               "CustomizationMissing",
	hivev1.InventoryBrokenByConfiguration: "CustomizationBroken",
}

// recordEntryEvents logs and records the inventory entries that have become unusable
// (HIVE-1367). Each is a warning about the pool that names its customization.
func (t *execution) recordEntryEvents(ctx context.Context, before, after *hivev1.ClusterPool) {
	for _, name := range slices.Sorted(maps.Keys(after.Status.Inventory)) {
		e := after.Status.Inventory[name]
		reason, ok := entryEventReasons[e.Status]
		if was := before.Status.Inventory[name]; !ok || was.Status == e.Status && was.Message == e.Message {
			continue
		}
		why := e.Message
		if why == "" {
			why = "it does not exist"
		}
		ctrl.LoggerFrom(ctx).Error(nil, "customization of the inventory cannot be used", "customization", name, "status", e.Status, "why", why)
		// Without the customization, events about two customizations would be aggregated into one.
		related := &hivev1.ClusterDeploymentCustomization{ObjectMeta: metav1.ObjectMeta{Namespace: after.Namespace, Name: name}}
		t.Events.Eventf(after, related, corev1.EventTypeWarning, reason, "ReadInventory", "ClusterDeploymentCustomization %s cannot be used: %s", name, why)
	}
}
