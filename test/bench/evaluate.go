package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fleet/facts"
	"hotspare.io/hotspare/internal/fleet/scaling"
)

const (
	evaluations   = 20
	instanceTypes = 10
)

// measureDecide measures how long decisions about a region take, without a hub and on one core: for
// a large region, and, for regions of several sizes, the cost of one arriving instance. That is a
// reconcile pass without its reads and writes.
func (b *bench) measureDecide(context.Context) ([]row, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const large = 10_000
	o, now := newFleetRegion(large), time.Now()
	for n := range 100 {
		o.Instances = append(o.Instances, newArrivingInstance(n, now))
	}
	s, err := o.BuildSnapshot(now)
	if err != nil {
		return nil, err
	}
	took := measureRuns(func() { scaling.Decide(s) })
	rows := []row{{
		fmt.Sprintf("decisions about %d data planes of %d types, one core: median, worst of %d", large, instanceTypes, len(took)),
		formatMillis(quantileOf(took, 0.5)) + ", " + formatMillis(took[len(took)-1]), "100 ms",
	}}
	what := "one instance arrives in a region of %d data planes: median, worst"
	for planes := 10; planes <= large; planes *= 10 {
		took, err := measureArrival(newFleetRegion(planes), now)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row{fmt.Sprintf(what, planes), formatMicros(quantileOf(took, 0.5)) + ", " + formatMicros(took[len(took)-1]), ""})
		what = "… of %d"
	}
	return rows, nil
}

// measureArrival measures the work between reading a region and writing it when an instance arrives
// for which there is room.
func measureArrival(o facts.Objects, now time.Time) ([]time.Duration, error) {
	o.Instances = append(o.Instances, newArrivingInstance(0, now))
	var err error
	took := measureRuns(func() {
		s, bad := o.BuildSnapshot(now)
		p := scaling.Decide(s)
		o.BuildRegionStatus(p, now)
		if err = bad; len(p.StepsOf(scaling.Place)) != 1 {
			err = fmt.Errorf("deciding about %d data planes: the instance is not placed: %s", len(o.Planes), p.Summarize())
		}
	})
	return took, err
}

// measureRuns calls do several times and returns how long each call took, sorted.
func measureRuns(do func()) []time.Duration {
	took := make([]time.Duration, evaluations)
	for n := range took {
		began := time.Now()
		do()
		took[n] = time.Since(began)
	}
	slices.Sort(took)
	return took
}

func formatMicros(d time.Duration) string {
	return fmt.Sprintf("%.2f ms", float64(d.Microseconds())/1000)
}

// newFleetRegion returns a region with that number of data planes: one in five is empty, the others
// are in use, and one in a hundred is being created.
func newFleetRegion(planes int) facts.Objects {
	at := metav1.NewTime(time.Now().Add(-time.Hour))
	o := facts.Objects{Region: &v1alpha1.FleetRegion{}, Types: map[string]*v1alpha1.InstanceType{}, PoolsAssumed: true}
	o.Region.Namespace, o.Region.Name, o.Region.Spec.Provider, o.Region.Spec.Region = "fleet", "east", "aws", "us-east-1"
	o.Region.Spec.ScaleUp.MaxInFlight = 100
	o.Region.Spec.ClusterSource.Claim = &v1alpha1.ClaimSource{Pools: []v1alpha1.PoolSource{{PoolRef: v1alpha1.PoolReference{Name: "spares"}}}}
	var names []string
	three := resource.MustParse("3")
	for n := range instanceTypes {
		it := &v1alpha1.InstanceType{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("t%d", n)}}
		it.Spec.Sizes = []v1alpha1.InstanceSize{{Name: "x1", Units: 1}, {Name: "x2", Units: 2}}
		it.Spec.NodesPerUnit, it.Spec.NodePools = &three, []v1alpha1.NodePool{{Platform: "aws", MaxNodes: 18}}
		o.Types[it.Name], names = it, append(names, it.Name)
		o.Region.Spec.InstanceTypes = append(o.Region.Spec.InstanceTypes, v1alpha1.RegionType{Name: it.Name, SlackUnits: 3})
	}
	for n := range planes {
		dp := &v1alpha1.DataPlane{ObjectMeta: metav1.ObjectMeta{
			Namespace: "fleet", Name: fmt.Sprintf("dp-%d", n), CreationTimestamp: metav1.NewTime(at.Add(time.Duration(-n) * time.Second)),
		}}
		dp.Spec.Provider, dp.Spec.Region, dp.Spec.InstanceTypes = "aws", "us-east-1", names
		dp.Status.Phase, dp.Status.Capacity = v1alpha1.PhaseReady, map[string]v1alpha1.TypeCapacity{}
		if n%100 == 7 {
			dp.Status.Phase, dp.CreationTimestamp = v1alpha1.PhaseProvisioning, metav1.Now()
		}
		for _, name := range names {
			dp.Status.Capacity[name] = v1alpha1.TypeCapacity{MaxNodes: 18, MaxUnits: 6}
		}
		o.Planes = append(o.Planes, dp)
		for m := range n % 5 {
			i := newArrivingInstance(1000+n*5+m, at.Time)
			i.Status.DataPlaneName, i.Status.Units = dp.Name, 2
			o.Instances = append(o.Instances, i)
		}
	}
	return o
}

// newArrivingInstance returns an instance that has no data plane yet.
func newArrivingInstance(n int, at time.Time) *v1alpha1.ServiceInstance {
	i := &v1alpha1.ServiceInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: fmt.Sprintf("i-%d", n), CreationTimestamp: metav1.NewTime(at)}}
	i.Spec.Provider, i.Spec.Region, i.Spec.Type, i.Spec.Size = "aws", "us-east-1", fmt.Sprintf("t%d", n%instanceTypes), "x1"
	return i
}
