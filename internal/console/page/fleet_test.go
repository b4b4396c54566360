package page

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/explain/fleetplan"
	"hotspare.io/hotspare/internal/fleet/scaling"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func made(namespace, name string, ago time.Duration) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: metav1.NewTime(noon.Add(-ago))}
}

// fleetHub returns a hub with region fleet/laptop. Its data planes have four units of type dev. The
// limit is six units and the slack is one.
func fleetHub() *fleetplan.Hub {
	limit, perUnit := int32(6), resource.MustParse("1")
	r := &v1alpha1.FleetRegion{ObjectMeta: made("fleet", "laptop", time.Hour)}
	r.Spec.Provider, r.Spec.Region = "local", "laptop"
	r.Spec.InstanceTypes = []v1alpha1.RegionType{{Name: "dev", SlackUnits: 1, Limit: &limit}}
	r.Spec.ClusterSource.Claim = &v1alpha1.ClaimSource{Pools: []v1alpha1.PoolSource{{PoolRef: v1alpha1.PoolReference{Name: "spares"}}}}
	t := &v1alpha1.InstanceType{ObjectMeta: made("", "dev", time.Hour)}
	t.Spec.Sizes = []v1alpha1.InstanceSize{{Name: "x1", Units: 1}, {Name: "x2", Units: 2}}
	t.Spec.NodesPerUnit = &perUnit
	t.Spec.NodePools = []v1alpha1.NodePool{{Platform: "local", MaxNodes: 4}}
	return &fleetplan.Hub{
		Regions: []*v1alpha1.FleetRegion{r}, Types: []*v1alpha1.InstanceType{t},
		Pools: []*hivev1.ClusterPool{{ObjectMeta: made("fleet", "spares", time.Hour)}},
	}
}

func addPlane(h *fleetplan.Hub, name string, phase v1alpha1.DataPlanePhase, units int32) *v1alpha1.DataPlane {
	dp := &v1alpha1.DataPlane{ObjectMeta: made("fleet", name, 30*time.Minute)}
	dp.Spec.Provider, dp.Spec.Region, dp.Spec.InstanceTypes = "local", "laptop", []string{"dev"}
	dp.Status.Phase = phase
	if units > 0 {
		dp.Status.Capacity = map[string]v1alpha1.TypeCapacity{"dev": {MaxUnits: units, MaxNodes: units}}
	}
	h.Planes = append(h.Planes, dp)
	return dp
}

func addInstance(h *fleetplan.Hub, name, size, plane string) *v1alpha1.ServiceInstance {
	i := &v1alpha1.ServiceInstance{ObjectMeta: made("team-a", name, time.Minute)}
	i.Spec.Provider, i.Spec.Region, i.Spec.Type, i.Spec.Size = "local", "laptop", "dev", size
	i.Status.DataPlaneName = plane
	h.Instances = append(h.Instances, i)
	return i
}

// busy returns that hub with two data planes, one of them in flight, and instances that do not all
// fit.
func busy() *fleetplan.Hub {
	h := fleetHub()
	addPlane(h, "a", v1alpha1.PhaseReady, 4)
	addPlane(h, "b", v1alpha1.PhaseProvisioning, 0)
	addInstance(h, "x0", "x2", "a")
	addInstance(h, "x1", "x1", "a")
	addInstance(h, "x2", "x2", "")
	return h
}

func figures(t Type) string {
	return fmt.Sprintf("%d used, %d free, %d in flight, %d pending", t.UsedUnits, t.ReadyFreeUnits, t.InFlightUnits, t.PendingUnits)
}

func TestARegionsFigures(t *testing.T) {
	for name, c := range map[string]struct {
		hub  *fleetplan.Hub
		want string
	}{
		"an empty region": {fleetHub(), "0 used, 0 free, 0 in flight, 0 pending"},
		"what comes is told apart from what is free, and what finds no place is asked for": {
			busy(), "3 used, 1 free, 4 in flight, 2 pending",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := NewFleet(c.hub, "", false, noon)
			if got := figures(f.Regions[0].Types[0]); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func TestARegionIsToldAsTheCommandLineDoes(t *testing.T) {
	f := NewFleet(busy(), "fleet", false, noon)
	r := f.Regions[0]
	var got []string
	got = append(got, r.Link, r.Brief)
	for _, c := range r.Phases {
		got = append(got, fmt.Sprintf("%d %s", c.N, c.What))
	}
	for _, p := range r.Planes {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s %s %s: %s %s", p.Name, p.Tone, p.PhaseAge.Text, p.Removal, p.RemovalReason, p.Outcome, p.TimesOut.Text)))
	}
	for _, i := range r.Waiting {
		got = append(got, fmt.Sprintf("%s waits %s: %s", i.Name, i.Age.Text, i.Decision.Reason))
	}
	for _, do := range r.Waits {
		got = append(got, strings.Join(do.For, " ")+": "+do.Text)
	}
	want := []string{
		"/fleet/fleet/laptop", "waiting for 1 data plane; 1 instance without a place",
		"1 Provisioning", "1 Ready",
		"b wait 30m  : its claim is waiting for a running cluster in 90m",
		"a good 30m keep NotEmpty: 2 instances on it",
		"team-a/x2 waits 60s: NoCapacity",
		"team-a/x2: 1 data plane is in flight: b.",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(r.Actions) > 0 || f.Recorded {
		t.Errorf("to do: %+v", r.Actions)
	}
}

func TestOneRegionIsFoundByNamespaceAndName(t *testing.T) {
	h := busy()
	if f, found := NewSingleRegion(h, "fleet", "laptop", false, noon); !found || f.Single == nil || f.Single.Name != "laptop" {
		t.Errorf("%+v", f)
	}
	for _, at := range [][2]string{{"fleet", "moon"}, {"default", "laptop"}} {
		if _, found := NewSingleRegion(h, at[0], at[1], false, noon); found {
			t.Errorf("%v is found", at)
		}
	}
}

// A viewer without permission to see instances would see both data planes as empty.
func TestWhoSeesLittleIsToldWhatIsWritten(t *testing.T) {
	h := busy()
	h.Instances = nil
	h.Planes[0].Status.Capacity["dev"] = v1alpha1.TypeCapacity{MaxUnits: 4, MaxNodes: 4, UsedUnits: 3}
	h.Regions[0].Status.Plan = "waiting for 1 data plane"
	h.Regions[0].Status.InstanceTypes = []v1alpha1.RegionTypeStatus{
		{Name: "dev", DataPlanes: 2, InFlight: 1, MaxUnits: 8, UsedUnits: 3, FreeUnits: 5, PendingUnits: 2},
	}
	f := NewFleet(h, "", true, noon)
	r := f.Regions[0]
	if got, want := figures(r.Types[0]), "3 used, 1 free, 4 in flight, 2 pending"; got != want || !f.Recorded {
		t.Errorf("%s, want %s", got, want)
	}
	for _, p := range r.Planes {
		if p.Removal != "" {
			t.Errorf("of %s it is decided: %s", p.Name, p.Removal)
		}
	}
}

func TestDataPlanesOfNoRegionAreOthers(t *testing.T) {
	h := busy()
	addPlane(h, "c", v1alpha1.PhaseReady, 4).Spec.Region = "moon"
	addPlane(h, "d", v1alpha1.PhaseReady, 4).Namespace = "team-b"
	names := func(f Fleet) (got []string) {
		for _, o := range f.Others {
			got = append(got, o.Namespace+"/"+o.Name)
		}
		return got
	}
	if diff := cmp.Diff([]string{"fleet/c", "team-b/d"}, names(NewFleet(h, "", false, noon))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"fleet/c"}, names(NewFleet(h, "fleet", false, noon))); diff != "" {
		t.Error(diff)
	}
}

// bar describes a bar: each segment with its position and width.
func (b Bar) inWords() string {
	var words []string
	for _, p := range b.Segments {
		words = append(words, fmt.Sprintf("%s %s+%s", p.What, p.X, p.W))
	}
	for _, m := range b.Marks {
		words = append(words, m.What+" "+m.X)
	}
	return strings.Join(words, ", ")
}

func TestBars(t *testing.T) {
	six, far := 6, 1000
	for name, c := range map[string]struct {
		t      fleetplan.Type
		coming int
		want   string
	}{
		"nothing is an empty bar": {fleetplan.Type{}, 0, ""},
		"parts follow each other, and fill it": {
			fleetplan.Type{TypeReport: scaling.TypeReport{UsedUnits: 3, FreeUnits: 5, PendingUnits: 2}, SlackUnits: 1},
			4,
			"Used 0%+30%, Free 30%+10%, InFlight 40%+40%, Pending 80%+20%, Slack 70%",
		},
		"a limit beyond what there is leaves room": {
			fleetplan.Type{TypeReport: scaling.TypeReport{UsedUnits: 1, FreeUnits: 2}, Limit: &six},
			0,
			"Used 0%+16.666666%, Free 16.666666%+33.333332%, Limit 100%",
		},
		"a limit below it is a line within": {
			fleetplan.Type{TypeReport: scaling.TypeReport{UsedUnits: 4, FreeUnits: 4}, Limit: &six}, 0, "Used 0%+50%, Free 50%+50%, Limit 75%",
		},
		"a far limit is no more than a number": {
			fleetplan.Type{TypeReport: scaling.TypeReport{UsedUnits: 1, FreeUnits: 3}, Limit: &far}, 0, "Used 0%+25%, Free 25%+75%",
		},
		"more slack than there is free is a line at the beginning": {
			fleetplan.Type{TypeReport: scaling.TypeReport{FreeUnits: 2}, SlackUnits: 5}, 0, "Free 0%+100%, Slack 0%",
		},
		"what comes is never more than what is free: the agent of one is silent": {
			fleetplan.Type{TypeReport: scaling.TypeReport{UsedUnits: 2, FreeUnits: 2}}, 4, "Used 0%+50%, InFlight 50%+50%",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := newTypeBar(c.t, c.coming).inWords(); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// Screen readers get the same information.
func TestABarSaysWhatItShows(t *testing.T) {
	six := 6
	b := newTypeBar(fleetplan.Type{TypeReport: scaling.TypeReport{Name: "dev", UsedUnits: 3, FreeUnits: 5, PendingUnits: 2}, SlackUnits: 1, Limit: &six}, 4)
	if got, want := b.Label, "dev: 3 units used, 1 free, 4 in flight, 2 pending, slack 1, limit 6."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := newRoomBar(fleetplan.Room{Type: "dev", MaxUnits: 4, UsedUnits: 3}).Label, "dev: 3 of 4 units used."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestUnitsAreTicksWhileTheyCanBeToldApart(t *testing.T) {
	for units, want := range map[int]int{0: 0, 1: 0, 4: 3, 40: 39, 41: 0} {
		if got := len(newRoomBar(fleetplan.Room{MaxUnits: units}).Ticks); got != want {
			t.Errorf("%d ticks for %d units, want %d", got, units, want)
		}
	}
}

// A data plane can use more units than it has, for example after it lost nodes. No segment has a
// negative width.
func TestARoomThatIsOverfull(t *testing.T) {
	if got, want := newRoomBar(fleetplan.Room{MaxUnits: 2, UsedUnits: 3}).inWords(), "Used 0%+100%"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
