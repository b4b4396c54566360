package metrics

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fleet/scaling"
)

// Label names of a FleetRegion.
const (
	fleetNamespace = "namespace"
	fleetRegion    = "region"
)

// Fleet contains the measured values of one FleetRegion.
type Fleet struct {
	// Types are the region's types, as reported in its status.
	Types []v1alpha1.RegionTypeStatus
	// DataPlanes and Instances are the numbers of data planes and instances in each phase.
	DataPlanes map[v1alpha1.DataPlanePhase]int
	Instances  map[v1alpha1.InstancePhase]int
	// Silent is the number of data planes whose agent has stopped reporting.
	Silent int
}

// FleetGauges measures regions at each scrape.
type FleetGauges struct {
	readRegions func() (map[types.NamespacedName]Fleet, error)
}

// NewFleetGauges returns gauges of the FleetRegions that readRegions returns. With an error it
// returns the regions that it could read.
func NewFleetGauges(readRegions func() (map[types.NamespacedName]Fleet, error)) *FleetGauges {
	return &FleetGauges{readRegions}
}

var (
	unitsDesc = prometheus.NewDesc("hotspare_fleet_units", "Streaming units of the region, by instance type and state: max, used, free or pending.",
		[]string{fleetNamespace, fleetRegion, "type", "state"}, nil)
	planesDesc = prometheus.NewDesc("hotspare_fleet_data_planes", "Data planes of the region, by phase.",
		[]string{fleetNamespace, fleetRegion, "phase"}, nil)
	instancesDesc = prometheus.NewDesc("hotspare_fleet_instances", "ServiceInstances of the region, by phase.",
		[]string{fleetNamespace, fleetRegion, "phase"}, nil)
	silentDesc = prometheus.NewDesc("hotspare_fleet_silent_data_planes", "Data planes of the region whose agent has stopped reporting.",
		[]string{fleetNamespace, fleetRegion}, nil)
	decisionDesc = prometheus.NewDesc("hotspare_fleet_scaling_decision_info",
		"Always 1. The labels show the last decision on whether to create a data plane for the type, and its reason.",
		[]string{fleetNamespace, fleetRegion, "type", "action", "reason"}, nil)
)

// All phases: gauges whose value is zero are reported, too.
var (
	planePhases = []v1alpha1.DataPlanePhase{
		v1alpha1.PhaseAccepted, v1alpha1.PhaseProvisioning, v1alpha1.PhaseProvisioned, v1alpha1.PhaseWaitingForAgent, v1alpha1.PhaseReady,
		v1alpha1.PhaseDeprovisioning, v1alpha1.PhaseCleanup, v1alpha1.PhaseFailed,
	}
	instancePhases = []v1alpha1.InstancePhase{
		v1alpha1.InstancePending, v1alpha1.InstanceProvisioning, v1alpha1.InstanceReady, v1alpha1.InstanceFailed, v1alpha1.InstanceDeleting,
	}
)

// Describe implements prometheus.Collector.
func (g *FleetGauges) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{unitsDesc, planesDesc, instancesDesc, silentDesc, decisionDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector: it reads the current state and reports it.
func (g *FleetGauges) Collect(ch chan<- prometheus.Metric) {
	regions, err := g.readRegions()
	if err != nil {
		ch <- prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(err), err)
	}
	for r, f := range regions {
		set := func(d *prometheus.Desc, value int, more ...string) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(value), append([]string{r.Namespace, r.Name}, more...)...)
		}
		for _, t := range f.Types {
			units := map[string]int32{"max": t.MaxUnits, "used": t.UsedUnits, "free": t.FreeUnits, "pending": t.PendingUnits}
			for _, state := range slices.Sorted(maps.Keys(units)) {
				set(unitsDesc, int(units[state]), t.Name, state)
			}
			if d := t.Decision; d != nil {
				set(decisionDesc, 1, t.Name, d.Action, d.Reason)
			}
		}
		set(silentDesc, f.Silent)
		for _, phase := range planePhases {
			set(planesDesc, f.DataPlanes[phase], string(phase))
		}
		for _, phase := range instancePhases {
			set(instancesDesc, f.Instances[phase], string(phase))
		}
	}
}

// RecordFleetStep counts a step that was executed for a FleetRegion.
func (m *Metrics) RecordFleetStep(region types.NamespacedName, st scaling.Step) {
	if m == nil {
		return
	}
	m.fleet.WithLabelValues(region.Namespace, region.Name, string(st.Verb), string(st.Reason)).Inc()
}

// DeleteRegionSeries deletes the series of a deleted FleetRegion.
func (m *Metrics) DeleteRegionSeries(region types.NamespacedName) {
	if m == nil {
		return
	}
	m.fleet.DeletePartialMatch(prometheus.Labels{fleetNamespace: region.Namespace, fleetRegion: region.Name})
}
