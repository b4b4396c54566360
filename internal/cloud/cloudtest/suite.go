package cloudtest

import (
	"slices"
	"time"

	"hotspare.io/hotspare/internal/cloud"
)

// startCluster starts ref and fails the test if that returns an error.
func (s *suite) startCluster(ref cloud.Ref) {
	s.Helper()
	if err := s.Actuator.Start(s.Context(), ref); err != nil {
		s.Fatalf("starting: %v", err)
	}
}

// tryStart starts a cluster with a machine that cannot start: whether that returns an error depends
// on the platform.
func (s *suite) tryStart(ref cloud.Ref) {
	if err := s.Actuator.Start(s.Context(), ref); err != nil {
		s.Logf("starting: %v", err)
		s.checkSecrets(err.Error())
	}
}

func (s *suite) stopCluster(ref cloud.Ref) {
	s.Helper()
	if err := s.Actuator.Stop(s.Context(), ref); err != nil {
		s.Fatalf("stopping: %v", err)
	}
}

// observeMachines returns the machines. It fails the test unless they are unique and sorted by
// name, and those that need a reason have one.
func (s *suite) observeMachines(ref cloud.Ref) cloud.Machines {
	s.Helper()
	ms, err := s.Actuator.Observe(s.Context(), ref)
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
		s.checkSecrets(m.Reason)
	}
	s.checkDepths(ms)
	return ms
}

// reachState repeats do until all machines are in state want.
func (s *suite) reachState(ref cloud.Ref, want cloud.State, do func(cloud.Ref)) cloud.Machines {
	s.Helper()
	return s.repeatUntil(ref, "all are "+string(want), do, func(ms cloud.Machines) bool { return ms.AllIn(want) })
}

// repeatUntil repeats do until the observed machines satisfy holds.
func (s *suite) repeatUntil(ref cloud.Ref, what string, do func(cloud.Ref), holds func(cloud.Machines) bool) cloud.Machines {
	s.Helper()
	deadline := time.Now().Add(WaitTimeout)
	for n, settled := 0, true; ; n++ {
		if settled || n%callInterval == 0 {
			do(ref)
		}
		ms := s.observeMachines(ref)
		if holds(ms) {
			return ms
		}
		if s.Step != nil && n == maxSteps || s.Step == nil && time.Now().After(deadline) {
			s.Fatalf("waited in vain until %s: %v", what, ms)
		}
		settled = !slices.ContainsFunc(ms, isTransitional)
		s.advanceClock()
	}
}

// callInterval is the number of observations between two calls while machines are changing state: a
// machine that fails immediately must be observed before it is started again.
const callInterval = 20

func isTransitional(m cloud.Machine) bool {
	return m.State == cloud.Starting || m.State == cloud.Stopping
}

// advanceClock lets a short time pass.
func (s *suite) advanceClock() {
	if s.Step != nil {
		s.Step()
		return
	}
	time.Sleep(5 * time.Millisecond) // real clouds and processes use real time
}

// runningCluster creates a cluster and waits until it runs.
func (s *suite) runningCluster(workers int) cloud.Ref {
	s.Helper()
	ref := s.Create(s.T, "c-12345", workers)
	s.reachState(ref, cloud.Running, s.startCluster)
	return ref
}

// findWorker returns the name of a worker.
func (s *suite) findWorker(ref cloud.Ref) string {
	s.Helper()
	ms := s.observeMachines(ref)
	i := slices.IndexFunc(ms, isWorker)
	if i < 0 {
		s.Fatalf("no worker: %v", ms)
	}
	return ms[i].Name
}

// breakWorker creates a cluster with a worker that cannot start.
func (s *suite) breakWorker() (cloud.Ref, string) {
	s.Helper()
	ref := s.Create(s.T, "c-12345", 2)
	bad := s.findWorker(ref)
	s.Break(s.T, ref, bad)
	return ref, bad
}

func isWorker(m cloud.Machine) bool       { return !m.ControlPlane }
func isControlPlane(m cloud.Machine) bool { return m.ControlPlane }

// anyStopped reports whether one of the selected machines is stopped.
func anyStopped(ms cloud.Machines, those func(cloud.Machine) bool) bool {
	return slices.ContainsFunc(ms, func(m cloud.Machine) bool { return those(m) && m.State == cloud.Stopped })
}

// anyRunning reports whether one of the selected machines is running.
func anyRunning(ms cloud.Machines, those func(cloud.Machine) bool) bool {
	return slices.ContainsFunc(ms, func(m cloud.Machine) bool { return those(m) && m.State == cloud.Running })
}

func hasMachine(ms cloud.Machines, name string) bool {
	return slices.ContainsFunc(ms, func(m cloud.Machine) bool { return m.Name == name })
}

// failedWithReason reports whether the machine has failed and has a reason.
func failedWithReason(ms cloud.Machines, name string) bool {
	return slices.ContainsFunc(ms, func(m cloud.Machine) bool {
		return m.Name == name && m.State == cloud.Failed && m.Reason != ""
	})
}
