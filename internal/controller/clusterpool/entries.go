package clusterpool

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// entryEventReasons maps the statuses of inventory entries that a user must fix to the reasons of
// their events.
var entryEventReasons = map[hivev1.InventoryStatus]string{
	hivev1.InventoryMissing:               "CustomizationMissing",
	hivev1.InventoryBrokenByConfiguration: "CustomizationBroken",
}

// recordEntryEvents logs and records the inventory entries that have become unusable
// (HIVE-1367). Each is a warning about the pool that names its customization.
func (r *Reconciler) recordEntryEvents(ctx context.Context, before, after *hivev1.ClusterPool) {
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
		r.Events.Eventf(after, related, corev1.EventTypeWarning, reason, "ReadInventory", "ClusterDeploymentCustomization %s cannot be used: %s", name, why)
	}
}
