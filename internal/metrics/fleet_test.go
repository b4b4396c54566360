package metrics_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fleet/scaling"
	"hotspare.io/hotspare/internal/metrics"
)

var use1 = types.NamespacedName{Namespace: "fleet", Name: "use1"}

func lively() metrics.Fleet {
	return metrics.Fleet{
		Types:      []v1alpha1.RegionTypeStatus{{Name: "standard", MaxUnits: 12, UsedUnits: 7, FreeUnits: 5, PendingUnits: 2, Decision: &v1alpha1.ScalingDecision{Action: "Create", Reason: "BelowSlack"}}},
		DataPlanes: map[v1alpha1.DataPlanePhase]int{v1alpha1.PhaseReady: 2, v1alpha1.PhaseFailed: 1},
		Instances:  map[v1alpha1.InstancePhase]int{v1alpha1.InstanceReady: 6, v1alpha1.InstancePending: 1},
		Silent:     1,
	}
}

const livelyText = `
hotspare_fleet_units{namespace="fleet",region="use1",state="max",type="standard"} 12
hotspare_fleet_units{namespace="fleet",region="use1",state="used",type="standard"} 7
hotspare_fleet_units{namespace="fleet",region="use1",state="free",type="standard"} 5
hotspare_fleet_units{namespace="fleet",region="use1",state="pending",type="standard"} 2
hotspare_fleet_scaling_decision_info{action="Create",namespace="fleet",reason="BelowSlack",region="use1",type="standard"} 1
hotspare_fleet_silent_data_planes{namespace="fleet",region="use1"} 1
hotspare_fleet_data_planes{namespace="fleet",phase="Accepted",region="use1"} 0
hotspare_fleet_data_planes{namespace="fleet",phase="Provisioning",region="use1"} 0
hotspare_fleet_data_planes{namespace="fleet",phase="Provisioned",region="use1"} 0
hotspare_fleet_data_planes{namespace="fleet",phase="WaitingForAgent",region="use1"} 0
hotspare_fleet_data_planes{namespace="fleet",phase="Ready",region="use1"} 2
hotspare_fleet_data_planes{namespace="fleet",phase="Deprovisioning",region="use1"} 0
hotspare_fleet_data_planes{namespace="fleet",phase="Cleanup",region="use1"} 0
hotspare_fleet_data_planes{namespace="fleet",phase="Failed",region="use1"} 1
hotspare_fleet_instances{namespace="fleet",phase="Pending",region="use1"} 1
hotspare_fleet_instances{namespace="fleet",phase="Provisioning",region="use1"} 0
hotspare_fleet_instances{namespace="fleet",phase="Ready",region="use1"} 6
hotspare_fleet_instances{namespace="fleet",phase="Failed",region="use1"} 0
hotspare_fleet_instances{namespace="fleet",phase="Deleting",region="use1"} 0
`

func TestGaugesOfARegion(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	regions := map[types.NamespacedName]metrics.Fleet{use1: lively()}
	reg.MustRegister(metrics.NewFleetGauges(func() (map[types.NamespacedName]metrics.Fleet, error) { return regions, nil }))
	same(t, series(t, reg), livelyText)
	delete(regions, use1)
	if left := series(t, reg); len(left) > 0 {
		t.Errorf("the region is gone, and left are %v", left)
	}
}

func TestRegionsThatCannotBeReadDoNotHideOthers(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(metrics.NewFleetGauges(func() (map[types.NamespacedName]metrics.Fleet, error) {
		return map[types.NamespacedName]metrics.Fleet{use1: lively()}, errors.New("reading FleetRegion fleet/odd: no such thing")
	}))
	families, err := reg.Gather()
	if err == nil || !strings.Contains(err.Error(), "fleet/odd") || len(families) != 5 {
		t.Errorf("%d metrics, %v", len(families), err)
	}
}

func TestStepsOfARegionAreCountedByReason(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := metrics.New(reg, clocktesting.NewFakePassiveClock(noon))
	other := types.NamespacedName{Namespace: "fleet", Name: "euw1"}
	create := scaling.Step{Verb: scaling.Create, Reason: scaling.BelowSlack, Type: "standard"}
	m.RecordFleetStep(use1, create)
	m.RecordFleetStep(use1, create)
	m.RecordFleetStep(use1, scaling.Step{Verb: scaling.Remove, Reason: scaling.NotNeeded})
	m.RecordFleetStep(other, create)
	same(t, series(t, reg, "hotspare_fleet"), `
hotspare_fleet_steps_total{namespace="fleet",reason="BelowSlack",region="euw1",verb="create"} 1
hotspare_fleet_steps_total{namespace="fleet",reason="BelowSlack",region="use1",verb="create"} 2
hotspare_fleet_steps_total{namespace="fleet",reason="NotNeeded",region="use1",verb="remove"} 1
`)
	m.DeleteRegionSeries(use1)
	same(t, series(t, reg, "hotspare_fleet"), `hotspare_fleet_steps_total{namespace="fleet",reason="BelowSlack",region="euw1",verb="create"} 1`)
}

func TestWithoutMetricsTheFleetCountsNothing(*testing.T) {
	var m *metrics.Metrics
	m.RecordFleetStep(use1, scaling.Step{})
	m.DeleteRegionSeries(use1)
}
