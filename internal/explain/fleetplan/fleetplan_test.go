package fleetplan

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
	"hotspare.io/hotspare/internal/explain/remedy"
	"hotspare.io/hotspare/internal/fleet/facts"
	"hotspare.io/hotspare/internal/fleet/scaling"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func born(namespace, name string, ago time.Duration) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: metav1.NewTime(now.Add(-ago))}
}

// small returns a hub with one region in namespace fleet: its type has data planes of four units,
// one of which is kept free, and a limit of six units.
func small() *Hub {
	limit := int32(6)
	r := &v1alpha1.FleetRegion{ObjectMeta: born("fleet", "laptop", time.Hour)}
	r.Spec.Provider, r.Spec.Region = "local", "laptop"
	r.Spec.InstanceTypes = []v1alpha1.RegionType{{Name: "dev", SlackUnits: 1, Limit: &limit}}
	r.Spec.ClusterSource.Claim = &v1alpha1.ClaimSource{Pools: []v1alpha1.PoolSource{{PoolRef: v1alpha1.PoolReference{Name: "spares"}}}}
	t := &v1alpha1.InstanceType{ObjectMeta: born("", "dev", time.Hour)}
	t.Spec.Sizes = []v1alpha1.InstanceSize{{Name: "x1", Units: 1}, {Name: "x2", Units: 2}}
	perUnit := resource.MustParse("1")
	t.Spec.NodesPerUnit = &perUnit
	t.Spec.NodePools = []v1alpha1.NodePool{{Platform: "local", MaxNodes: 4}}
	return &Hub{
		Regions: []*v1alpha1.FleetRegion{r}, Types: []*v1alpha1.InstanceType{t},
		Pools: []*hivev1.ClusterPool{{ObjectMeta: born("fleet", "spares", time.Hour)}},
	}
}

// plane adds a data plane.
func (h *Hub) plane(name string, phase v1alpha1.DataPlanePhase, units int32) *v1alpha1.DataPlane {
	dp := &v1alpha1.DataPlane{ObjectMeta: born("fleet", name, 30*time.Minute)}
	dp.Spec.Provider, dp.Spec.Region, dp.Spec.InstanceTypes = "local", "laptop", []string{"dev"}
	dp.Status.Phase = phase
	if units > 0 {
		dp.Status.Capacity = map[string]v1alpha1.TypeCapacity{"dev": {MaxUnits: units, MaxNodes: units}}
	}
	h.Planes = append(h.Planes, dp)
	return dp
}

// instance adds an instance of a size, on a data plane or on none.
func (h *Hub) instance(name, size, plane string) *v1alpha1.ServiceInstance {
	i := &v1alpha1.ServiceInstance{ObjectMeta: born("team-a", name, time.Minute)}
	i.Spec.Provider, i.Spec.Region, i.Spec.Type, i.Spec.Size = "local", "laptop", "dev", size
	i.Status.DataPlaneName = plane
	h.Instances = append(h.Instances, i)
	return i
}

// laptop returns the view of the region.
func (h *Hub) laptop() Region {
	return h.EvaluateFleet(h.Regions, now, remedy.FormatPlainCommand).Regions[0]
}

func TestARegionIsToldInWords(t *testing.T) {
	for name, c := range map[string]struct {
		make func(*Hub)
		want string
	}{
		"an empty region makes a data plane": {
			func(*Hub) {},
			"creating 1 data plane | a data plane is created | no data plane | more than 1 unit free, and room for the biggest size, 2 units; at most 6 units used",
		},
		"a region with room is settled": {
			func(h *Hub) { h.plane("a", v1alpha1.PhaseReady, 4); h.instance("x", "x1", "a") },
			"settled | no data plane is created | 1 data plane; 1 of 4 units used, 3 free",
		},
		"one in flight is waited for": {
			func(h *Hub) { h.plane("a", v1alpha1.PhaseProvisioning, 0) },
			"waiting for 1 data plane | no data plane is created | 1 data plane in flight; 0 of 4 units used, 4 free",
		},
		"what is placed now counts as used, and what the limit forbids waits": {
			func(h *Hub) {
				h.plane("a", v1alpha1.PhaseReady, 4)
				h.plane("b", v1alpha1.PhaseProvisioning, 0)
				for n := range 4 {
					h.instance(fmt.Sprint("x", n), "x2", "")
				}
			},
			"placing 2 instances; waiting for 1 data plane; 2 instances without a place | no data plane is created | " +
				"2 data planes, 1 of them in flight; 4 of 8 units used, 4 free; 4 units are requested without a place",
		},
		"a dry run makes nothing": {
			func(h *Hub) { h.Regions[0].Spec.ScaleUp.Mode = v1alpha1.ScalingDryRun },
			"settled | a data plane would be created, but spec.scaleUp.mode is DryRun | no data plane",
		},
		"a type that is not known wants nothing that can be told": {
			func(h *Hub) { h.Types = nil },
			`nothing can be done now | no data plane is created | no data plane | `,
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := small()
			c.make(h)
			r := h.laptop()
			got := strings.Join([]string{r.Brief, r.Types[0].Verdict(), r.Types[0].Has(), r.Types[0].Wants()}, " | ")
			if n := strings.Count(c.want, " | "); n < 3 { // its requirements are always the same
				got = strings.TrimSuffix(got, " | more than 1 unit free, and room for the biggest size, 2 units; at most 6 units used")
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWantsNamesEveryBound(t *testing.T) {
	h, most := small(), int32(3)
	rt := &h.Regions[0].Spec.InstanceTypes[0]
	rt.Limit, rt.MinDataPlanes, rt.MaxDataPlanes = nil, 1, &most
	want := "more than 1 unit free, and room for the biggest size, 2 units; at least 1 data plane; at most 3 data planes"
	if got := h.laptop().Types[0].Wants(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Every reason for which an instance waits has a next step.
func TestEveryWaitHasARemedy(t *testing.T) {
	e := Evaluation{Objects: facts.Objects{Region: &v1alpha1.FleetRegion{}}}
	for _, reason := range []scaling.Reason{
		scaling.LimitReached, scaling.TooBig, scaling.Refused, scaling.NotOffered, scaling.UnknownType, scaling.UnknownSize, scaling.PinNotThere,
		scaling.PinUnsuitable, scaling.PlaneIsLeaving, scaling.Unreadable,
	} {
		if do := e.instanceRemedy(&v1alpha1.ServiceInstance{}, scaling.Instance{Type: "dev"}, scaling.Decision{Reason: reason}, remedy.FormatPlainCommand); do == nil {
			t.Errorf("nothing is said to do about %s", reason)
		}
	}
}

// Each case says what to do, and for what.
func TestWhatToDo(t *testing.T) {
	for name, c := range map[string]struct {
		make func(*Hub)
		want string
	}{
		"nothing about a settled region": {func(h *Hub) { h.plane("a", v1alpha1.PhaseReady, 4) }, ""},
		"a pool that is missing is to be made": {
			func(h *Hub) { h.Pools = nil },
			"dev: Create ClusterPool spares, or use another in spec.clusterSource. [hotspare pool create spares --size 2 -n fleet]",
		},
		"one remedy is said once, with all that it is for": {
			func(h *Hub) { h.Pools = nil; h.instance("x", "x1", ""); h.instance("y", "x1", "") },
			"dev, team-a/x, team-a/y: Create ClusterPool spares, or use another in spec.clusterSource. [hotspare pool create spares --size 2 -n fleet]",
		},
		"an instance for which a data plane is created needs time": {func(h *Hub) { h.instance("x", "x1", "") }, "wait for team-a/x: A data plane is being created."},
		"and so does one for which some are in flight": {
			func(h *Hub) { h.plane("a", v1alpha1.PhaseProvisioned, 0); h.instance("x", "x1", "") },
			"wait for team-a/x: 1 data plane is in flight: a.",
		},
		"an unknown size is to be ordered anew": {
			func(h *Hub) { h.plane("a", v1alpha1.PhaseReady, 4); h.instance("odd", "x9", "") },
			"team-a/odd: Delete the instance, and create one of another size. [hotspare -n team-a kubectl delete serviceinstance odd]",
		},
		"data planes that failed may be deleted": {
			func(h *Hub) {
				dp := h.plane("bad", v1alpha1.PhaseFailed, 0)
				at := metav1.NewTime(now.Add(-time.Minute))
				dp.Status.PhaseSince = &at
			},
			"dev: Wait, or retry now by deleting the failed data planes. [hotspare -n fleet kubectl delete dataplane bad]",
		},
		"a silent agent is to be looked after": {
			func(h *Hub) {
				h.plane("b", v1alpha1.PhaseReady, 4)
				silence(h.plane("a", v1alpha1.PhaseReady, 4))
			},
			"a: Its free units are not used until its agent reports again: check the agent. [hotspare -n fleet kubectl describe dataplane a]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := small()
			c.make(h)
			act, wait := h.laptop().ListTasks()
			if diff := cmp.Diff(c.want, strings.TrimSpace(tell("", act)+tell("wait for ", wait))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func tell(before string, tasks []Task) string {
	words := ""
	for _, do := range tasks {
		words += before + strings.Join(do.For, ", ") + ": " + do.Text
		if do.Command != "" {
			words += " [" + do.Command + "]"
		}
		words += "\n"
	}
	return words
}

func lose(dp *v1alpha1.DataPlane) {
	dp.Status.Conditions = append(dp.Status.Conditions, metav1.Condition{
		Type: v1alpha1.DataPlaneReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonClusterGone, Message: "ClusterClaim b does not exist any more, and neither does its cluster.",
	})
}

func TestAWrongReservedSizeIsToldOf(t *testing.T) {
	h := small()
	h.plane("a", v1alpha1.PhaseReady, 4)
	h.Regions[0].Spec.InstanceTypes[0].Reserved = &v1alpha1.Reserved{Count: 1, Size: "x99"}
	act, _ := h.laptop().ListTasks()
	if len(act) != 1 || act[0].Text != `No instance is reserved: type dev has no size "x99". Correct its reserved.size.` {
		t.Errorf("to do: %+v", act)
	}
}

// A lost cluster is the first task.
func TestALostClusterIsTheFirstThingToDo(t *testing.T) {
	h := small()
	h.plane("a", v1alpha1.PhaseFailed, 4)
	lose(h.plane("b", v1alpha1.PhaseReady, 4))
	h.instance("x", "x1", "b")
	r := h.laptop()
	act, _ := r.ListTasks()
	if r.DataPlanes[0].Name != "b" || len(act) == 0 || !strings.Contains(act[0].Text, "Its cluster is deleted or is being deleted") {
		t.Errorf("first is %s, to do: %+v", r.DataPlanes[0].Name, act)
	}
}

func silence(dp *v1alpha1.DataPlane) {
	dp.Status.Conditions = append(dp.Status.Conditions, metav1.Condition{
		Type: v1alpha1.DataPlaneAgentLive, Status: metav1.ConditionFalse, Reason: "Silent", Message: "The agent was last heard of at noon.",
	})
}

func TestTheFateOfADataPlane(t *testing.T) {
	for name, c := range map[string]struct {
		make func(*Hub)
		want string
	}{
		"one that is needed stays": {
			func(h *Hub) { h.plane("a", v1alpha1.PhaseReady, 4) },
			"keep Needed:  0/4: without it, of dev: no data plane has room for the biggest size, 2 units",
		},
		"one that is not is removed": {
			func(h *Hub) {
				h.plane("a", v1alpha1.PhaseReady, 4)
				h.plane("b", v1alpha1.PhaseReady, 4)
				h.instance("x", "x1", "b")
			},
			"remove NotNeeded:  0/4: it is empty, and the other data planes have enough room",
		},
		"one on its way is given up in time": {
			func(h *Hub) { h.plane("a", v1alpha1.PhaseProvisioning, 0) },
			" :  0/4: its claim is waiting for a running cluster; it is marked as failed in 90m",
		},
		"of a silent one that is told too": {
			func(h *Hub) { silence(h.plane("a", v1alpha1.PhaseReady, 4)); h.plane("b", v1alpha1.PhaseReady, 4) },
			"keep ContentsUnknown: silent 0/4: its agent does not report, so it is unknown what is on it: make the agent report again; " +
				"to discard these contents, set spec.discardUnlisted of the DataPlane to true. The agent was last heard of at noon",
		},
		"of one whose cluster is gone": {
			func(h *Hub) { lose(h.plane("b", v1alpha1.PhaseReady, 4)); h.instance("x", "x1", "b") },
			"keep NotEmpty:  1/4: its cluster no longer exists, and 1 instance on it: delete the instances, and create others. ClusterClaim b does not exist any more, and neither does its cluster",
		},
		"somebody's own is not removed": {
			func(h *Hub) { h.plane("a", v1alpha1.PhaseReady, 4).Spec.Ownership = v1alpha1.Registered },
			" Registered:  0/4: it accepts instances",
		},
		"one that failed before it had units shows none": {
			func(h *Hub) { h.plane("a", v1alpha1.PhaseFailed, 0) },
			" :  : it was not Ready in time",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := small()
			c.make(h)
			p := h.laptop().DataPlanes[0]
			verb, reason := p.RemovalDecision()
			got := fmt.Sprintf("%s %s: %s %s: %s", verb, reason, p.AgentState(), p.DescribeUnits(), p.DescribeOutcome(now))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUnitsNameTypesWhenThereAreSeveral(t *testing.T) {
	p := Plane{Rooms: []Room{{"dev", 4, 1}, {"big", 6, 0}}}
	if got, want := p.DescribeUnits(), "dev 1/4, big 0/6"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Each data plane is shown in the view of its region or as another one, in every state of the
// region.
func TestEveryDataPlaneIsToldOf(t *testing.T) {
	for name, c := range map[string]struct {
		make func(*Hub)
		want string
	}{
		"by its region": {func(*Hub) {}, ""},
		"one of no region": {
			func(h *Hub) { h.Planes[0].Spec.Region = "moon" },
			"a : no FleetRegion of its namespace has provider local and region moon, and its cluster is kept",
		},
		"one of another namespace": {
			func(h *Hub) { h.Planes[0].Namespace = "team-b" },
			"a : no FleetRegion of its namespace has provider local and region laptop, and its cluster is kept",
		},
		"one whose region is being deleted": {
			func(h *Hub) { h.Regions[0].DeletionTimestamp = &metav1.Time{Time: now} },
			"a laptop: its region has no plan",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := small()
			h.plane("a", v1alpha1.PhaseReady, 4)
			c.make(h)
			got := ""
			for _, o := range h.ListOtherPlanes(h.EvaluateFleet(h.Regions, now, remedy.FormatPlainCommand), remedy.FormatPlainCommand) {
				got += fmt.Sprintf("%s %s: %s", o.Name, o.FleetRegion, o.Why)
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// The younger of two regions with the same provider and region is parked, and the older is not; a
// region that is being deleted parks none.
func TestTwins(t *testing.T) {
	h := small()
	twin := h.Regions[0].DeepCopy()
	twin.ObjectMeta = born("team-b", "twin", time.Minute)
	h.Regions = append(h.Regions, twin)
	v := h.EvaluateFleet(h.RegionsInNamespace("team-b"), now, remedy.FormatPlainCommand)
	if len(v.Regions) != 1 || !strings.Contains(v.Regions[0].Parked, "fleet/laptop") || v.Regions[0].Types == nil {
		t.Errorf("%+v", v.Regions)
	}
	if v := h.EvaluateFleet(h.RegionsInNamespace("fleet"), now, remedy.FormatPlainCommand); len(v.Regions) != 1 || v.Regions[0].Parked != "" {
		t.Errorf("%+v", v.Regions)
	}
	h.Regions[0].DeletionTimestamp = &metav1.Time{Time: now}
	for _, r := range h.EvaluateFleet(h.RegionsInNamespace(""), now, remedy.FormatPlainCommand).Regions {
		if (r.Parked != "") != (r.Name == "laptop") {
			t.Errorf("%s: %q", r.Name, r.Parked)
		}
	}
}

// The view does not depend on the order of the objects.
func TestOrderDoesNotMatter(t *testing.T) {
	build := func(names ...string) Region {
		h := small()
		for _, n := range names {
			h.plane(n, v1alpha1.PhaseReady, 4)
			h.instance("on-"+n, "x1", n)
			h.instance("new-"+n, "x2", "")
		}
		return h.laptop()
	}
	if diff := cmp.Diff(build("a", "b", "c"), build("c", "a", "b")); diff != "" {
		t.Error(diff)
	}
}

// A user who may not read instances gets what the controllers have written: without instances, the
// data plane would look empty, and about to be removed.
func TestWhatIsWrittenIsTold(t *testing.T) {
	h := small()
	h.plane("a", v1alpha1.PhaseReady, 4).Status.Capacity["dev"] = v1alpha1.TypeCapacity{MaxUnits: 4, MaxNodes: 4, UsedUnits: 3, RemainingUnits: 1}
	h.plane("b", v1alpha1.PhaseProvisioning, 0)
	h.Pools, h.PoolsAssumed = nil, true
	st := &h.Regions[0].Status
	st.Plan = "waiting for 1 data plane"
	st.InstanceTypes = []v1alpha1.RegionTypeStatus{{
		Name: "dev", DataPlanes: 2, InFlight: 1, MaxUnits: 8, UsedUnits: 3, FreeUnits: 5, PendingUnits: 2,
		Decision: &v1alpha1.ScalingDecision{Action: "None", Reason: "InFlight", Message: "1 data plane is in flight"},
	}}
	x := h.instance("x", "x2", "")
	x.Status.Conditions = []metav1.Condition{{Type: v1alpha1.InstancePlaced, Status: metav1.ConditionFalse, Reason: "NoCapacity", Message: "no data plane has room"}}
	h.instance("y", "x1", "a")
	r := h.RecordedFleet(h.Regions, now, remedy.FormatPlainCommand).Regions[0]
	var got []string
	got = append(got, r.Brief, r.Types[0].Has(), r.Types[0].Wants(), string(r.Types[0].Decision.Reason))
	for _, p := range r.DataPlanes {
		got = append(got, p.Name+" "+p.DescribeUnits()+" "+p.DescribeOutcome(now))
	}
	for _, i := range r.WaitingInstances() {
		got = append(got, fmt.Sprintf("%s %s: %s", i.Name, i.Decision.Reason, i.Decision.Message))
	}
	act, wait := r.ListTasks()
	got = append(got, tell("", act)+tell("wait for ", wait))
	if diff := cmp.Diff([]string{
		"waiting for 1 data plane",
		"2 data planes, 1 of them in flight; 3 of 8 units used, 5 free; 2 units are requested without a place",
		"more than 1 unit free, and room for the biggest size, 2 units; at most 6 units used",
		"InFlight",
		"b 0/4 its claim is waiting for a running cluster; it is marked as failed in 90m",
		"a 3/4 it accepts instances",
		"team-a/x NoCapacity: no data plane has room",
		"wait for team-a/x: 1 data plane is in flight: b.\n",
	}, got); diff != "" {
		t.Error(diff)
	}
}

func TestARegionThatIsGoingIsToldToBe(t *testing.T) {
	h := small()
	h.Regions[0].DeletionTimestamp = &metav1.Time{Time: now}
	for _, v := range []Fleet{h.EvaluateFleet(h.Regions, now, remedy.FormatPlainCommand), h.RecordedFleet(h.Regions, now, remedy.FormatPlainCommand)} {
		if r := v.Regions[0]; r.Parked != "it is being deleted" || r.Types == nil || r.DataPlanes == nil || r.Instances == nil || r.Reserved == nil {
			t.Errorf("%+v", r)
		}
	}
}
