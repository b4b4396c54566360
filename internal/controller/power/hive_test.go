package power

import (
	"errors"
	"strings"
	"testing"
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/condition"
)

// The faults of Hive's power controller that show in the controller as a whole,
// by the codes of docs/hive-parity.md. The rest is in internal/power.

// D2: the word, both conditions, and what the machines do, in every pass of a
// history with two flips: Hive ends with Hibernating and Ready both True.
func TestD2WhatIsStoredNeverContradictsItself(t *testing.T) {
	h := newHub(t)
	h.until("Running")
	for _, flip := range []struct {
		to    hivev1.PowerState
		until string
	}{
		{hivev1.PowerHibernating, "WaitingForMachinesToStop"},
		{hivev1.PowerRunning, "WaitingForMachines"},
		{hivev1.PowerHibernating, "WaitingForMachinesToStop"},
		{hivev1.PowerRunning, "Running"},
		{hivev1.PowerHibernating, "Hibernating"},
	} {
		h.edit(wants(flip.to))
		for range 1000 {
			next := h.pass()
			got := h.get().Status.PowerState
			asleep, up := h.reason(hivev1.ClusterHibernating) == "True Hibernating", h.reason(hivev1.ClusterReady) == "True Running"
			if asleep != (got == "Hibernating") || up != (got == "Running") {
				t.Fatalf("powerState %s, Hibernating %s, Ready %s", got, h.reason(hivev1.ClusterHibernating), h.reason(hivev1.ClusterReady))
			}
			if up && flip.to == hivev1.PowerHibernating {
				t.Fatal("Ready after it was told to hibernate")
			}
			if got == flip.until {
				break
			}
			h.sim.clock.Step(next)
		}
		if got := h.get().Status.PowerState; got != flip.until {
			t.Fatalf("it is %s, never %s", got, flip.until)
		}
	}
}

// D11: Hive hands an API that boots to its queue as an error, which backs off to
// a quarter of an hour.
func TestD11AnAPIThatBootsIsNoError(t *testing.T) {
	h := newHub(t)
	cycle(h)
	h.edit(wants(hivev1.PowerHibernating))
	h.until("Hibernating")
	h.apiDown = true
	h.edit(wants(hivev1.PowerRunning))
	h.until("WaitingForNodes")
	for up := h.sim.clock.Now().Add(20 * time.Minute); h.sim.clock.Now().Before(up); {
		h.sim.clock.Step(h.pass()) // fails on an error
	}
	h.apiDown = false
	came := h.sim.clock.Now()
	h.until("Running")
	if late := h.sim.clock.Since(came); late > 30*time.Second {
		t.Errorf("noticed %s after it came", late)
	}
}

// D14: a machine that changes behind our back is found without any event.
func TestD14DriftIsFoundByTheTimer(t *testing.T) {
	h := newHub(t)
	h.until("Running")
	next := h.pass()
	h.vms[1].State = cloud.Stopped // nobody tells
	h.sim.clock.Step(next)
	h.pass()
	if got := h.get().Status.PowerState; got != "StartingMachines" || next > 10*time.Minute {
		t.Errorf("%s later it is %s", next, got)
	}
	h.until("Running")
}

// D15: Hive asks the cloud about a fake cluster that has hibernateAfter.
func TestD15NoCloudIsAskedAboutAFakeCluster(t *testing.T) {
	h := newHub(t, annotate(hivev1.AnnotationFake), func(cd *hivev1.ClusterDeployment) {
		span := hivev1.Duration("2h")
		cd.Spec.HibernateAfter = &span
	})
	h.until("Running")
	h.sim.clock.Step(h.pass())
	h.until("Hibernating")
	if h.observed+h.started+h.stopped+h.looked != 0 {
		t.Errorf("observed %d, started %d, stopped %d, asked %d times", h.observed, h.started, h.stopped, h.looked)
	}
}

// D17: Hive hides an error whose text has the word 401 or 403, and waits for 17
// minutes.
func TestD17AnErrorIsToldWhateverItsText(t *testing.T) {
	h := newHub(t)
	h.until("Running")
	h.edit(wants(hivev1.PowerHibernating))
	h.pass()
	h.refuse = errors.New("reservation 401 conflicts with 403")
	h.until("FailedToStop")
	c := condition.Find(h.get().Status.Conditions, hivev1.ClusterHibernating)
	if !strings.Contains(c.Message, h.refuse.Error()) {
		t.Errorf("told %q", c.Message)
	}
	h.refuse = nil
	healed := h.sim.clock.Now()
	h.until("Hibernating")
	if late := h.sim.clock.Since(healed); late > 5*time.Minute {
		t.Errorf("noticed after %s", late)
	}
}

// D19: Hive writes every cluster at least every two hours although nothing is new,
// and wakes all who watch it.
func TestD19NothingNewIsNotWritten(t *testing.T) {
	down := func(h *hub) { h.apiDown = true }
	asleep := func(h *hub) {
		h.edit(wants(hivev1.PowerHibernating))
		h.until("Hibernating")
	}
	for name, c := range map[string]struct {
		change func(*hub)
		word   string
	}{
		"a running cluster":           {func(*hub) {}, "Running"},
		"a hibernating one":           {asleep, "Hibernating"},
		"one whose API has gone away": {down, "WaitingForNodes"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			h.until("Running")
			c.change(h)
			h.until(c.word)
			writes, end := h.writes, h.sim.clock.Now().Add(24*time.Hour)
			for h.sim.clock.Now().Before(end) {
				h.sim.clock.Step(h.pass())
			}
			if h.writes != writes {
				t.Errorf("%d writes in a day", h.writes-writes)
			}
		})
	}
}

// D20: Hive probes clusters that sleep, and each of them holds a worker until it
// gives up.
func TestD20AClusterThatSleepsIsNotProbed(t *testing.T) {
	h := newHub(t)
	h.until("Running")
	h.edit(wants(hivev1.PowerHibernating))
	h.until("Stopping")
	looked := h.looked
	h.until("Hibernating")
	for range 10 {
		h.sim.clock.Step(h.pass())
	}
	if h.looked != looked {
		t.Errorf("asked %d times", h.looked-looked)
	}
	if got := h.reason(hivev1.ClusterUnreachable); got != "True Hibernating" {
		t.Errorf("Unreachable is %s", got)
	}
}
