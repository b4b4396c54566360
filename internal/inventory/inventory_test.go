package inventory

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// books reads "a Available 3, b Reserved 2 by p-1" and so on.
func (p Plan) String() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(p.Entries)) {
		e := p.Entries[name]
		words := fmt.Sprintf("%s %s %d", name, e.Status, e.Attempts)
		if e.Cluster != "" {
			words += " by " + e.Cluster
		}
		parts = append(parts, words)
	}
	add := func(what string, names []string) {
		if len(names) > 0 {
			parts = append(parts, what+" "+strings.Join(names, " "))
		}
	}
	add("free", p.Free)
	add("outdated", slices.Sorted(maps.Keys(p.Outdated)))
	add("withdrawn", slices.Sorted(maps.Keys(p.Withdrawn)))
	add("displaced", slices.Sorted(maps.Keys(p.Displaced)))
	add("homeless", p.Unassigned)
	for _, name := range slices.Sorted(maps.Keys(p.Assigned)) {
		parts = append(parts, name+" in "+p.Assigned[name])
	}
	return strings.Join(parts, ", ")
}

func free(version string) Customization { return Customization{Version: version} }
func heldBy(cluster, version string) Customization {
	return Customization{Version: version, Holder: cluster}
}

// of is a cluster of the pool that was made with a.
func of(name, version string) Cluster {
	return Cluster{Name: name, Customization: "a", Version: version}
}

func TestKeep(t *testing.T) {
	const full = MaxAttempts
	for name, tc := range map[string]struct {
		s    Snapshot
		want string
	}{
		"all are free: in the order of the list": {
			Snapshot{Listed: []string{"b", "a"}, Customizations: map[string]Customization{"a": free("1"), "b": free("1")}},
			"a Available 3, b Available 3, free b a",
		},
		"one that has failed is taken last": {
			Snapshot{
				Listed: []string{"a", "b"}, Customizations: map[string]Customization{"a": free("1"), "b": free("1")},
				Recorded: map[string]Entry{"a": {Version: "1", Attempts: 2}},
			},
			"a Available 2, b Available 3, free b a",
		},
		"one of ours": {
			Snapshot{Listed: []string{"a"}, Customizations: map[string]Customization{"a": heldBy("p-1", "1")}, Clusters: []Cluster{of("p-1", "1")}},
			"a Reserved 3 by p-1",
		},
		"another pool's": {
			Snapshot{Listed: []string{"a"}, Customizations: map[string]Customization{"a": heldBy("q-1", "1")}},
			"a Unavailable 3",
		},
		"one that does not exist": {
			Snapshot{Listed: []string{"a"}},
			"a Missing 3",
		},
		"one that does not apply": {
			Snapshot{Listed: []string{"a"}, Customizations: map[string]Customization{"a": {Version: "1", Fault: "no such path"}}},
			"a BrokenByConfiguration 3",
		},
		"one that does not apply is in use": {
			Snapshot{Listed: []string{"a"}, Customizations: map[string]Customization{"a": {Version: "1", Holder: "p-1", Fault: "no such path"}}, Clusters: []Cluster{of("p-1", "1")}},
			"a Reserved 3 by p-1",
		},
		"a failure is counted": {
			Snapshot{
				Listed: []string{"a"}, Customizations: map[string]Customization{"a": heldBy("p-1", "1")},
				Recorded: map[string]Entry{"a": {Version: "1", Attempts: full, Cluster: "p-1"}},
				Clusters: []Cluster{{Name: "p-1", Customization: "a", Version: "1", Failed: true}},
			},
			"a Reserved 2 by p-1",
		},
		"and counted once": {
			Snapshot{
				Listed: []string{"a"}, Customizations: map[string]Customization{"a": heldBy("p-1", "1")},
				Recorded: map[string]Entry{"a": {Version: "1", Attempts: 2, Cluster: "p-1", Failed: "p-1"}},
				Clusters: []Cluster{{Name: "p-1", Customization: "a", Version: "1", Failed: true}},
			},
			"a Reserved 2 by p-1",
		},
		"the last failure": {
			Snapshot{
				Listed: []string{"a"}, Customizations: map[string]Customization{"a": heldBy("p-1", "1")},
				Recorded: map[string]Entry{"a": {Version: "1", Attempts: 1, Cluster: "p-1", Failed: "p-0"}},
				Clusters: []Cluster{{Name: "p-1", Customization: "a", Version: "1", Failed: true}},
			},
			"a BrokenByCloud 0 by p-1",
		},
		"used up": {
			Snapshot{
				Listed: []string{"a"}, Customizations: map[string]Customization{"a": free("1")},
				Recorded: map[string]Entry{"a": {Version: "1", Attempts: 0, Failed: "p-1"}},
			},
			"a BrokenByCloud 0",
		},
		"used up, and changed": {
			Snapshot{
				Listed: []string{"a"}, Customizations: map[string]Customization{"a": free("2")},
				Recorded: map[string]Entry{"a": {Version: "1", Attempts: 0, Failed: "p-1"}},
			},
			"a Available 3, free a",
		},
		"missing, and made again as it was": {
			Snapshot{
				Listed: []string{"a"}, Customizations: map[string]Customization{"a": free("1")},
				Recorded: map[string]Entry{"a": {Version: "1", Status: hivev1.InventoryMissing, Attempts: 1, Failed: "p-1"}},
			},
			"a Available 3, free a",
		},
		"a success starts over": {
			Snapshot{
				Listed: []string{"a"}, Customizations: map[string]Customization{"a": heldBy("p-2", "1")},
				Recorded: map[string]Entry{"a": {Version: "1", Attempts: 1, Failed: "p-1"}},
				Clusters: []Cluster{{Name: "p-2", Customization: "a", Version: "1", Installed: true}},
			},
			"a Reserved 3 by p-2",
		},
		"changed under its cluster": {
			Snapshot{Listed: []string{"a"}, Customizations: map[string]Customization{"a": heldBy("p-1", "2")}, Clusters: []Cluster{of("p-1", "1")}},
			"a ToBeUpdated 3 by p-1, outdated p-1",
		},
		"changed under a claimed cluster": {
			Snapshot{
				Listed: []string{"a"}, Customizations: map[string]Customization{"a": heldBy("p-1", "2")},
				Clusters: []Cluster{{Name: "p-1", Customization: "a", Version: "1", Claimed: true}},
			},
			"a ToBeUpdated 3 by p-1",
		},
		"failures before a change do not count after it": {
			Snapshot{
				Listed: []string{"a"}, Customizations: map[string]Customization{"a": free("2")},
				Recorded: map[string]Entry{"a": {Version: "1", Attempts: 1, Cluster: "p-1", Failed: "p-1"}},
			},
			"a Available 3, free a",
		},
		"taken off the list, free": {
			Snapshot{Customizations: map[string]Customization{"a": free("1")}, Recorded: map[string]Entry{"a": {Version: "1", Attempts: 3}}},
			"",
		},
		"taken off the list, in use": {
			Snapshot{Listed: []string{"b"}, Customizations: map[string]Customization{"a": heldBy("p-1", "1"), "b": free("1")}, Clusters: []Cluster{of("p-1", "1")}},
			"a ToBeDeleted 3 by p-1, b Available 3, free b, withdrawn p-1",
		},
		"the whole list taken away, in use": {
			Snapshot{Customizations: map[string]Customization{"a": heldBy("p-1", "1")}, Clusters: []Cluster{of("p-1", "1")}},
			"a ToBeDeleted 3 by p-1, outdated p-1",
		},
		"taken off the list, claimed": {
			Snapshot{
				Customizations: map[string]Customization{"a": heldBy("p-1", "1")},
				Clusters:       []Cluster{{Name: "p-1", Customization: "a", Version: "1", Claimed: true}},
			},
			"a ToBeDeleted 3 by p-1",
		},
		"being deleted, in use": {
			Snapshot{Listed: []string{"a"}, Customizations: map[string]Customization{"a": {Version: "1", Holder: "p-1", Deleting: true}}, Clusters: []Cluster{of("p-1", "1")}},
			"a ToBeDeleted 3 by p-1, withdrawn p-1",
		},
		"being deleted, free": {
			Snapshot{Listed: []string{"a"}, Customizations: map[string]Customization{"a": {Version: "1", Deleting: true}}},
			"a Missing 3",
		},
		"two clusters on one": {
			Snapshot{Listed: []string{"a"}, Customizations: map[string]Customization{"a": heldBy("p-2", "1")}, Clusters: []Cluster{of("p-1", "1"), of("p-2", "1")}},
			"a Reserved 3 by p-2, displaced p-1",
		},
		"two clusters on one, the claimed one stays": {
			Snapshot{
				Listed: []string{"a"}, Customizations: map[string]Customization{"a": heldBy("p-2", "1")},
				Clusters: []Cluster{{Name: "p-1", Customization: "a", Version: "1", Claimed: true}, of("p-2", "1")},
			},
			"a Reserved 3 by p-2",
		},
		"a name keeps what is recorded for it": {
			Snapshot{
				Listed: []string{"a", "b"}, Customizations: map[string]Customization{"a": free("1"), "b": free("1")},
				Recorded: map[string]Entry{"b": {Version: "1", Attempts: 3, Cluster: "p-1"}}, Pending: []string{"p-1"},
			},
			"a Available 3, b Reserved 3 by p-1, free a, p-1 in b",
		},
		"also when it is held for it": {
			Snapshot{
				Listed: []string{"a", "b"}, Customizations: map[string]Customization{"a": free("1"), "b": heldBy("p-1", "1")},
				Recorded: map[string]Entry{"b": {Version: "1", Attempts: 3, Cluster: "p-1"}}, Pending: []string{"p-1"},
			},
			"a Available 3, b Reserved 3 by p-1, free a, p-1 in b",
		},
		"also when it was taken off the list: it may be on its way": {
			Snapshot{
				Listed: []string{"a"}, Customizations: map[string]Customization{"a": free("1"), "b": free("1")},
				Recorded: map[string]Entry{"b": {Version: "1", Attempts: 3, Cluster: "p-1"}}, Pending: []string{"p-1"},
			},
			"a Available 3, b ToBeDeleted 3 by p-1, free a, p-1 in b",
		},
		"a name whose customization somebody else took gets another": {
			Snapshot{
				Listed: []string{"a", "b"}, Customizations: map[string]Customization{"a": free("1"), "b": heldBy("q-1", "1")},
				Recorded: map[string]Entry{"b": {Version: "1", Attempts: 3, Cluster: "p-1"}}, Pending: []string{"p-1"},
			},
			"a Reserved 3 by p-1, b Unavailable 3, p-1 in a",
		},
		"or none": {
			Snapshot{
				Listed: []string{"b"}, Customizations: map[string]Customization{"b": heldBy("q-1", "1")},
				Recorded: map[string]Entry{"b": {Version: "1", Attempts: 3, Cluster: "p-1"}}, Pending: []string{"p-1"},
			},
			"b Unavailable 3, homeless p-1",
		},
		"a lease of ours that lingers": {
			Snapshot{Listed: []string{"a"}, Customizations: map[string]Customization{"a": heldBy("p-1", "1")}, Recorded: map[string]Entry{"a": {Version: "1", Attempts: 3, Cluster: "p-1"}}},
			"a Unavailable 3",
		},
		"listed twice": {
			Snapshot{Listed: []string{"a", "a"}, Customizations: map[string]Customization{"a": free("1")}},
			"a Available 3, free a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Decide(tc.s)
			if got.String() != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			again := tc.s
			again.Recorded = got.Entries
			if second := Decide(again); second.String() != got.String() {
				t.Errorf("the second time it is\n     %s\nwant %s", second, got)
			}
		})
	}
}

func TestSummary(t *testing.T) {
	entries := func(statuses ...hivev1.InventoryStatus) (Plan, []string) {
		b, listed := Plan{Entries: map[string]Entry{}}, []string{}
		for i, s := range statuses {
			name := string(rune('a' + i))
			b.Entries[name], listed = Entry{Status: s, Message: "why"}, append(listed, name)
		}
		return b, listed
	}
	for name, tc := range map[string]struct {
		size int
		of   []hivev1.InventoryStatus
		want string
	}{
		"all is well":       {2, []hivev1.InventoryStatus{"Available", "Reserved"}, "Valid: "},
		"smaller than size": {3, []hivev1.InventoryStatus{"Available", "Reserved"}, "TooSmall: 2 of 2 can be used, and the pool's size is 3: add customizations, or lower size"},
		"broken": {
			1,
			[]hivev1.InventoryStatus{"Available", "BrokenByConfiguration", "Missing", "BrokenByCloud"},
			"Invalid: broken by cloud: d; broken by configuration: b (why); missing: c",
		},
		"broken, and smaller than size": {
			2,
			[]hivev1.InventoryStatus{"ToBeUpdated", "Missing"},
			"Invalid: missing: b; 1 of 2 can be used, and the pool's size is 2: add customizations, or lower size",
		},
		"others have it": {1, []hivev1.InventoryStatus{"Unavailable"}, "TooSmall: 0 of 1 can be used, and the pool's size is 1: add customizations, or lower size"},
	} {
		t.Run(name, func(t *testing.T) {
			b, listed := entries(tc.of...)
			reason, message := b.ValidCondition(listed, tc.size)
			if got := reason + ": " + message; got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// A customization says BrokenByCloud of its last cluster: the pool names it, too.
func TestTheSummaryNamesWhatIsTriedAgain(t *testing.T) {
	b := Plan{Entries: map[string]Entry{
		"a": {Status: hivev1.InventoryReserved, Attempts: 2, Failed: "p-1"}, "b": {Status: hivev1.InventoryAvailable, Attempts: 1, Failed: "p-2"}, "c": {Status: hivev1.InventoryAvailable, Attempts: 3},
	}}
	reason, message := b.ValidCondition([]string{"c", "b", "a"}, 3)
	if want := "the last cluster failed to install with a (attempts left: 2), b (attempts left: 1)"; reason != hivev1.ReasonInventoryValid || message != want {
		t.Errorf("%s: %s", reason, message)
	}
}

// Waiting for it to become free would take forever.
func TestAnothersThatIsBeingDeletedIsToBeTakenOffTheList(t *testing.T) {
	s := Snapshot{Listed: []string{"a"}, Customizations: map[string]Customization{"a": {Version: "1", Holder: "q-1", Deleting: true}}}
	e := Decide(s).Entries["a"]
	if e.Status != hivev1.InventoryUnavailable || !strings.Contains(e.Message, "q-1") || !strings.Contains(e.Message, "remove it from the list") {
		t.Errorf("it is %+v", e)
	}
}

// What was said of the last cluster is not said of the next.
func TestAReservedEntryHasNoMessage(t *testing.T) {
	b := Decide(Snapshot{
		Listed: []string{"a"}, Customizations: map[string]Customization{"a": free("1")},
		Recorded: map[string]Entry{"a": {Version: "1", Attempts: 2, Failed: "p-1", Failure: "no room"}},
	})
	if b.Entries["a"].Message == "" {
		t.Error("while it is free, it does not tell of the failure")
	}
	if b.ReserveFor("p-2"); b.Entries["a"].Message != "" {
		t.Errorf("it is %+v", b.Entries["a"])
	}
}
