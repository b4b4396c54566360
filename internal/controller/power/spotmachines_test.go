package power

import (
	"strings"
	"testing"
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/power"
)

// spotHub is a hub whose cluster has spot machines a, which ends when it stops, and b, which does not.
func spotHub(t *testing.T) *hub {
	h := newHub(t)
	h.Actuators = cloud.Registry{"aws": &spotSim{h.sim}}
	made := h.sim.clock.Now().Add(-time.Hour)
	h.spots = []power.SpotMachine{
		{Name: "a", UID: "a", ProviderID: "id-a", Created: made, Joined: true},
		{Name: "b", UID: "b", ProviderID: "id-b", Created: made, Joined: true},
	}
	h.kept = []string{"id-a", "id-b"}
	h.until("Running")
	h.edit(wants(hivev1.PowerHibernating))
	h.until("Hibernating")
	h.kept = []string{"id-b"}
	h.edit(wants(hivev1.PowerRunning))
	return h
}

func TestAResumeReplacesLostSpotMachines(t *testing.T) {
	h := spotHub(t)
	h.until("Running")
	if got := strings.Join(h.replaced, " "); got != "a" {
		t.Errorf("replaced %q, want a once and nothing else", got)
	}
	if n := h.told("Normal SpotMachineReplaced deleted Machine a:"); n != 1 {
		t.Errorf("%d events of it, want 1", n)
	}
	h.kept = nil // a running cluster's machines are its own business
	h.sim.clock.Step(h.pass())
	h.edit(annotate(hivev1.AnnotationPowerPause))
	h.sim.clock.Step(h.pass())
	h.edit(func(cd *hivev1.ClusterDeployment) { delete(cd.Annotations, hivev1.AnnotationPowerPause) })
	h.until("Running")
	if len(h.replaced) != 1 {
		t.Errorf("replaced %q in a cluster that runs", h.replaced)
	}
}

func TestASpotMachineThatCannotBeReplacedIsTold(t *testing.T) {
	h := spotHub(t)
	h.barred = "the admin kubeconfig may not delete Machines"
	h.until("WaitingForNodes")
	if got := condition.Find(h.get().Status.Conditions, hivev1.ClusterReady).Message; !strings.HasSuffix(got, "Machines cannot be deleted: "+h.barred+".") {
		t.Error(got)
	}
	h.barred = ""
	h.until("Running")
}

// A crash at any write replaces nothing twice.
func TestAReplacementSurvivesACrash(t *testing.T) {
	for die := 1; die < 8; die++ {
		h := spotHub(t)
		h.writes, h.dieAfter = 0, die
		h.until("Running")
		if got := strings.Join(h.replaced, " "); got != "a" {
			t.Errorf("killed after write %d: replaced %q, want a", die, got)
		}
	}
}
