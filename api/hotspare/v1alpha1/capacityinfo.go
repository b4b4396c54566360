package v1alpha1

// DynamicCapacityInfo is the capacity of a data plane for one instance type, in the form that
// kas-fleet-manager uses.
type DynamicCapacityInfo struct {
	// MaxNodes is the maximum number of worker nodes for the type.
	MaxNodes int32 `json:"max_nodes"`
	// MaxUnits is the number of streaming units that fit on this number of nodes.
	MaxUnits int32 `json:"max_units"`
	// RemainingUnits is the number of units that are free.
	RemainingUnits int32 `json:"remaining_units"`
}

// RetrieveDynamicCapacityInfo returns a copy of status.capacity, by instance type. Later changes of
// the status do not affect it.
func (d *DataPlane) RetrieveDynamicCapacityInfo() map[string]DynamicCapacityInfo {
	out := make(map[string]DynamicCapacityInfo, len(d.Status.Capacity))
	for name, c := range d.Status.Capacity {
		out[name] = DynamicCapacityInfo{MaxNodes: c.MaxNodes, MaxUnits: c.MaxUnits, RemainingUnits: c.RemainingUnits}
	}
	return out
}

// SetDynamicCapacityInfo sets status.capacity to the types in info and removes all other types.
// Fields that DynamicCapacityInfo does not have keep their values; the used units are computed.
func (d *DataPlane) SetDynamicCapacityInfo(info map[string]DynamicCapacityInfo) {
	next := make(map[string]TypeCapacity, len(info))
	for name, i := range info {
		c := d.Status.Capacity[name]
		c.MaxNodes, c.MaxUnits, c.RemainingUnits = i.MaxNodes, i.MaxUnits, i.RemainingUnits
		c.UsedUnits = i.MaxUnits - i.RemainingUnits
		next[name] = c
	}
	d.Status.Capacity = next
}
