package fleetplan

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/explain/remedy"
	"hotspare.io/hotspare/internal/fleet/scaling"
)

// RecordedFleet returns the view of EvaluateFleet for a user who may not read everything that a
// decision depends on. It computes no decision: it shows what the hub's controllers last wrote into
// the objects that exist. The used units are those that agents report.
func (h *Hub) RecordedFleet(regions []*v1alpha1.FleetRegion, now time.Time, formatCommand remedy.CommandFormatter) Fleet {
	v := Fleet{Now: now, Regions: []Region{}}
	for _, r := range regions {
		e := Evaluation{Objects: h.regionObjects(r)}
		var err error
		if e.Facts, err = e.BuildSnapshot(now); err != nil {
			e.Parked = err.Error()
		}
		if r.DeletionTimestamp != nil {
			e.Parked = beingDeletedMessage
		}
		e.Plan = e.recordedPlan()
		one := e.buildRegionView(formatCommand)
		one.Reserved = []Reserve{}
		if one.Parked == "" {
			one.Plan, one.Brief = r.Status.Plan, r.Status.Plan
		}
		for i := range one.DataPlanes {
			one.DataPlanes[i].setReportedUnits(h.findDataPlane(r.Namespace, one.DataPlanes[i].Name))
		}
		v.Regions = append(v.Regions, one)
	}
	return v
}

// recordedPlan returns the region's plan as far as the statuses have recorded it.
func (e Evaluation) recordedPlan() scaling.Plan {
	var p scaling.Plan
	for _, t := range e.Region.Status.InstanceTypes {
		report := scaling.TypeReport{
			Name: t.Name, DataPlanes: int(t.DataPlanes), InFlight: int(t.InFlight), MaxUnits: int(t.MaxUnits), UsedUnits: int(t.UsedUnits),
			FreeUnits: int(t.FreeUnits), PendingUnits: int(t.PendingUnits), BiggestFits: t.BiggestFits,
			Decision: scaling.Decision{Action: scaling.None},
		}
		if d := t.Decision; d != nil {
			report.Decision.Reason, report.Decision.Message = scaling.Reason(d.Reason), d.Message
			if d.Action == "Create" {
				report.Decision.Action = scaling.Create
				report.Decision.DryRun = e.Region.Spec.ScaleUp.Mode == v1alpha1.ScalingDryRun
			}
		}
		p.Types = append(p.Types, report)
	}
	for _, i := range e.Instances {
		if i.Spec.Provider != e.Region.Spec.Provider || i.Spec.Region != e.Region.Spec.Region || i.Status.DataPlaneName != "" {
			continue
		}
		d := scaling.Decision{Action: scaling.Wait}
		if c := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.InstancePlaced); c != nil {
			d.Reason, d.Message = scaling.Reason(c.Reason), c.Message
		}
		p.Placements = append(p.Placements, scaling.Placement{
			Instance: types.NamespacedName{Namespace: i.Namespace, Name: i.Name}.String(), Decision: d,
		})
	}
	return p
}

// findDataPlane returns a data plane by its name; nil if there is none.
func (h *Hub) findDataPlane(namespace, name string) *v1alpha1.DataPlane {
	for _, dp := range h.Planes {
		if dp.Namespace == namespace && dp.Name == name {
			return dp
		}
	}
	return nil
}

// setReportedUnits sets the used units from the agent's report. dp may be nil.
func (p *Plane) setReportedUnits(dp *v1alpha1.DataPlane) {
	if dp == nil {
		return
	}
	for n := range p.Rooms {
		p.Rooms[n].UsedUnits = int(dp.Status.Capacity[p.Rooms[n].Type].UsedUnits)
	}
}
