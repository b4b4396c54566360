package fleetplan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/explain/remedy"
)

// The data planes of a deleted FleetRegion stay, and each says what to do.
func TestADataPlaneWithoutARegionSaysWhatToDo(t *testing.T) {
	const (
		lacks  = "no FleetRegion of its namespace has provider local and region laptop"
		create = "Create a FleetRegion of provider local and region laptop in namespace fleet"
		remove = "hotspare -n fleet kubectl delete dataplane a"
	)
	for name, c := range map[string]struct {
		make      func(*Hub, *v1alpha1.DataPlane)
		why, todo string
	}{
		"an empty one": {func(*Hub, *v1alpha1.DataPlane) {}, lacks + ", and its cluster is kept", create + " to use it; or delete it to release its cluster. " + remove},
		"one with an instance": {
			func(h *Hub, _ *v1alpha1.DataPlane) { h.instance("x", "x1", "a") }, lacks + ", and its cluster is kept",
			create + " again: without one, the status of the instances on the data plane is not updated. To release its cluster instead, " +
				"delete the instances, then the DataPlane. hotspare -n fleet kubectl apply -f fleetregion.yaml",
		},
		"one of somebody else's cluster": {
			func(_ *Hub, dp *v1alpha1.DataPlane) { dp.Spec.Ownership = v1alpha1.Registered }, lacks + ", and its cluster is kept",
			create + " to use it; or delete it, which leaves its cluster to you. " + remove,
		},
		"one that failed": {
			func(_ *Hub, dp *v1alpha1.DataPlane) { dp.Status.Phase = v1alpha1.PhaseFailed }, lacks,
			"Delete it: it failed, and its cluster was released. " + remove,
		},
		"one that is being deleted": {func(_ *Hub, dp *v1alpha1.DataPlane) { dp.DeletionTimestamp = &metav1.Time{Time: now} }, lacks, ""},
		"one that is given back":    {func(_ *Hub, dp *v1alpha1.DataPlane) { dp.Status.Phase = v1alpha1.PhaseCleanup }, lacks, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := small()
			h.Regions = nil
			c.make(h, h.plane("a", v1alpha1.PhaseReady, 4))
			v := h.EvaluateFleet(h.Regions, now, remedy.FormatPlainCommand)
			v.OtherDataPlanes = h.ListOtherPlanes(v, remedy.FormatPlainCommand)
			strays := v.PlanesWithoutRegion()
			if len(strays) != 1 {
				t.Fatalf("the strays are %+v", strays)
			}
			todo := ""
			if do := strays[0].ToDo; do != nil {
				todo = do.Text + " " + do.Command
			}
			if diff := cmp.Diff([]string{c.why, c.todo}, []string{strays[0].Why, todo}); diff != "" {
				t.Error(diff)
			}
		})
	}
}
