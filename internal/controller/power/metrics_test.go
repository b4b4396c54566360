package power

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/metrics"
)

// measured is how often each duration was measured, and the sum of them in seconds.
func measured(t *testing.T, reg *prometheus.Registry) map[string][2]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][2]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			h := m.GetHistogram()
			out[strings.TrimPrefix(f.GetName(), "hive_cluster_deployments_")] = [2]float64{float64(h.GetSampleCount()), h.GetSampleSum()}
		}
	}
	return out
}

func TestTransitionsAreMeasured(t *testing.T) {
	h, reg := newHub(t), prometheus.NewRegistry()
	h.Metrics = metrics.New(reg, h.sim.clock)
	h.until("Running")
	if diff := cmp.Diff(map[string][2]float64{}, measured(t, reg)); diff != "" {
		t.Errorf("coming up after the install is no resume: %s", diff)
	}
	h.edit(wants(hivev1.PowerHibernating))
	began := h.sim.clock.Now()
	h.until("Hibernating")
	asleep := h.sim.clock.Since(began).Seconds()
	h.edit(wants(hivev1.PowerRunning))
	began = h.sim.clock.Now()
	h.until("Running")
	h.pass()
	awake := h.sim.clock.Since(began).Seconds()
	got := measured(t, reg)
	for name, most := range map[string]float64{"hibernation_transition_seconds": asleep, "running_transition_seconds": awake} {
		if got[name][0] != 1 || got[name][1] < most-2 || got[name][1] > most+1 { // it is kept in seconds
			t.Errorf("%s: %v, want one of about %v s", name, got[name], most)
		}
	}
}

func TestHibernateAfterIsTold(t *testing.T) {
	span := hivev1.Duration("8h")
	h := newHub(t, func(cd *hivev1.ClusterDeployment) { cd.Spec.HibernateAfter = &span })
	h.until("Hibernating")
	if told := h.told("Normal HibernateAfter "); told != 1 {
		t.Errorf("told %d times who put the cluster to sleep, want once", told)
	}
}
