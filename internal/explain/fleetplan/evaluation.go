package fleetplan

import (
	"slices"
	"strings"
	"time"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fleet/facts"
	"hotspare.io/hotspare/internal/fleet/scaling"
)

// Evaluation is the decision about one region, and the facts behind it.
type Evaluation struct {
	facts.Objects
	Facts scaling.Snapshot
	Plan  scaling.Plan
	// Parked says why nothing is decided; empty when something is.
	Parked   string
	Reserved []Reserve
}

// Reserve lists the reserved instances that one data plane should have. It is part of the output of
// -o json, and has no null list.
type Reserve struct {
	DataPlane string                     `json:"dataPlane"`
	Blocked   bool                       `json:"blocked"`
	Reason    scaling.Reason             `json:"reason"`
	Message   string                     `json:"message"`
	Instances []scaling.ReservedInstance `json:"instances"`
}

// EvaluateRegion decides about a region as its controller would. regions must contain every
// FleetRegion: an older one with the same provider and region parks this one. It returns an error
// if the region cannot be decoded.
func EvaluateRegion(o facts.Objects, regions []*v1alpha1.FleetRegion, now time.Time) (Evaluation, error) {
	e := Evaluation{Objects: o, Reserved: []Reserve{}}
	if e.Parked = facts.RegionDuplicateReason(e.Region, regions); e.Parked != "" {
		return e, nil
	}
	var err error
	if e.Facts, err = e.BuildSnapshot(now); err != nil {
		return e, err
	}
	e.Plan = scaling.Decide(e.Facts)
	for _, p := range e.Facts.Planes {
		if w := e.Facts.Region.PlanPrewarm(p); w.Blocked || len(w.Want) > 0 {
			e.Reserved = append(e.Reserved, Reserve{p.Name, w.Blocked, w.Reason, w.Message, append([]scaling.ReservedInstance{}, w.Want...)})
		}
	}
	slices.SortFunc(e.Reserved, func(a, b Reserve) int { return strings.Compare(a.DataPlane, b.DataPlane) })
	return e, nil
}
