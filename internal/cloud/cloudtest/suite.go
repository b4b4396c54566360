package cloudtest

import (
	"slices"
	"time"

	"hotspare.io/hotspare/internal/cloud"
)

// start starts ref and fails the test if that is an error.
func (s *suite) start(ref cloud.Ref) {
	s.Helper()
	if err := s.Power.Start(s.Context(), ref); err != nil {
		s.Fatalf("starting: %v", err)
	}
}

// tryStart starts a cluster of which one machine cannot: whether that is an
// error is up to the platform.
func (s *suite) tryStart(ref cloud.Ref) {
	if err := s.Power.Start(s.Context(), ref); err != nil {
		s.Logf("starting: %v", err)
		s.discreet(err.Error())
	}
}

func (s *suite) stop(ref cloud.Ref) {
	s.Helper()
	if err := s.Power.Stop(s.Context(), ref); err != nil {
		s.Fatalf("stopping: %v", err)
	}
}

// observe returns the machines. Each must be there once, sorted by name, and
// those that need one must have a reason.
func (s *suite) observe(ref cloud.Ref) cloud.Machines {
	s.Helper()
	ms, err := s.Power.Observe(s.Context(), ref)
	if err != nil {
		s.Fatalf("observing: %v", err)
	}
	for i, m := range ms {
		if i > 0 && ms[i-1].Name >= m.Name {
			s.Fatalf("not sorted, or twice the same: %v", ms)
		}
		if (m.State == cloud.Failed || m.State == cloud.Unknown) && m.Reason == "" {
			s.Fatalf("%s is %s without a reason", m.Name, m.State)
		}
		s.discreet(m.Reason)
	}
	return ms
}

// reach repeats do until all machines are in state want.
func (s *suite) reach(ref cloud.Ref, want cloud.State, do func(cloud.Ref)) cloud.Machines {
	s.Helper()
	return s.until(ref, "all are "+string(want), do, func(ms cloud.Machines) bool { return ms.All(want) })
}

// until does something again and again until what is seen fulfils a condition.
func (s *suite) until(ref cloud.Ref, what string, do func(cloud.Ref), holds func(cloud.Machines) bool) cloud.Machines {
	s.Helper()
	deadline := time.Now().Add(Patience)
	for n, settled := 0, true; ; n++ {
		if settled || n%calm == 0 {
			do(ref)
		}
		ms := s.observe(ref)
		if holds(ms) {
			return ms
		}
		if s.Step != nil && n == steps || s.Step == nil && time.Now().After(deadline) {
			s.Fatalf("waited in vain until %s: %v", what, ms)
		}
		settled = !slices.ContainsFunc(ms, onItsWay)
		s.step()
	}
}

// calm is how many observations there are between two calls while machines are on
// their way: one that fails at once must be seen before it is started again.
const calm = 20

func onItsWay(m cloud.Machine) bool { return m.State == cloud.Starting || m.State == cloud.Stopping }

// step lets a little time pass.
func (s *suite) step() {
	if s.Step != nil {
		s.Step()
		return
	}
	time.Sleep(5 * time.Millisecond) // real clouds and processes have no other clock
}

// running makes a cluster that runs.
func (s *suite) running(workers int) cloud.Ref {
	s.Helper()
	ref := s.Create(s.T, "c-12345", workers)
	s.reach(ref, cloud.Running, s.start)
	return ref
}

// worker returns the name of a worker.
func (s *suite) worker(ref cloud.Ref) string {
	s.Helper()
	ms := s.observe(ref)
	i := slices.IndexFunc(ms, worker)
	if i < 0 {
		s.Fatalf("no worker: %v", ms)
	}
	return ms[i].Name
}

// breakWorker makes a cluster with a worker that cannot start.
func (s *suite) breakWorker() (cloud.Ref, string) {
	s.Helper()
	ref := s.Create(s.T, "c-12345", 2)
	bad := s.worker(ref)
	s.Break(s.T, ref, bad)
	return ref, bad
}

func worker(m cloud.Machine) bool       { return !m.ControlPlane }
func controlPlane(m cloud.Machine) bool { return m.ControlPlane }

// off reports whether one of those machines is off.
func off(ms cloud.Machines, those func(cloud.Machine) bool) bool {
	return slices.ContainsFunc(ms, func(m cloud.Machine) bool { return those(m) && m.State == cloud.Stopped })
}

// awake reports whether one of those machines runs.
func awake(ms cloud.Machines, those func(cloud.Machine) bool) bool {
	return slices.ContainsFunc(ms, func(m cloud.Machine) bool { return those(m) && m.State == cloud.Running })
}

func named(ms cloud.Machines, name string) bool {
	return slices.ContainsFunc(ms, func(m cloud.Machine) bool { return m.Name == name })
}

// reasoned reports whether the machine has failed and says why.
func reasoned(ms cloud.Machines, name string) bool {
	return slices.ContainsFunc(ms, func(m cloud.Machine) bool {
		return m.Name == name && m.State == cloud.Failed && m.Reason != ""
	})
}
