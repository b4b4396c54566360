package facts_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fleet/facts"
	"hotspare.io/hotspare/internal/fleet/scaling"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) *metav1.Time {
	t := metav1.NewTime(noon.Add(-d))
	return &t
}

func quantity(text string) *resource.Quantity {
	q := resource.MustParse(text)
	return &q
}

func standard() *v1alpha1.InstanceType {
	return &v1alpha1.InstanceType{
		ObjectMeta: metav1.ObjectMeta{Name: "standard"},
		Spec: v1alpha1.InstanceTypeSpec{
			Sizes:        []v1alpha1.InstanceSize{{Name: "x1", Units: 1}, {Name: "x2", Units: 2}},
			NodesPerUnit: quantity("3"), NodePools: []v1alpha1.NodePool{{Platform: "aws", MaxNodes: 18}},
		},
	}
}

func region() *v1alpha1.FleetRegion {
	r := &v1alpha1.FleetRegion{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "use1", CreationTimestamp: *ago(time.Hour), Generation: 3}}
	r.Spec.Provider, r.Spec.Region = "aws", "us-east-1"
	r.Spec.InstanceTypes = []v1alpha1.RegionType{{Name: "standard", SlackUnits: 3, Reserved: &v1alpha1.Reserved{Count: 2, Size: "x2"}}}
	r.Spec.ClusterSource.Claim = &v1alpha1.ClaimSource{Pools: []v1alpha1.PoolSource{{PoolRef: v1alpha1.PoolReference{Name: "spares"}}}}
	return r
}

func plane(name string) *v1alpha1.DataPlane {
	dp := &v1alpha1.DataPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name, CreationTimestamp: *ago(time.Hour)}}
	dp.Spec = v1alpha1.DataPlaneSpec{Provider: "aws", Region: "us-east-1", InstanceTypes: []string{"standard"}, Ownership: v1alpha1.Managed}
	dp.Status.Phase = v1alpha1.PhaseReady
	dp.Status.Capacity = map[string]v1alpha1.TypeCapacity{"standard": {MaxNodes: 18, MaxUnits: 6, RemainingUnits: 6}}
	return dp
}

func instance(name string) *v1alpha1.ServiceInstance {
	i := &v1alpha1.ServiceInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: "u-1", CreationTimestamp: *ago(time.Minute)}}
	i.Spec = v1alpha1.ServiceInstanceSpec{Type: "standard", Size: "x2", Provider: "aws", Region: "us-east-1"}
	return i
}

func objects() facts.Objects {
	return facts.Objects{
		Region: region(), Types: map[string]*v1alpha1.InstanceType{"standard": standard()},
		Planes: []*v1alpha1.DataPlane{plane("a")}, Instances: []*v1alpha1.ServiceInstance{instance("x")}, PoolsAssumed: true,
	}
}

func snapshot(t *testing.T, o facts.Objects) scaling.Snapshot {
	t.Helper()
	s, err := o.BuildSnapshot(noon)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// nil is no limit, and 0 is a limit of zero.
func TestALimitOfZeroIsALimit(t *testing.T) {
	for _, want := range []*int32{nil, new(int32)} {
		o := facts.Objects{Region: &v1alpha1.FleetRegion{}}
		o.Region.Spec.InstanceTypes = []v1alpha1.RegionType{{Name: "standard", Limit: want, MaxDataPlanes: want}}
		s, err := o.BuildSnapshot(noon)
		if err != nil || (s.Region.Types[0].Limit == nil) != (want == nil) || (s.Region.Types[0].MaxPlanes == nil) != (want == nil) {
			t.Errorf("limit %v, maxDataPlanes %v, %v", s.Region.Types[0].Limit, s.Region.Types[0].MaxPlanes, err)
		}
	}
}

func TestSnapshot(t *testing.T) {
	want := scaling.Snapshot{
		Now: noon,
		Region: scaling.Region{
			Types: []scaling.Type{{Name: "standard", Slack: 3, Sizes: []int{1, 2}, Expected: 6, Reserved: scaling.Reserved{Count: 2, Size: "x2", Units: 2}}},
			Up:    scaling.ScaleUp{Mode: scaling.Auto, MaxInFlight: 1, Timeout: 2 * time.Hour, Backoff: 10 * time.Minute},
			Down:  scaling.ScaleDown{Mode: scaling.Auto},
		},
		Planes: []scaling.Plane{{
			Name: "a", Created: noon.Add(-time.Hour), Since: noon.Add(-time.Hour), Phase: scaling.Ready, Managed: true, Rooms: []scaling.Room{{Type: "standard", Max: 6, Remaining: 6}},
		}},
		Instances: []scaling.Instance{{Name: "team/x", UID: "u-1", Created: noon.Add(-time.Minute), Type: "standard", Units: 2}},
	}
	if diff := cmp.Diff(want, snapshot(t, objects())); diff != "" {
		t.Error(diff)
	}
}

func TestWhatADataPlaneIs(t *testing.T) {
	no := false
	for name, tt := range map[string]struct {
		change func(*v1alpha1.DataPlane)
		want   func(scaling.Plane) bool
	}{
		"cordoned":                        {func(d *v1alpha1.DataPlane) { d.Spec.Schedulable = &no }, func(p scaling.Plane) bool { return p.Cordoned }},
		"protected":                       {func(d *v1alpha1.DataPlane) { d.Spec.Protected = true }, func(p scaling.Plane) bool { return p.Protected }},
		"registered":                      {func(d *v1alpha1.DataPlane) { d.Spec.Ownership = v1alpha1.Registered }, func(p scaling.Plane) bool { return !p.Managed }},
		"nobody said whose":               {func(d *v1alpha1.DataPlane) { d.Spec.Ownership = "" }, func(p scaling.Plane) bool { return p.Managed }},
		"released":                        {func(d *v1alpha1.DataPlane) { d.Status.ReleasedAt = ago(0) }, func(p scaling.Plane) bool { return p.Released }},
		"being deleted":                   {func(d *v1alpha1.DataPlane) { d.DeletionTimestamp = ago(0) }, func(p scaling.Plane) bool { return p.Deleting }},
		"in its phase since":              {func(d *v1alpha1.DataPlane) { d.Status.PhaseSince = ago(time.Minute) }, func(p scaling.Plane) bool { return p.Since.Equal(noon.Add(-time.Minute)) }},
		"empty since":                     {func(d *v1alpha1.DataPlane) { d.Status.EmptySince = ago(time.Minute) }, func(p scaling.Plane) bool { return p.EmptySince.Equal(noon.Add(-time.Minute)) }},
		"silent":                          {live(metav1.ConditionFalse), func(p scaling.Plane) bool { return p.Silent }},
		"live":                            {live(metav1.ConditionTrue), func(p scaling.Plane) bool { return !p.Silent }},
		"unreadable":                      {func(d *v1alpha1.DataPlane) { d.Unreadable = "x" }, func(p scaling.Plane) bool { return p.Unreadable == "x" }},
		"just made: what its type says":   {comes(v1alpha1.TypeCapacity{}), func(p scaling.Plane) bool { return p.Rooms[0].Max == 6 }},
		"with its nodes: what fits there": {comes(v1alpha1.TypeCapacity{MaxNodes: 9}), func(p scaling.Plane) bool { return p.Rooms[0].Max == 3 }},
		"Ready, and nothing reported":     {func(d *v1alpha1.DataPlane) { d.Status.Capacity = nil }, func(p scaling.Plane) bool { return p.Rooms[0].Max == 0 }},
		"booked": {func(d *v1alpha1.DataPlane) {
			d.Status.Bookings = []v1alpha1.Booking{{Namespace: "team", Name: "x", UID: "u-1", Type: "standard", Units: 2}}
		}, func(p scaling.Plane) bool {
			return cmp.Equal(p.Bookings, []scaling.Booking{{Instance: "team/x", UID: "u-1", Type: "standard", Units: 2}})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			o := objects()
			tt.change(o.Planes[0])
			if p := snapshot(t, o).Planes[0]; !tt.want(p) {
				t.Errorf("got %+v", p)
			}
		})
	}
}

func live(s metav1.ConditionStatus) func(*v1alpha1.DataPlane) {
	return func(d *v1alpha1.DataPlane) {
		meta.SetStatusCondition(&d.Status.Conditions, metav1.Condition{Type: v1alpha1.DataPlaneAgentLive, Status: s, Reason: "x"})
	}
}

func comes(c v1alpha1.TypeCapacity) func(*v1alpha1.DataPlane) {
	return func(d *v1alpha1.DataPlane) {
		d.Status.Phase, d.Status.Capacity = v1alpha1.PhaseProvisioned, map[string]v1alpha1.TypeCapacity{"standard": c}
	}
}

func TestOnlyWhatIsOfTheRegion(t *testing.T) {
	o := objects()
	for name, change := range map[string]func(*v1alpha1.DataPlane){
		"b": func(d *v1alpha1.DataPlane) { d.Spec.Region = "us-east-2" },
		"c": func(d *v1alpha1.DataPlane) { d.Spec.Provider = "gcp" },
		"d": func(d *v1alpha1.DataPlane) { d.Namespace = "mallory" },
	} {
		dp := plane(name)
		change(dp)
		o.Planes = append(o.Planes, dp)
	}
	abroad, pinned := instance("y"), instance("z")
	abroad.Spec.Region, pinned.Spec.Region = "us-east-2", "us-east-2"
	pinned.Status.DataPlaneName = "a" // it takes room, whatever its spec says
	o.Instances = append(o.Instances, abroad, pinned)
	o.Region.Status.Pending = []v1alpha1.PendingDataPlane{{Name: "a", InstanceType: "standard"}, {Name: "e", InstanceType: "standard"}}
	s := snapshot(t, o)
	var got []string
	for _, p := range s.Planes {
		got = append(got, p.Name+" "+string(p.Phase))
	}
	for _, i := range s.Instances {
		got = append(got, i.Name)
	}
	if diff := cmp.Diff([]string{"a Ready", "e ", "team/x", "team/z"}, got); diff != "" {
		t.Error(diff)
	}
	if e := s.Planes[1]; !e.Managed || e.Rooms[0].Max != 6 {
		t.Errorf("one that is about to be made is %+v", e)
	}
}

func TestInstancesThatCannotBePlaced(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*facts.Objects)
		reason scaling.Reason
		says   string
	}{
		"no such type":           {func(o *facts.Objects) { o.Instances[0].Spec.Type = "premium" }, scaling.UnknownType, `InstanceType "premium" does not exist`},
		"no such size":           {func(o *facts.Objects) { o.Instances[0].Spec.Size = "x9" }, scaling.UnknownSize, `InstanceType standard has no size "x9": use one of x1, x2`},
		"its type is unreadable": {func(o *facts.Objects) { o.Types["standard"].Unreadable = "spec.sizes: 1 is not a list" }, scaling.UnknownType, "spec.sizes: 1 is not a list"},
		"it is unreadable":       {func(o *facts.Objects) { o.Instances[0].Unreadable = "spec.region: 1 is not a string" }, scaling.Unreadable, "spec.region: 1 is not a string"},
	} {
		t.Run(name, func(t *testing.T) {
			o := objects()
			tt.change(&o)
			o.Instances = append(o.Instances, instance("other"))
			i := snapshot(t, o).Instances[0]
			if i.Reason != tt.reason || !strings.Contains(i.Fault, tt.says) {
				t.Errorf("got %+v", i)
			}
		})
	}
	o := objects()
	o.Instances[0].Spec.Size, o.Instances[0].Status.Units = "x9", 7
	if i := snapshot(t, o).Instances[0]; i.Units != 7 || i.Fault != "" {
		t.Errorf("units that are frozen count, whatever the type says now (fleet K): %+v", i)
	}
}

func TestWhereClustersComeFrom(t *testing.T) {
	week := hivev1.Duration("168h")
	for name, tt := range map[string]struct {
		change func(*facts.Objects)
		says   string
	}{
		"a pool that is assumed":             {func(*facts.Objects) {}, ""},
		"a pool":                             {pool(func(*hivev1.ClusterPool) {}), ""},
		"a pool that there is not":           {func(o *facts.Objects) { o.PoolsAssumed = false }, "ClusterPool spares does not exist in namespace fleet"},
		"claims with a lifetime":             {pool(func(p *hivev1.ClusterPool) { p.Spec.ClaimLifetime = &hivev1.ClusterPoolClaimLifetime{Default: &week} }), "spec.claimLifetime"},
		"… at most":                          {pool(func(p *hivev1.ClusterPool) { p.Spec.ClaimLifetime = &hivev1.ClusterPoolClaimLifetime{Maximum: &week} }), "spec.claimLifetime"},
		"clusters that are put to sleep":     {pool(func(p *hivev1.ClusterPool) { p.Spec.HibernateAfter = &week }), "spec.hibernateAfter"},
		"a pool that goes":                   {pool(func(p *hivev1.ClusterPool) { p.DeletionTimestamp = ago(0) }), "being deleted"},
		"no pool with such zones":            {func(o *facts.Objects) { o.Types["standard"].Spec.MultiZone = true }, "spec.clusterSource has no pool with multiZone true"},
		"no nodes on the platform":           {func(o *facts.Objects) { o.Types["standard"].Spec.NodePools[0].Platform = "gcp" }, "has no spec.nodePools entry for platform aws"},
		"a cold install":                     {cold(false), ""},
		"a cold install with other zones":    {cold(true), "spec.clusterSource has no pool with multiZone false"},
		"the first does not do, a second is": {second, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := objects()
			tt.change(&o)
			got := snapshot(t, o).Region.Types[0].Blocked
			if (got == "") != (tt.says == "") || !strings.Contains(got, tt.says) {
				t.Errorf("got %q, want %q", got, tt.says)
			}
		})
	}
}

func pool(change func(*hivev1.ClusterPool)) func(*facts.Objects) {
	return func(o *facts.Objects) {
		p := &hivev1.ClusterPool{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "spares"}}
		change(p)
		o.PoolsAssumed, o.Pools = false, map[string]*hivev1.ClusterPool{"spares": p}
	}
}

func cold(multi bool) func(*facts.Objects) {
	return func(o *facts.Objects) {
		o.Region.Spec.ClusterSource = v1alpha1.ClusterSource{Deployment: &v1alpha1.DeploymentSource{MultiZone: multi}}
	}
}

func second(o *facts.Objects) {
	o.PoolsAssumed = false
	o.Region.Spec.ClusterSource.Claim.Pools = append(o.Region.Spec.ClusterSource.Claim.Pools, v1alpha1.PoolSource{PoolRef: v1alpha1.PoolReference{Name: "more"}})
	o.Pools = map[string]*hivev1.ClusterPool{"more": {ObjectMeta: metav1.ObjectMeta{Name: "more"}}}
}

func TestStatus(t *testing.T) {
	o := objects()
	st := o.BuildRegionStatus(scaling.Decide(snapshot(t, o)), noon)
	got := st.InstanceTypes[0]
	want := v1alpha1.RegionTypeStatus{
		Name: "standard", DataPlanes: 1, MaxUnits: 6, UsedUnits: 2, FreeUnits: 4, BiggestFits: true,
		Decision: &v1alpha1.ScalingDecision{Action: "None", Reason: "Sufficient", Message: got.Decision.Message, At: metav1.NewTime(noon)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if st.Plan != "placing 1 instance" || st.ObservedGeneration != 3 || !meta.IsStatusConditionTrue(st.Conditions, v1alpha1.RegionCapacityAvailable) {
		t.Errorf("got %+v", st)
	}
	o.Region.Status = st
	again := o.BuildRegionStatus(scaling.Decide(snapshot(t, o)), noon.Add(time.Hour))
	if diff := cmp.Diff(st, again); diff != "" {
		t.Errorf("nothing has changed but the time: %s", diff)
	}
	o.Region.Spec.InstanceTypes[0].Reserved.Size = "x9"
	o.Planes = nil
	bad := o.BuildRegionStatus(scaling.Decide(snapshot(t, o)), noon)
	if c := meta.FindStatusCondition(bad.Conditions, v1alpha1.RegionValid); c.Reason != v1alpha1.ReasonUnknownSize {
		t.Errorf("got %+v", c)
	}
	if c := meta.FindStatusCondition(bad.Conditions, v1alpha1.RegionCapacityAvailable); c.Status != metav1.ConditionFalse {
		t.Errorf("got %+v", c)
	}
}

func TestTypeStatus(t *testing.T) {
	it := standard()
	if st := facts.BuildTypeStatus(it, noon); st.BiggestUnits != 2 || !meta.IsStatusConditionTrue(st.Conditions, v1alpha1.TypeValid) {
		t.Errorf("got %+v", st)
	}
	it.Spec.Sizes[0].Units = 7
	c := meta.FindStatusCondition(facts.BuildTypeStatus(it, noon).Conditions, v1alpha1.TypeValid)
	if c.Reason != v1alpha1.ReasonSizeTooBig || !strings.Contains(c.Message, "needs 7 units, and the 18 nodes of a data plane on aws have room for 6") {
		t.Errorf("got %+v", c)
	}
}

func TestDuplicate(t *testing.T) {
	first, second := region(), region()
	second.Name, second.CreationTimestamp = "other", *ago(time.Minute)
	all := []*v1alpha1.FleetRegion{second, first}
	if facts.RegionDuplicateReason(first, all) != "" || !strings.Contains(facts.RegionDuplicateReason(second, all), "FleetRegion fleet/use1") {
		t.Errorf("got %q and %q", facts.RegionDuplicateReason(first, all), facts.RegionDuplicateReason(second, all))
	}
	second.Spec.Region = "us-east-2"
	if got := facts.RegionDuplicateReason(second, all); got != "" {
		t.Error(got)
	}
}

// fleet A, J, L: a report is validated, and never changes anything automatically, least of all a
// phase.
func TestJudge(t *testing.T) {
	for name, tt := range map[string]struct {
		capacity map[string]v1alpha1.ReportedCapacity
		versions string
		at       time.Duration
		says     string
	}{
		"all is well":          {report(18, 6, 4), "", 0, ""},
		"nothing is left":      {report(18, 6, 0), "", 0, ""},
		"all is left":          {report(18, 6, 6), "", 0, ""},
		"more left than there": {report(18, 6, 7), "", 0, "type standard: remainingUnits 7 is not between 0 and maxUnits, 6"},
		"less than nothing":    {report(18, 6, -1), "", 0, "remainingUnits -1 is not between 0 and maxUnits, 6"},
		"below zero":           {report(18, -6, -6), "", 0, "maxUnits -6 and maxNodes 18 cannot be below 0"},
		"other nodes":          {report(20, 6, 4), "", 0, "type standard: maxNodes 20 is not the maximum of its machine pool, 18"},
		"an unknown type":      {map[string]v1alpha1.ReportedCapacity{"premium": {MaxNodes: 1}}, "", 0, `type "premium" is not one of the data plane's types, standard`},
		"one right, one not":   {map[string]v1alpha1.ReportedCapacity{"premium": {}, "standard": {MaxNodes: 18, MaxUnits: 5}}, "", 0, `type "premium"`},
		"of nothing":           {nil, "", 0, "the report has no type"},
		"older than the last":  {report(18, 5, 4), "", 2 * time.Minute, "older than an earlier one"},
		"a version twice":      {report(18, 6, 4), "v1 v1", 0, "version v1 is listed twice"},
		"versions":             {report(18, 6, 4), "v1 v2", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dp := plane("a")
			last := v1alpha1.TypeCapacity{MaxNodes: 18, MaxUnits: 6, RemainingUnits: 5, UsedUnits: 1, ReportedAt: ago(time.Minute)}
			dp.Status.Capacity["standard"] = last
			dp.UID = "dp-1"
			r := &v1alpha1.DataPlaneReport{DataPlaneUID: "dp-1", At: *ago(tt.at), Capacity: tt.capacity}
			for _, v := range strings.Fields(tt.versions) {
				r.Versions = append(r.Versions, v1alpha1.OperatorVersion{Strimzi: v})
			}
			before := dp.DeepCopy()
			j, told := facts.ValidateReport(dp, r)
			if !told || j.Valid != (tt.says == "") || !strings.Contains(j.Condition.Message, tt.says) || j.Valid != (j.Condition.Status == metav1.ConditionTrue) {
				t.Errorf("got %+v", j)
			}
			want := last
			if j.Valid {
				c := tt.capacity["standard"]
				want = v1alpha1.TypeCapacity{MaxNodes: 18, MaxUnits: c.MaxUnits, RemainingUnits: c.RemainingUnits, UsedUnits: c.MaxUnits - c.RemainingUnits, ReportedAt: ago(tt.at)}
			}
			if diff := cmp.Diff(map[string]v1alpha1.TypeCapacity{"standard": want}, j.Capacity); diff != "" {
				t.Error(diff)
			}
			if len(j.Versions) != len(r.Versions) && j.Valid {
				t.Errorf("got %v", j.Versions)
			}
			if diff := cmp.Diff(before, dp); diff != "" {
				t.Errorf("it was changed: %s", diff)
			}
		})
	}
	if _, told := facts.ValidateReport(plane("a"), nil); told {
		t.Error("an agent that has said nothing is judged")
	}
	dp := plane("a")
	dp.UID = "dp-2"
	if j, _ := facts.ValidateReport(dp, &v1alpha1.DataPlaneReport{DataPlaneUID: "dp-1", Capacity: report(18, 6, 6)}); j.Valid || !strings.Contains(j.Condition.Message, `data plane "dp-1", and this one is "dp-2"`) {
		t.Errorf("the report of another data plane: %+v", j)
	}
}

func report(nodes, most, left int32) map[string]v1alpha1.ReportedCapacity {
	return map[string]v1alpha1.ReportedCapacity{"standard": {MaxNodes: nodes, MaxUnits: most, RemainingUnits: left}}
}

func TestAgentLive(t *testing.T) {
	dp := plane("a")
	if c := facts.AgentLiveCondition(dp, noon); c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonSilent {
		t.Errorf("an agent that was never heard of: %+v", c)
	}
	dp.Status.Agent = &v1alpha1.AgentStatus{LastHeartbeat: ago(facts.AgentSilenceTimeout - time.Second)}
	if c := facts.AgentLiveCondition(dp, noon); c.Status != metav1.ConditionTrue {
		t.Errorf("got %+v", c)
	}
	dp.Status.Agent.LastHeartbeat = ago(facts.AgentSilenceTimeout)
	if c := facts.AgentLiveCondition(dp, noon); c.Status != metav1.ConditionFalse {
		t.Errorf("got %+v", c)
	}
}

// An object that cannot be decoded is reported, and does not affect the others.
func TestUnreadableObjectsStopNoOther(t *testing.T) {
	o := objects()
	var broken v1alpha1.DataPlane
	raw := `{"metadata":{"name":"b","namespace":"fleet"},"spec":{"provider":"aws","region":"us-east-1","instanceTypes":"standard"}}`
	if err := json.Unmarshal([]byte(raw), &broken); err != nil {
		t.Fatal(err)
	}
	var half v1alpha1.ServiceInstance
	raw = `{"metadata":{"name":"y","namespace":"team"},"spec":{"type":"standard","size":7,"provider":"aws","region":"us-east-1"}}`
	if err := json.Unmarshal([]byte(raw), &half); err != nil {
		t.Fatal(err)
	}
	o.Planes, o.Instances = append(o.Planes, &broken), append(o.Instances, &half)
	p := scaling.Decide(snapshot(t, o))
	if got := fmt.Sprint(p); got != "place team/x on a: the oldest data plane with 2 units free" {
		t.Errorf("got %s", got)
	}
	if c := facts.PlacedCondition(&half, p.Placements[0]); !strings.Contains(c.Message, "spec.size: 7 is not a string") {
		t.Errorf("got %+v", c)
	}
	o.Region.Unreadable = "spec.x: 1 is not a string"
	if _, err := o.BuildSnapshot(noon); err == nil {
		t.Error("a region that cannot be read has a snapshot")
	}
}

// A snapshot does not depend on the order of the objects.
func TestTheOrderOfObjectsDoesNotMatter(t *testing.T) {
	o := objects()
	for i := range 20 {
		o.Planes = append(o.Planes, plane(fmt.Sprintf("p%d", i)))
		x := instance(fmt.Sprintf("i%d", i))
		x.UID = ""
		o.Instances = append(o.Instances, x)
	}
	want := scaling.Decide(snapshot(t, o)).String()
	r := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		r.Shuffle(len(o.Planes), func(i, j int) { o.Planes[i], o.Planes[j] = o.Planes[j], o.Planes[i] })
		r.Shuffle(len(o.Instances), func(i, j int) { o.Instances[i], o.Instances[j] = o.Instances[j], o.Instances[i] })
		if got := scaling.Decide(snapshot(t, o)).String(); got != want {
			t.Fatalf("%s\n\n%s", want, got)
		}
	}
}
