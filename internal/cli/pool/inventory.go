package pool

import (
	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/explain/inventoryview"
)

// buildPoolInventoryTable lists a pool's inventory from the pool's own status.
func (a commands) buildPoolInventoryTable(p *hivev1.ClusterPool) *base.Table {
	t := base.NewTable("INVENTORY", "STATUS", "CLUSTER", "ATTEMPTS", "MESSAGE")
	t.Colours = base.InventoryColours
	for _, e := range inventoryview.EntriesFromPool(p) {
		t.AddRow(e.Name, base.ValueOrNone(string(e.Status)), base.ValueOrNone(e.Cluster), base.ValueOrNone(e.Tries()), e.Message)
	}
	t.FitWidth(a.Width(a.Stdout), "ATTEMPTS", "MESSAGE", "CLUSTER")
	return t
}
