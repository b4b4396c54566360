package v1alpha1_test

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// The seed's example, as it is stored there.
func TestDynamicCapacityInfo(t *testing.T) {
	const text = `{"developer":{"max_nodes":1,"max_units":10,"remaining_units":8},"standard":{"max_nodes":30,"max_units":10,"remaining_units":4}}`
	var info map[string]v1alpha1.DynamicCapacityInfo
	if err := json.Unmarshal([]byte(text), &info); err != nil {
		t.Fatal(err)
	}
	at := metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	var cluster v1alpha1.DataPlane
	cluster.Status.Capacity = map[string]v1alpha1.TypeCapacity{"standard": {MaxUnits: 3, ReservedUnits: 2, ReportedAt: &at}, "gone": {MaxUnits: 1}}
	cluster.SetDynamicCapacityInfo(info)
	want := map[string]v1alpha1.TypeCapacity{
		"standard":  {MaxNodes: 30, MaxUnits: 10, RemainingUnits: 4, UsedUnits: 6, ReservedUnits: 2, ReportedAt: &at},
		"developer": {MaxNodes: 1, MaxUnits: 10, RemainingUnits: 8, UsedUnits: 2},
	}
	if diff := cmp.Diff(want, cluster.Status.Capacity); diff != "" {
		t.Error(diff)
	}
	back, err := json.Marshal(cluster.RetrieveDynamicCapacityInfo())
	if err != nil || string(back) != text {
		t.Errorf("got %s, %v", back, err)
	}
	cluster.RetrieveDynamicCapacityInfo()["standard"] = v1alpha1.DynamicCapacityInfo{}
	if cluster.Status.Capacity["standard"].MaxUnits != 10 {
		t.Error("what was asked for can be changed from outside")
	}
	cluster.SetDynamicCapacityInfo(map[string]v1alpha1.DynamicCapacityInfo{})
	if n := len(cluster.RetrieveDynamicCapacityInfo()); n != 0 {
		t.Errorf("%d are left", n)
	}
}

func TestCapacityInfoRoundTrips(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		info := map[string]v1alpha1.DynamicCapacityInfo{}
		for range r.IntN(4) {
			name := string(rune('a' + r.IntN(26)))
			info[name] = v1alpha1.DynamicCapacityInfo{MaxNodes: r.Int32(), MaxUnits: r.Int32(), RemainingUnits: r.Int32()}
		}
		var d v1alpha1.DataPlane
		d.SetDynamicCapacityInfo(info)
		if diff := cmp.Diff(info, d.RetrieveDynamicCapacityInfo()); diff != "" {
			t.Fatal(diff)
		}
	}
}

// The ratio is data, of any type (fleet Q).
func TestUnitsOnNodes(t *testing.T) {
	for _, tt := range []struct {
		nodesPer, unitsPer string
		nodes, want        int32
	}{
		{"3", "", 30, 10},
		{"0.1", "", 30, 300},
		{"0.1", "", 1, 10},
		{"3", "", 17, 5},
		{"3", "", 2, 0},
		{"100m", "", 3, 30},
		{"", "10", 3, 30},
		{"", "0.5", 3, 1},
		{"1.5", "", 18, 12},
		{"", "", 5, 0},
		{"0", "", 5, 0},
		{"1n", "", 10000, 1 << 30},
	} {
		var s v1alpha1.InstanceTypeSpec
		if tt.nodesPer != "" {
			q := resource.MustParse(tt.nodesPer)
			s.NodesPerUnit = &q
		}
		if tt.unitsPer != "" {
			q := resource.MustParse(tt.unitsPer)
			s.UnitsPerNode = &q
		}
		if got := s.UnitsOn(tt.nodes); got != tt.want {
			t.Errorf("%+v: got %d", tt, got)
		}
	}
}

// Whole zones, always: fleet L.
func TestNodesOfATypeAreRoundedToZones(t *testing.T) {
	four := int32(4)
	for name, tt := range map[string]struct {
		multi       bool
		min         *int32
		max         int32
		least, most int32
	}{
		"one zone":                     {false, nil, 4, 1, 4},
		"one zone with a minimum":      {false, &four, 5, 4, 5},
		"several zones":                {true, nil, 4, 3, 6},
		"several zones with a minimum": {true, &four, 9, 6, 9},
	} {
		s := v1alpha1.InstanceTypeSpec{MultiZone: tt.multi, NodePools: []v1alpha1.NodePool{{Platform: "aws", MinNodes: tt.min, MaxNodes: tt.max}}}
		if least, most, ok := s.Nodes("aws"); !ok || least != tt.least || most != tt.most {
			t.Errorf("%s: %d to %d", name, least, most)
		}
		if _, _, ok := s.Nodes("gcp"); ok {
			t.Errorf("%s: it has nodes where it says nothing of any", name)
		}
	}
}
