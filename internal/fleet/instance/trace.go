package instance

import (
	"slices"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// HasTrace reports whether the instance is still listed for the agent, or the agent still reports
// objects of it. A refused instance has no objects, unless it is no longer listed.
func HasTrace(a *v1alpha1.DataPlaneAgent, uid string) bool {
	if a.Status.Report != nil {
		for _, e := range a.Status.Report.Instances {
			if e.UID == uid && !e.Reserved {
				return e.Phase != v1alpha1.AgentDeleted
			}
		}
	}
	return slices.ContainsFunc(a.Spec.Instances, func(in v1alpha1.AgentInstance) bool { return in.UID == uid && !in.Reserved })
}
