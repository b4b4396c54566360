package power

import (
	"strings"
	"testing"
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
)

// A resume is over when the cluster's controller manager has been seen to act.
func TestAResumeWaitsForTheControllerManager(t *testing.T) {
	h := newHub(t)
	h.until("Running")
	if h.sent != 0 {
		t.Error("coming up after the install is no resume: nobody has to prove anything")
	}
	h.edit(wants(hivev1.PowerHibernating))
	h.until("Hibernating")
	h.lazy = true
	h.edit(wants(hivev1.PowerRunning))
	h.until("WaitingForControllers")
	for range 5 {
		h.sim.clock.Step(h.pass())
	}
	if got := h.reason(hivev1.ClusterReady); got != "False WaitingForControllers" || h.sent != 1 || h.dismissed != 0 {
		t.Errorf("%s after %d probes, %d deleted; want one probe that is waited for", got, h.sent, h.dismissed)
	}
	first := h.sim.probe.Mark
	h.sim.probe.Done = true
	h.until("Running")
	if h.dismissed != 1 {
		t.Errorf("the probe was deleted %d times, want once", h.dismissed)
	}
	h.lazy = false
	h.sim.clock.Step(time.Minute)
	h.edit(wants(hivev1.PowerHibernating))
	h.until("Hibernating")
	h.sim.probe.Mark, h.sim.probe.Done = first, true // it could not be deleted
	h.edit(wants(hivev1.PowerRunning))
	h.until("Running")
	if h.sent != 2 {
		t.Errorf("%d probes in two resumes: the second must not count what was done in the first", h.sent)
	}
}

func TestAClusterThatRefusesTheResumeProbeIsNotDelayed(t *testing.T) {
	h := newHub(t)
	h.closed = "a policy of the cluster forbids it"
	h.edit(wants(hivev1.PowerHibernating))
	h.until("Hibernating")
	h.edit(wants(hivev1.PowerRunning))
	h.until("Running")
	if got := condition.Find(h.get().Status.Conditions, hivev1.ClusterReady).Message; !strings.Contains(got, h.closed) {
		t.Errorf("it does not say that nobody knows: %s", got)
	}
}
