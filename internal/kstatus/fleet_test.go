package kstatus_test

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	capacityfacts "hotspare.io/hotspare/internal/fleet/facts"
	"hotspare.io/hotspare/internal/fleet/scaling"
	"hotspare.io/hotspare/internal/kstatus"
	"hotspare.io/hotspare/internal/kstatus/kstatustest"
)

func instance(change func(*v1alpha1.ServiceInstance)) *v1alpha1.ServiceInstance {
	i := &v1alpha1.ServiceInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "x", UID: "u-1", Generation: 1, CreationTimestamp: metav1.NewTime(noon.Add(-time.Minute))}}
	i.Spec = v1alpha1.ServiceInstanceSpec{Type: "standard", Size: "x2", Provider: "aws", Region: "us-east-1"}
	if change != nil {
		change(i)
	}
	return i
}

// fleet is a region with a data plane that has room for 6 units.
func fleet(change func(*capacityfacts.Objects)) capacityfacts.Objects {
	nodes := resource.MustParse("3")
	dp := &v1alpha1.DataPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "a", CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour))}}
	dp.Spec = v1alpha1.DataPlaneSpec{Provider: "aws", Region: "us-east-1", InstanceTypes: []string{"standard"}, Ownership: v1alpha1.Managed}
	dp.Status.Phase = v1alpha1.PhaseReady
	dp.Status.Capacity = map[string]v1alpha1.TypeCapacity{"standard": {MaxNodes: 18, MaxUnits: 6, RemainingUnits: 6}}
	dp.Status.Conditions = []metav1.Condition{{Type: v1alpha1.DataPlaneReady, Status: metav1.ConditionTrue}, {Type: v1alpha1.DataPlaneAgentLive, Status: metav1.ConditionTrue}}
	r := &v1alpha1.FleetRegion{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "use1", CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour)), Generation: 3}}
	r.Spec.Provider, r.Spec.Region = "aws", "us-east-1"
	r.Spec.InstanceTypes = []v1alpha1.RegionType{{Name: "standard"}}
	r.Spec.ClusterSource.Claim = &v1alpha1.ClaimSource{Pools: []v1alpha1.PoolSource{{PoolRef: v1alpha1.PoolReference{Name: "spares"}}}}
	o := capacityfacts.Objects{
		Region: r, Planes: []*v1alpha1.DataPlane{dp}, PoolsAssumed: true,
		Types: map[string]*v1alpha1.InstanceType{"standard": {
			ObjectMeta: metav1.ObjectMeta{Name: "standard", Generation: 1},
			Spec: v1alpha1.InstanceTypeSpec{
				Sizes:        []v1alpha1.InstanceSize{{Name: "x1", Units: 1}, {Name: "x2", Units: 2}},
				NodesPerUnit: &nodes, NodePools: []v1alpha1.NodePool{{Platform: "aws", MaxNodes: 18}},
			},
		}},
	}
	if change != nil {
		change(&o)
	}
	return o
}

// TestFleetRegions reports what package capacity decides, on the region and on the instance
// that waits, if one does.
func TestFleetRegions(t *testing.T) {
	waits := func(o *capacityfacts.Objects) { o.Instances = slices.Insert(o.Instances, 0, instance(nil)) }
	full := func(o *capacityfacts.Objects) {
		o.Instances = append(o.Instances, instance(func(i *v1alpha1.ServiceInstance) {
			i.Name, i.UID, i.Status.DataPlaneName, i.Status.Units, i.Status.Placements, i.Status.Phase = "y", "u-2", "a", 6, 1, v1alpha1.InstanceReady
		}))
	}
	atMost := func(planes int32) func(*capacityfacts.Objects) {
		return func(o *capacityfacts.Objects) { o.Region.Spec.InstanceTypes[0].MaxDataPlanes = &planes }
	}
	limited := func(o *capacityfacts.Objects) {
		units := int32(6)
		o.Region.Spec.InstanceTypes[0].Limit = &units
	}
	for name, tc := range map[string]struct {
		changes      []func(*capacityfacts.Objects)
		region, wait string
	}{
		"a region with room is settled":      {nil, "Current", ""},
		"a region that needs a data plane":   {[]func(*capacityfacts.Objects){full}, "InProgress BiggestDoesNotFit", ""},
		"and an instance waits for it":       {[]func(*capacityfacts.Objects){full, waits}, "InProgress BiggestDoesNotFit", "InProgress NoCapacity"},
		"a region that may have no more":     {[]func(*capacityfacts.Objects){full, atMost(1)}, "Failed AtMaximum", ""},
		"a region at its limit is settled":   {[]func(*capacityfacts.Objects){full, limited}, "Current", ""},
		"unless an instance waits":           {[]func(*capacityfacts.Objects){full, limited, waits}, "Failed LimitReached", "Failed LimitReached"},
		"a region without its pool":          {[]func(*capacityfacts.Objects){func(o *capacityfacts.Objects) { o.PoolsAssumed = false }}, "Failed PoolNotFound", ""},
		"a region with an unknown type":      {[]func(*capacityfacts.Objects){func(o *capacityfacts.Objects) { o.Types = nil }}, "Failed UnknownType", ""},
		"an instance of an unknown type":     {[]func(*capacityfacts.Objects){waits, func(o *capacityfacts.Objects) { o.Instances[0].Spec.Type = "other" }}, "Current", "Failed UnknownType"},
		"an instance of an unknown size":     {[]func(*capacityfacts.Objects){waits, func(o *capacityfacts.Objects) { o.Instances[0].Spec.Size = "x9" }}, "Current", "Failed UnknownSize"},
		"an instance on an absent dataplane": {[]func(*capacityfacts.Objects){waits, func(o *capacityfacts.Objects) { o.Instances[0].Spec.DataPlaneName = "b" }}, "Current", "Failed DataPlaneNotFound"},
	} {
		t.Run(name, func(t *testing.T) {
			o := fleet(func(o *capacityfacts.Objects) {
				for _, change := range tc.changes {
					change(o)
				}
			})
			s, err := o.BuildSnapshot(noon)
			if err != nil {
				t.Fatal(err)
			}
			p := scaling.Decide(s)
			o.Region.Status = o.BuildRegionStatus(p, noon)
			kstatustest.ExpectStatus(t, o.Region, tc.region)
			for _, placement := range p.Placements {
				i := o.Instances[0]
				i.Status.ObservedGeneration, i.Status.Phase = i.Generation, v1alpha1.InstancePending
				meta.SetStatusCondition(&i.Status.Conditions, capacityfacts.PlacedCondition(i, placement))
				kstatus.ReportServiceInstance(i, &i.Status, noon)
				kstatustest.ExpectStatus(t, i, tc.wait)
			}
		})
	}
}

func TestInstanceTypes(t *testing.T) {
	it := fleet(nil).Types["standard"]
	it.Status = capacityfacts.BuildTypeStatus(it, noon)
	kstatustest.ExpectStatus(t, it, "Current")
	it.Spec.Sizes[1].Units = 100
	it.Status = capacityfacts.BuildTypeStatus(it, noon)
	kstatustest.ExpectStatus(t, it, "Failed SizeTooBig")
}

// An annotation that is not valid is the cause only of a set that waits for nothing.
func TestClaimSetsWithAnInvalidAnnotation(t *testing.T) {
	invalid := kstatus.Stalled(hivev1.ReasonInvalidHeartbeatTimeout, "correct it")
	for name, c := range map[string]struct {
		pending metav1.Condition
		fault   kstatus.Progress
		want    string // the condition that is set, and its reason
	}{
		"a set that is served":                    {metav1.Condition{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonSetServed}, kstatus.Progress{}, ""},
		"a set that is served, with one":          {metav1.Condition{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonSetServed}, invalid, "Stalled/InvalidHeartbeatTimeout"},
		"a set that waits for clusters, with one": {metav1.Condition{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSetWaiting}, invalid, "Reconciling/NoClusters"},
	} {
		set := &v1alpha1.ClaimSet{}
		c.pending.Type = v1alpha1.ClaimSetPending
		set.Status.Conditions = []metav1.Condition{c.pending}
		kstatus.ReportClaimSet(set, false, c.fault, noon)
		got := ""
		for _, typ := range []string{hivev1.ConditionReconciling, hivev1.ConditionStalled} {
			if found := meta.FindStatusCondition(set.Status.Conditions, typ); found != nil {
				got += typ + "/" + found.Reason
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
