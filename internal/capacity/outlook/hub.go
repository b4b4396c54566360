package outlook

import (
	"slices"
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/advice"
	"hotspare.io/hotspare/internal/capacity/facts"
)

// Hub is what a hub has of fleets, as read. Data planes and pools may be those of one
// namespace; regions, types and instances are all there are, since a region may have an
// older twin, and instances are ordered from anywhere. Nothing here changes them.
type Hub struct {
	Regions   []*v1alpha1.FleetRegion
	Types     []*v1alpha1.InstanceType
	Planes    []*v1alpha1.DataPlane
	Instances []*v1alpha1.ServiceInstance
	Pools     []*hivev1.ClusterPool
	// PoolsAssumed takes pools that are not among them to be there.
	PoolsAssumed bool
}

// RegionsInNamespace are the regions of a namespace, or all when it is empty.
func (h *Hub) RegionsInNamespace(namespace string) []*v1alpha1.FleetRegion {
	var out []*v1alpha1.FleetRegion
	for _, r := range h.Regions {
		if namespace == "" || r.Namespace == namespace {
			out = append(out, r)
		}
	}
	return out
}

// EvaluateFleet decides about regions and tells of them. Of one that cannot be read, or is being
// deleted, it says so, and tells of the others.
func (h *Hub) EvaluateFleet(regions []*v1alpha1.FleetRegion, now time.Time, spell advice.Speller) Fleet {
	v := Fleet{Now: now, Regions: []Region{}}
	for _, r := range regions {
		e, err := h.evaluateRegion(r, now)
		switch {
		case r.DeletionTimestamp != nil:
			e.Parked = beingDeletedMessage
		case err != nil:
			e.Parked = err.Error()
		}
		v.Regions = append(v.Regions, e.buildRegionView(spell))
	}
	return v
}

const beingDeletedMessage = "it is being deleted"

// evaluateRegion decides about a region as its controller does.
func (h *Hub) evaluateRegion(r *v1alpha1.FleetRegion, now time.Time) (Evaluation, error) {
	alive := slices.DeleteFunc(slices.Clone(h.Regions), func(r *v1alpha1.FleetRegion) bool { return r.DeletionTimestamp != nil })
	return EvaluateRegion(h.regionObjects(r), alive, now)
}

// regionObjects are a region and all that may have to do with it.
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

// findRegion is the region of a data plane; nil when it has none.
func (h *Hub) findRegion(dp *v1alpha1.DataPlane) *v1alpha1.FleetRegion {
	for _, r := range h.Regions {
		if r.Namespace == dp.Namespace && r.Spec.Provider == dp.Spec.Provider && r.Spec.Region == dp.Spec.Region {
			return r
		}
	}
	return nil
}
