package sizing

import "hotspare.io/hotspare/internal/cloud"

// Prices are in any currency, for each hour of an unclaimed cluster.
type Prices struct {
	Running     float64 `json:"running"`
	Hibernating float64 `json:"hibernating"`
	// Frozen, Suspended and Stopped are of a cluster that hibernates at depth freeze, suspend and stop; nil is
	// Hibernating.
	Frozen    *float64 `json:"frozen,omitempty"`
	Suspended *float64 `json:"suspended,omitempty"`
	Stopped   *float64 `json:"stopped,omitempty"`
}

// AtDepth returns the price of a cluster that hibernates at a depth. A depth that does not exist is stop.
func (p Prices) AtDepth(d cloud.Depth) float64 {
	price := p.Stopped
	switch d {
	case cloud.DepthFreeze:
		price = p.Frozen
	case cloud.DepthSuspend:
		price = p.Suspended
	}
	if price == nil {
		return p.Hibernating
	}
	return *price
}

// SleepCost returns what hours of hibernating clusters cost, some of which are at shallow depths.
func (p Prices) SleepCost(hours float64, shallow PerShallowDepth[float64]) float64 {
	cost := (hours - shallow.Freeze - shallow.Suspend) * p.AtDepth(cloud.DepthStop)
	for _, depth := range ShallowDepths() {
		cost += *shallow.Of(depth) * p.AtDepth(depth)
	}
	return cost
}
