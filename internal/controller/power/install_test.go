package power

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

func TestFlipsDuringTheInstallCostNothing(t *testing.T) {
	h := newHub(t, func(cd *hivev1.ClusterDeployment) { cd.Spec.Installed, cd.Status.InstalledTimestamp = false, nil })
	for range 5 {
		for _, to := range []hivev1.PowerState{hivev1.PowerHibernating, hivev1.PowerRunning, hivev1.PowerHibernating} {
			h.edit(wants(to))
			if next := h.pass(); next != 0 {
				t.Errorf("looks again in %s, for nothing", next)
			}
		}
	}
	if h.writes != 1 || h.observed+h.looked+h.started+h.stopped > 0 || len(h.events.Events) > 0 {
		t.Errorf("%d writes, machines observed %d times, %d events", h.writes, h.observed, len(h.events.Events))
	}
	h.edit(func(cd *hivev1.ClusterDeployment) { cd.Spec.Installed = true })
	at := metav1.NewTime(h.sim.clock.Now())
	cd := h.get()
	cd.Status.InstalledTimestamp = &at
	if err := h.Client.Status().Update(t.Context(), cd); err != nil {
		t.Fatal(err)
	}
	h.until("Hibernating")
	if h.started > 0 {
		t.Errorf("started %d times on its way to sleep", h.started)
	}
}
