package provision

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/metrics"
)

// drives makes passes of one process, whose metrics count, until it is done.
func (w *world) drives(done func() bool) *prometheus.Registry {
	w.t.Helper()
	reg := prometheus.NewRegistry()
	w.metrics = metrics.New(reg, w.clock)
	for range 50 {
		w.mustPass()
		if done() {
			w.mustPass()
			return reg
		}
		w.clock.Step(time.Hour)
	}
	w.t.Fatal("it does not end")
	return nil
}

func total(t *testing.T, reg *prometheus.Registry, name string) (n float64) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			n += m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return n
}

func TestInstallsAreCounted(t *testing.T) {
	const made, stopped = "hotspare_cluster_install_seconds", "hive_cluster_deployments_provision_failed_terminal_total"
	t.Run("one that succeeds after a failure is one", func(t *testing.T) {
		w := newWorld(t, request()...)
		w.lab.failures = 1
		reg := w.drives(w.installed)
		if total(t, reg, made) != 1 || total(t, reg, stopped) != 0 {
			t.Errorf("%v installed, %v given up, want 1 and 0", total(t, reg, made), total(t, reg, stopped))
		}
	})
	t.Run("one that is given up is one, whatever follows", func(t *testing.T) {
		w := newWorld(t, request(func(cd *hivev1.ClusterDeployment) { n := int32(2); cd.Spec.InstallAttemptsLimit = &n })...)
		w.lab.failures = 9
		reg := w.drives(func() bool { return condition.IsTrue(w.cluster().Status.Conditions, hivev1.ClusterProvisionStopped) })
		for range 3 {
			w.clock.Step(time.Hour)
			w.mustPass()
		}
		if total(t, reg, made) != 0 || total(t, reg, stopped) != 1 {
			t.Errorf("%v installed, %v given up, want 0 and 1", total(t, reg, made), total(t, reg, stopped))
		}
	})
}
