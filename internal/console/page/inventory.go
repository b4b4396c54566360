package page

import (
	"slices"
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/explain/inventoryview"
	"hotspare.io/hotspare/internal/explain/remedy"
)

// Inventory is what there is of inventories. The words are those of hotspare inventory.
type Inventory struct {
	Pools []InventoryPool
	// Unlisted are customizations that no pool lists.
	Unlisted []Entry
	// Empty is set when there is nothing at all, Pooled when there are pools all the same.
	Empty, HasPools bool
}

// An InventoryPool is a pool with an inventory.
type InventoryPool struct {
	Namespace, Name, Link string
	// Counts has how many entries there are in each status.
	Counts  []Count
	Entries []Entry
}

// An Entry is a customization as a pool has it, or as none does.
type Entry struct {
	inventoryview.Entry
	inventoryview.StatusExplanation
	// StatusLabel is the status; empty entries have one, too.
	StatusLabel string
	Tone        string
	// Age is that of the customization; zero when there is none.
	Age Moment
	// UsedBy is who has its lease, in words; only of those that no pool lists.
	UsedBy string
}

// notChecked is the status of an entry that its pool has not looked at.
const notChecked = "Not checked"

// NewInventory tells of a stock. Blind is set when the viewer may not see clusters: who
// has claimed the cluster of an entry cannot be told then.
func NewInventory(s *inventoryview.Objects, blind bool, now time.Time) Inventory {
	slices.SortFunc(s.Pools, func(a, b hivev1.ClusterPool) int { return compareByKey(&a, &b) })
	slices.SortFunc(s.Customizations, func(a, b hivev1.ClusterDeploymentCustomization) int { return compareByKey(&a, &b) })
	out := Inventory{HasPools: len(s.Pools) > 0}
	for _, e := range s.Entries() {
		one := newEntry(e, blind, now)
		if e.Pool == "" {
			one.UsedBy = s.DescribeHolder(e.Customization)
			out.Unlisted = append(out.Unlisted, one)
			continue
		}
		n := slices.IndexFunc(out.Pools, func(p InventoryPool) bool { return p.Namespace == e.Namespace && p.Name == e.Pool })
		if n < 0 {
			n = len(out.Pools)
			out.Pools = append(out.Pools, InventoryPool{Namespace: e.Namespace, Name: e.Pool, Link: PoolLink(e.Namespace, e.Pool)})
		}
		out.Pools[n].addEntry(one)
	}
	out.Empty = len(out.Pools) == 0 && len(out.Unlisted) == 0
	return out
}

func (p *InventoryPool) addEntry(e Entry) {
	p.Entries = append(p.Entries, e)
	if n := slices.IndexFunc(p.Counts, func(c Count) bool { return c.What == e.StatusLabel }); n >= 0 {
		p.Counts[n].N++
		return
	}
	p.Counts = append(p.Counts, Count{e.StatusLabel, 1})
}

func newEntry(e inventoryview.Entry, blind bool, now time.Time) Entry {
	out := Entry{Entry: e, StatusExplanation: e.ExplainStatus(remedy.FormatPlainCommand), StatusLabel: string(e.Status), Tone: inventoryTones[e.Status]}
	if e.Customization != nil {
		out.Age = PastMoment(e.Customization.CreationTimestamp.Time, now)
	}
	switch {
	case e.Pool == "": // of a pool's words none is about it
		out.StatusExplanation = inventoryview.StatusExplanation{}
	case e.Status == "":
		out.StatusLabel, out.Entry.Message = notChecked, ""
	case blind && e.Claim == "" && (e.Status == hivev1.InventoryToBeDeleted || e.Status == hivev1.InventoryToBeUpdated):
		out.Remedy = []remedy.Remedy{{Text: "This status lasts while the cluster is claimed. You do not have permission to see whether it is.", Wait: true}}
	}
	return out
}

// inventoryTones are those of statuses. One that is Reserved has none: it does its duty.
var inventoryTones = map[hivev1.InventoryStatus]string{
	"":                                    toneWait,
	hivev1.InventoryAvailable:             toneGood,
	hivev1.InventoryToBeUpdated:           toneWait,
	hivev1.InventoryUnavailable:           toneWait,
	hivev1.InventoryToBeDeleted:           toneDeleting,
	hivev1.InventoryBrokenByConfiguration: toneBad,
	hivev1.InventoryBrokenByCloud:         toneBad,
	hivev1.InventoryMissing:               toneBad,
}
