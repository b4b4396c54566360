package instance

import (
	"time"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// A Snapshot is everything that a plan for an instance depends on.
type Snapshot struct {
	Now      time.Time
	Instance *v1alpha1.ServiceInstance
	// HasRegion is set when a FleetRegion has its provider and region.
	HasRegion bool
	// Planes are the data planes that its status may name, the most likely first. If there are
	// none, the data plane was deleted, which the API server has confirmed.
	Planes []Plane
	// Traces are other data planes that may have objects of an earlier placement, as
	// NAMESPACE/NAME. They are only read when the instance is being deleted.
	Traces []string
}

// A Plane is a data plane, and its agent's report about the instance.
type Plane struct {
	Namespace, Name string
	// InRegionNamespace is set when it is in the namespace of the FleetRegion that takes
	// precedence.
	InRegionNamespace bool
	PlaneState
	// Traced is set when its agent knows the instance at all.
	Traced bool
	// APISilent is set when the agent runs and the API of its data plane does not answer.
	APISilent bool
	// Report is the agent's last report about this placement of the instance; nil if there is none.
	Report *v1alpha1.InstanceReport
	// Refusal is what to record if it refuses the instance.
	Refusal v1alpha1.Refusal
}

// A PlaneState is the state of a data plane that matters to all its instances. It is comparable.
type PlaneState struct {
	// Released is set when its cluster is being released, which cannot be undone.
	Released bool
	// ClusterGone is set when its cluster no longer exists; ClusterDeleting is set when its cluster is being
	// deleted.
	ClusterGone, ClusterDeleting bool
	// AgentSilent is set when its agent does not report.
	AgentSilent bool
	// Unreadable says why it cannot be decoded; "" when it can.
	Unreadable string
}
