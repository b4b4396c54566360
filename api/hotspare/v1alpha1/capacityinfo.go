package v1alpha1

// DynamicCapacityInfo is the capacity of a data plane for one instance type, in the form
// in which kas-fleet-manager keeps it.
type DynamicCapacityInfo struct {
	// MaxNodes is the maximum number of worker nodes for the type.
	MaxNodes int32 `json:"max_nodes"`
	// MaxUnits is how many streaming units fit on so many nodes.
	MaxUnits int32 `json:"max_units"`
	// RemainingUnits is how many of them are left.
	RemainingUnits int32 `json:"remaining_units"`
}

// RetrieveDynamicCapacityInfo returns what status.capacity says of each type. The map is
// the caller's: changes of it change nothing here, and it has to be asked for again.
func (o *DataPlane) RetrieveDynamicCapacityInfo() map[string]DynamicCapacityInfo {
	out := make(map[string]DynamicCapacityInfo, len(o.Status.Capacity))
	for name, c := range o.Status.Capacity {
		out[name] = DynamicCapacityInfo{MaxNodes: c.MaxNodes, MaxUnits: c.MaxUnits, RemainingUnits: c.RemainingUnits}
	}
	return out
}

// SetDynamicCapacityInfo has status.capacity say this of these types, and nothing of
// others. What a DynamicCapacityInfo does not tell of a type stays as it was; the used
// units follow from the rest.
func (o *DataPlane) SetDynamicCapacityInfo(info map[string]DynamicCapacityInfo) {
	next := make(map[string]TypeCapacity, len(info))
	for name, i := range info {
		c := o.Status.Capacity[name]
		c.MaxNodes, c.MaxUnits, c.RemainingUnits = i.MaxNodes, i.MaxUnits, i.RemainingUnits
		c.UsedUnits = i.MaxUnits - i.RemainingUnits
		next[name] = c
	}
	o.Status.Capacity = next
}
