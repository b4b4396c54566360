package serviceinstance

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/metrics"
)

func TestTheCensusCountsEachOnce(t *testing.T) {
	old, young := newRegion("fleet", time.Hour), newRegion("younger", 0)
	old.Status.InstanceTypes = []v1alpha1.RegionTypeStatus{{Name: "standard", MaxUnits: 6}}
	elsewhere := newPlane("fleet", "z")
	elsewhere.Spec.Region = "eu-west-1"
	fresh := newPlane("fleet", "new")
	fresh.Status.Phase = ""
	mute := newPlane("younger", "q")
	meta.SetStatusCondition(&mute.Status.Conditions, metav1.Condition{Type: v1alpha1.DataPlaneAgentLive, Status: metav1.ConditionFalse, Reason: "Silent"})
	got, err := CountFleets(t.Context(), newHub(t, old, young, newPlane("fleet", "p"), fresh, elsewhere, mute,
		named("a", "p"), named("b", "p"), newInstance()))
	if err != nil {
		t.Fatal(err)
	}
	want := map[types.NamespacedName]metrics.Fleet{
		{Namespace: "fleet", Name: "use1"}: {
			Types:      old.Status.InstanceTypes,
			DataPlanes: map[v1alpha1.DataPlanePhase]int{v1alpha1.PhaseReady: 1, v1alpha1.PhaseAccepted: 1},
			Instances:  map[v1alpha1.InstancePhase]int{v1alpha1.InstanceReady: 2, v1alpha1.InstancePending: 1},
		},
		{Namespace: "younger", Name: "use1"}: {DataPlanes: map[v1alpha1.DataPlanePhase]int{v1alpha1.PhaseReady: 1}, Silent: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
