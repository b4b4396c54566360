package fleetplan

import (
	"slices"
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/explain/remedy"
	"hotspare.io/hotspare/internal/fleet/facts"
)

// Hub has the fleet objects of a hub, as read. Planes and Pools may be limited to one namespace;
// Regions, Types and Instances must be complete, because a region may have an older duplicate, and
// instances are ordered from any namespace. This package does not change them.
type Hub struct {
	Regions   []*v1alpha1.FleetRegion
	Types     []*v1alpha1.InstanceType
	Planes    []*v1alpha1.DataPlane
	Instances []*v1alpha1.ServiceInstance
	Pools     []*hivev1.ClusterPool
	// PoolsAssumed assumes that pools missing from Pools exist.
	PoolsAssumed bool
}

// RegionsInNamespace returns the regions of a namespace, or all when namespace is empty.
func (h *Hub) RegionsInNamespace(namespace string) []*v1alpha1.FleetRegion {
	var out []*v1alpha1.FleetRegion
	for _, r := range h.Regions {
		if namespace == "" || r.Namespace == namespace {
			out = append(out, r)
		}
	}
	return out
}

// EvaluateFleet decides about regions and returns a view of them. A region that cannot be decoded,
// or is being deleted, is Parked with the reason; the others are not affected.
func (h *Hub) EvaluateFleet(regions []*v1alpha1.FleetRegion, now time.Time, formatCommand remedy.CommandFormatter) Fleet {
	v := Fleet{Now: now, Regions: []Region{}}
	for _, r := range regions {
		e, err := h.evaluateRegion(r, now)
		switch {
		case r.DeletionTimestamp != nil:
			e.Parked = beingDeletedMessage
		case err != nil:
			e.Parked = err.Error()
		}
		v.Regions = append(v.Regions, e.buildRegionView(formatCommand))
	}
	return v
}

const beingDeletedMessage = "it is being deleted"

// evaluateRegion decides about a region as its controller does.
func (h *Hub) evaluateRegion(r *v1alpha1.FleetRegion, now time.Time) (Evaluation, error) {
	alive := slices.DeleteFunc(slices.Clone(h.Regions), func(r *v1alpha1.FleetRegion) bool { return r.DeletionTimestamp != nil })
	return EvaluateRegion(h.regionObjects(r), alive, now)
}

// regionObjects returns a region and the objects that its plan may depend on.
func (h *Hub) regionObjects(r *v1alpha1.FleetRegion) facts.Objects {
	o := facts.Objects{
		Region: r, Types: map[string]*v1alpha1.InstanceType{}, Planes: h.Planes, Instances: h.Instances,
		Pools: map[string]*hivev1.ClusterPool{}, PoolsAssumed: h.PoolsAssumed,
	}
	for _, t := range h.Types {
		o.Types[t.Name] = t
	}
	for _, p := range h.Pools {
		if p.Namespace == r.Namespace {
			o.Pools[p.Name] = p
		}
	}
	return o
}

// findRegion returns the region of a data plane; nil when it has none.
func (h *Hub) findRegion(dp *v1alpha1.DataPlane) *v1alpha1.FleetRegion {
	for _, r := range h.Regions {
		if r.Namespace == dp.Namespace && r.Spec.Provider == dp.Spec.Provider && r.Spec.Region == dp.Spec.Region {
			return r
		}
	}
	return nil
}
