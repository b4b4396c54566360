package page

import (
	"slices"
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/explain/inventoryview"
	"hotspare.io/hotspare/internal/explain/remedy"
)

// Inventory is the content of the page of inventories. Its texts are those of hotspare inventory.
type Inventory struct {
	Pools []InventoryPool
	// Unlisted are the customizations that no pool lists.
	Unlisted []Entry
	// Empty is set if there are no entries. HasPools is set if there are pools, with or without an
	// inventory.
	Empty, HasPools bool
}

// An InventoryPool is a pool with an inventory.
type InventoryPool struct {
	Namespace, Name, Link string
	// Counts has the number of entries by status.
	Counts  []Count
	Entries []Entry
}

// An Entry is a customization in a pool's inventory, or one that no pool lists.
type Entry struct {
	inventoryview.Entry
	inventoryview.StatusExplanation
	// StatusLabel is the status as the page shows it; entries without a status have a label, too.
	StatusLabel string
	Tone        string
	// Age is the age of the customization; zero if it does not exist.
	Age Moment
	// UsedBy describes the holder of the lease; it is set only for customizations that no pool
	// lists.
	UsedBy string
}

// notChecked is the label of an entry that its pool has not checked yet.
const notChecked = "Not checked"

// NewInventory describes inventories. clustersHidden is set if the viewer may not see clusters, so
// that the claim of an entry's cluster is unknown.
func NewInventory(s *inventoryview.Objects, clustersHidden bool, now time.Time) Inventory {
	slices.SortFunc(s.Pools, func(a, b hivev1.ClusterPool) int { return compareByKey(&a, &b) })
	slices.SortFunc(s.Customizations, func(a, b hivev1.ClusterDeploymentCustomization) int { return compareByKey(&a, &b) })
	out := Inventory{HasPools: len(s.Pools) > 0}
	for _, e := range s.Entries() {
		one := newEntry(e, clustersHidden, now)
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

func newEntry(e inventoryview.Entry, clustersHidden bool, now time.Time) Entry {
	out := Entry{Entry: e, StatusExplanation: e.ExplainStatus(remedy.FormatPlainCommand), StatusLabel: string(e.Status), Tone: inventoryTones[e.Status]}
	if e.Customization != nil {
		out.Age = PastMoment(e.Customization.CreationTimestamp.Time, now)
	}
	switch {
	case e.Pool == "": // the explanation of a status is about a pool's entry
		out.StatusExplanation = inventoryview.StatusExplanation{}
	case e.Status == "":
		out.StatusLabel, out.Entry.Message = notChecked, ""
	case clustersHidden && e.Claim == "" && (e.Status == hivev1.InventoryToBeDeleted || e.Status == hivev1.InventoryToBeUpdated):
		out.Remedy = []remedy.Remedy{{Text: "This status lasts while the cluster is claimed. You do not have permission to see whether it is.", Wait: true}}
	}
	return out
}

// inventoryTones maps statuses to tones. Reserved has none: it is the normal status of an entry in
// use.
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
