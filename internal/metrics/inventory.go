package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// Inventory is the number of entries of a pool's inventory in each status.
type Inventory map[hivev1.InventoryStatus]int

// InventoryGauges measures inventories at each scrape.
type InventoryGauges struct {
	readInventories func() (map[types.NamespacedName]Inventory, error)
}

// NewInventoryGauges returns gauges of the inventories that readInventories returns: those of all
// pools that have one.
func NewInventoryGauges(readInventories func() (map[types.NamespacedName]Inventory, error)) *InventoryGauges {
	return &InventoryGauges{readInventories}
}

// All statuses: gauges whose value is zero are reported, too.
var inventoryStatuses = []hivev1.InventoryStatus{
	hivev1.InventoryAvailable, hivev1.InventoryReserved, hivev1.InventoryBrokenByConfiguration, hivev1.InventoryBrokenByCloud,
	hivev1.InventoryMissing, hivev1.InventoryUnavailable, hivev1.InventoryToBeDeleted, hivev1.InventoryToBeUpdated,
}

var inventoryDesc = newPoolDesc("hotspare_pool_inventory", "Entries of the pool's inventory, by status.", "status")

// Describe implements prometheus.Collector.
func (g *InventoryGauges) Describe(ch chan<- *prometheus.Desc) { ch <- inventoryDesc }

// Collect implements prometheus.Collector: it reads the current state and reports it.
func (g *InventoryGauges) Collect(ch chan<- prometheus.Metric) {
	pools, err := g.readInventories()
	if err != nil {
		ch <- prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(err), err)
	}
	for p, inventory := range pools {
		for _, status := range inventoryStatuses {
			ch <- prometheus.MustNewConstMetric(inventoryDesc, prometheus.GaugeValue, float64(inventory[status]), p.Namespace, p.Name, string(status))
		}
	}
}
