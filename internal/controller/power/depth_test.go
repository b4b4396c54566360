package power

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/condition"
)

// depthSim is a cloud whose machines can be frozen and suspended, except where it refuses that.
type depthSim struct {
	*sim
	refuses []cloud.Depth
	asked   []cloud.Depth
}

func (s *depthSim) ReportDepths(hivev1.Platform) []cloud.DepthSupport {
	return []cloud.DepthSupport{{Depth: cloud.DepthFreeze}, {Depth: cloud.DepthSuspend}}
}

func (s *depthSim) Stop(ctx context.Context, ref cloud.Ref) error {
	depth := ref.SelectDepth(func(cloud.Depth) bool { return true })
	s.asked = append(s.asked, depth)
	if slices.Contains(s.refuses, depth) {
		var errs []error
		for _, m := range s.vms {
			errs = append(errs, cloud.RefuseDepth(depth, m.Name, "it has local disks"))
		}
		return errors.Join(errs...)
	}
	for _, m := range s.vms {
		if m.IsAsleepAbove(ref.Depth) {
			m.State, m.until, m.Depth = cloud.Stopping, s.clock.Now().Add(stopping), ""
		}
	}
	return s.sim.Stop(ctx, ref)
}

func (s *depthSim) Observe(ctx context.Context, ref cloud.Ref) (cloud.Machines, error) {
	ms, err := s.sim.Observe(ctx, ref)
	for i := range ms {
		if ms[i].State == cloud.Stopped && len(s.asked) > 0 {
			ms[i].Depth = s.asked[len(s.asked)-1]
			s.vms[i].Depth = ms[i].Depth
		}
	}
	return ms, err
}

// depthHub is a hub with a running cluster on such a cloud.
func depthHub(t *testing.T, refuses ...cloud.Depth) (*hub, *depthSim) {
	t.Helper()
	h := newHub(t)
	s := &depthSim{sim: h.sim, refuses: refuses}
	h.Actuators = cloud.Registry{"aws": s}
	h.until("Running")
	return h, s
}

func wantsDepth(depth string) func(*hivev1.ClusterDeployment) {
	return func(cd *hivev1.ClusterDeployment) {
		cd.Spec.PowerState = hivev1.PowerHibernating
		cd.Annotations = map[string]string{hivev1.AnnotationSleepDepth: depth}
	}
}

func (h *hub) sleeps(t *testing.T, depth, message string) {
	t.Helper()
	cd := h.get()
	c := condition.Find(cd.Status.Conditions, hivev1.ClusterHibernating)
	if r := cd.Status.PowerTransition; r.Depth != depth || !strings.Contains(c.Message, message) {
		t.Errorf("it sleeps at depth %q: %s", r.Depth, c.Message)
	}
}

func TestAClusterSleepsAtTheDepthOfItsAnnotation(t *testing.T) {
	h, s := depthHub(t)
	h.edit(wantsDepth("freeze"))
	h.until("Hibernating")
	h.sleeps(t, "freeze", "The cluster is hibernating at depth freeze.")
	writes := h.writes
	h.pass()
	if h.writes != writes {
		t.Error("a pass that changes nothing writes")
	}

	h.edit(wantsDepth("suspend"))
	h.pass()
	if got := h.get().Status.PowerState; got == hivev1.StatusHibernating {
		t.Errorf("about to sleep deeper, it is %s", got)
	}
	h.until("Hibernating")
	h.sleeps(t, "suspend", "The cluster is hibernating at depth suspend.")

	h.edit(wants(hivev1.PowerRunning))
	h.until("Running")
	if got := h.get().Status.PowerTransition; got.Depth != "suspend" {
		t.Errorf("the resume does not record that it woke from suspend: %+v", got)
	}
	if got := slices.Compact(slices.Clone(s.asked)); !slices.Equal(got, []cloud.Depth{"freeze", "suspend"}) {
		t.Errorf("asked for %v", s.asked)
	}
	if n := h.told("Warning"); n > 0 {
		t.Errorf("%d warnings", n)
	}
}

func TestARefusedDepthIsAskedForOnceInAHibernation(t *testing.T) {
	h, s := depthHub(t, cloud.DepthFreeze, cloud.DepthSuspend)
	for range 2 {
		s.asked = nil
		h.edit(wantsDepth("freeze"))
		h.until("Hibernating")
		if !slices.Equal(s.asked, []cloud.Depth{"freeze", "suspend", "stop"}) {
			t.Errorf("asked for %v", s.asked)
		}
		h.sleeps(t, "stop", "The requested depth freeze is not possible: machine m0 cannot sleep at depth freeze: it has local disks (and 1 more machines); machine m0 cannot sleep at depth suspend")
		h.pass()
		h.edit(wants(hivev1.PowerRunning))
		h.until("Running")
	}
	if n := h.told("Warning"); n > 0 {
		t.Errorf("%d warnings: a refused depth is no failure", n)
	}
}

func TestADepthThatDoesNotExistIsReported(t *testing.T) {
	h, s := depthHub(t)
	h.edit(wantsDepth("nap"))
	h.until("Hibernating")
	h.sleeps(t, "stop", `The annotation hotspare.io/sleep-depth is ignored: there is no depth of sleep "nap": choose one of freeze, suspend, stop.`)
	if !slices.Equal(s.asked, []cloud.Depth{"stop"}) {
		t.Errorf("asked for %v", s.asked)
	}
}

func TestAPlatformWithoutDepthsStops(t *testing.T) {
	h := newHub(t)
	h.until("Running")
	h.edit(wantsDepth("freeze"))
	h.until("Hibernating")
	h.sleeps(t, "stop", "The cluster is hibernating at depth stop. The platform aws does not support the requested depth freeze.")
	stopped := h.stopped
	h.pass()
	if h.stopped != stopped {
		t.Error("it is stopped again and again")
	}
}
