package claim

import (
	"strings"
	"testing"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

func TestAPoolThatIsTooSmallForASet(t *testing.T) {
	for name, c := range map[string]struct {
		spec  hivev1.ClusterPoolSpec
		count int
		want  string
	}{
		"no limit":                     {hivev1.ClusterPoolSpec{}, 100, ""},
		"as large as maxSize":          {hivev1.ClusterPoolSpec{MaxSize: new(int32(3))}, 3, ""},
		"larger than maxSize":          {hivev1.ClusterPoolSpec{MaxSize: new(int32(3))}, 4, "pool dev can have at most 3 clusters, because its maxSize is 3, and 4 were requested"},
		"a maxSize of 0":               {hivev1.ClusterPoolSpec{MaxSize: new(int32(0))}, 1, "pool dev can have at most 0 clusters, because its maxSize is 0, and 1 were requested"},
		"as large as the inventory":    {hivev1.ClusterPoolSpec{Inventory: make([]hivev1.InventoryEntry, 2)}, 2, ""},
		"larger than the inventory":    {hivev1.ClusterPoolSpec{Inventory: make([]hivev1.InventoryEntry, 1)}, 2, "pool dev can have at most 1 cluster, because its inventory has 1 entry, and 2 were requested"},
		"the inventory is the smaller": {hivev1.ClusterPoolSpec{MaxSize: new(int32(9)), Inventory: make([]hivev1.InventoryEntry, 2)}, 3, "pool dev can have at most 2 clusters, because its inventory has 2 entries, and 3 were requested"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &hivev1.ClusterPool{Spec: c.spec}
			p.Name = "dev"
			got := ""
			if err := checkPoolIsLargeEnough(p, c.count); err != nil {
				got, _, _ = strings.Cut(err.Error(), "\n") // the remedy follows
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
