package fleetplan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/explain/remedy"
	"hotspare.io/hotspare/internal/fleet/facts"
)

// OtherPlane is a data plane about which nothing is decided.
type OtherPlane struct {
	Namespace string             `json:"namespace"`
	Name      string             `json:"name"`
	Ownership v1alpha1.Ownership `json:"ownership"`
	// FleetRegion is the name of its region; empty when it has none.
	FleetRegion string    `json:"fleetRegion,omitempty"`
	Phase       string    `json:"phase"`
	Created     time.Time `json:"created"`
	Instances   int       `json:"instances"`
	// Why says why nothing is decided.
	Why  string         `json:"why"`
	ToDo *remedy.Remedy `json:"toDo,omitempty"`
}

// ListOtherPlanes returns the data planes that the view v does not contain: those that belong to no
// region, or to one about which nothing is decided. Deleting a FleetRegion leaves its data planes
// as they are, and their clusters still cost money.
func (h *Hub) ListOtherPlanes(v Fleet, formatCommand remedy.CommandFormatter) []OtherPlane {
	covered := map[types.NamespacedName]bool{}
	for _, r := range v.Regions {
		for _, p := range r.DataPlanes {
			covered[types.NamespacedName{Namespace: r.Namespace, Name: p.Name}] = true
		}
	}
	var out []OtherPlane
	for _, dp := range h.Planes {
		if !covered[types.NamespacedName{Namespace: dp.Namespace, Name: dp.Name}] {
			out = append(out, h.buildOtherPlane(dp, formatCommand))
		}
	}
	slices.SortFunc(out, func(a, b OtherPlane) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out
}

func (h *Hub) buildOtherPlane(dp *v1alpha1.DataPlane, formatCommand remedy.CommandFormatter) OtherPlane {
	o := OtherPlane{
		Namespace: dp.Namespace, Name: dp.Name, Ownership: cmp.Or(dp.Spec.Ownership, v1alpha1.Managed), Phase: string(dp.Status.Phase),
		Created: dp.CreationTimestamp.Time,
	}
	for _, i := range h.Instances {
		if i.Status.DataPlaneName == dp.Name && i.Spec.Provider == dp.Spec.Provider && i.Spec.Region == dp.Spec.Region {
			o.Instances++
		}
	}
	if r := h.findRegion(dp); r != nil {
		o.FleetRegion, o.Why = r.Name, "its region has no plan"
		return o
	}
	o.Why = fmt.Sprintf("no FleetRegion of its namespace has provider %s and region %s", dp.Spec.Provider, dp.Spec.Region)
	if hasCluster(dp) {
		o.Why += ", and its cluster is kept"
	}
	o.ToDo = o.orphanRemedy(dp, formatCommand)
	return o
}

// hasCluster reports whether the data plane has a cluster that nothing releases.
func hasCluster(dp *v1alpha1.DataPlane) bool {
	switch dp.Status.Phase {
	case v1alpha1.PhaseProvisioned, v1alpha1.PhaseWaitingForAgent, v1alpha1.PhaseReady, v1alpha1.PhaseDeprovisioning:
		return dp.DeletionTimestamp == nil && !facts.IsClusterGone(dp)
	}
	return false
}

// orphanRemedy returns what a person can do about a data plane without a region; nil when it is
// being deleted.
func (o OtherPlane) orphanRemedy(dp *v1alpha1.DataPlane, formatCommand remedy.CommandFormatter) *remedy.Remedy {
	if dp.DeletionTimestamp != nil || dp.Status.Phase == v1alpha1.PhaseCleanup {
		return nil
	}
	create := fmt.Sprintf("Create a FleetRegion of provider %s and region %s in namespace %s", dp.Spec.Provider, dp.Spec.Region, dp.Namespace)
	remove := formatCommand(dp.Namespace, "kubectl delete dataplane %s", dp.Name)
	switch {
	case o.Instances > 0:
		return remedy.New(create+" again: without one, the status of the instances on the data plane is not updated. "+
			"To release its cluster instead, delete the instances, then the DataPlane.",
			formatCommand(dp.Namespace, "kubectl apply -f fleetregion.yaml"))
	case o.Ownership == v1alpha1.Registered:
		return remedy.New(create+" to use it; or delete it, which leaves its cluster to you.", remove)
	case dp.Status.Phase == v1alpha1.PhaseFailed:
		return remedy.New("Delete it: it failed, and its cluster was released.", remove)
	}
	return remedy.New(create+" to use it; or delete it to release its cluster.", remove)
}

// PlanesWithoutRegion returns the data planes that belong to no region.
func (f Fleet) PlanesWithoutRegion() []OtherPlane {
	return slices.DeleteFunc(slices.Clone(f.OtherDataPlanes), func(o OtherPlane) bool { return o.FleetRegion != "" })
}
