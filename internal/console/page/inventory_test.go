package page

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/explain/inventoryview"
)

func stocked(name string, entries map[string]hivev1.InventoryEntryStatus) hivev1.ClusterPool {
	p := hivev1.ClusterPool{ObjectMeta: made("default", name, time.Hour)}
	p.Status.Inventory = entries
	return p
}

func TestAnInventory(t *testing.T) {
	leased := hivev1.ClusterDeploymentCustomization{ObjectMeta: made("default", "lone", 2*time.Hour)}
	leased.Status.ClusterDeploymentRef = &corev1.ObjectReference{Namespace: "dev-9", Name: "dev-9"}
	typo := hivev1.ClusterDeploymentCustomization{ObjectMeta: made("default", "typo", 3*time.Hour)}
	bare := hivev1.ClusterPool{ObjectMeta: made("default", "bare", time.Hour)}
	listed := stocked("dev", map[string]hivev1.InventoryEntryStatus{
		"typo": {Status: hivev1.InventoryBrokenByConfiguration, Attempts: 3, Message: "there is no such path"},
		"used": {Status: hivev1.InventoryReserved, Attempts: 3, ClusterDeployment: &hivev1.ClusterDeploymentReference{Name: "dev-1"}},
		"gone": {Status: hivev1.InventoryMissing, Attempts: 2},
	})
	listed.Spec.Inventory = hivev1.Inventory{{Name: "typo"}, {Name: "late"}}
	s := &inventoryview.Objects{Pools: []hivev1.ClusterPool{listed, bare}, Customizations: []hivev1.ClusterDeploymentCustomization{typo, leased}}
	page := NewInventory(s, false, noon)
	var got []string
	for _, p := range page.Pools {
		got = append(got, fmt.Sprint(p.Link, " ", p.Counts))
		for _, e := range p.Entries {
			got = append(got, strings.Join([]string{e.Name, e.StatusLabel, e.Tone, e.Cluster, e.Tries(), e.Age.Text, e.Meaning, e.Entry.Message, fmt.Sprint(len(e.Remedy))}, "|"))
		}
	}
	for _, e := range page.Unlisted {
		got = append(got, strings.Join([]string{e.Name, e.UsedBy, e.Age.Text, fmt.Sprint(len(e.Remedy))}, "|"))
	}
	want := []string{
		"/pools/default/dev [{BrokenByConfiguration 1} {Not checked 1} {Missing 1} {Reserved 1}]",
		"typo|BrokenByConfiguration|bad||3/3|3h|its patches do not apply to this pool's install-config|there is no such path|3",
		"late|Not checked|wait||||the pool has not checked it yet||1",
		"gone|Missing|bad||2/3||in spec.inventory, but it does not exist or is being deleted||2",
		"used|Reserved||dev-1|3/3||a cluster of this pool uses it, or is about to||0",
		"lone|cluster dev-9, which is about to be created, or was deleted|120m|0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if page.Empty || !page.HasPools {
		t.Errorf("%+v", page)
	}
}

func TestAnEmptyInventorySaysSo(t *testing.T) {
	if p := NewInventory(&inventoryview.Objects{}, false, noon); !p.Empty || p.HasPools {
		t.Errorf("%+v", p)
	}
	if p := NewInventory(&inventoryview.Objects{Pools: []hivev1.ClusterPool{stocked("dev", nil)}}, false, noon); !p.Empty || !p.HasPools {
		t.Errorf("%+v", p)
	}
}

// Without permission to see clusters, the page must not claim that a cluster is unclaimed.
func TestClaimsThatCannotBeSeenAreNotDenied(t *testing.T) {
	for blind, want := range map[bool]string{
		false: "Nothing: the pool replaces the cluster.",
		true:  "This status lasts while the cluster is claimed. You do not have permission to see whether it is.",
	} {
		p := stocked("dev", map[string]hivev1.InventoryEntryStatus{
			"a": {Status: hivev1.InventoryToBeUpdated, ClusterDeployment: &hivev1.ClusterDeploymentReference{Name: "dev-1"}},
		})
		got := NewInventory(&inventoryview.Objects{Pools: []hivev1.ClusterPool{p}}, blind, noon).Pools[0].Entries[0].Remedy
		if len(got) != 1 || got[0].Text != want {
			t.Errorf("%+v, want %s", got, want)
		}
	}
}
