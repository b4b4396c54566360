package cloudtest

import (
	"slices"

	"hotspare.io/hotspare/internal/cloud"
)

// reportedDepths returns the depths that the platform reports for the cluster, without obstacle.
func (s *suite) reportedDepths(ref cloud.Ref) []cloud.Depth {
	s.Helper()
	reporter, ok := s.Actuator.(cloud.DepthReporter)
	if !ok {
		return nil
	}
	var all []cloud.Depth
	for _, d := range reporter.ReportDepths(ref.Platform) {
		if d.Depth != cloud.DepthFreeze && d.Depth != cloud.DepthSuspend {
			s.Errorf("it reports depth %q, which needs no report or does not exist", d.Depth)
		}
		s.checkSecrets(d.Obstacle + d.Limits)
		if d.Obstacle == "" {
			all = append(all, d.Depth)
		}
	}
	return all
}

// sleep puts the cluster to sleep and waits until all machines are stopped and sleep at the depth, or
// above it and cannot be put deeper.
func (s *suite) sleep(ref cloud.Ref, depth cloud.Depth) cloud.Ref {
	s.Helper()
	ref.Depth = depth
	s.repeatUntil(ref, "all sleep at depth "+string(depth), s.stopCluster, func(ms cloud.Machines) bool {
		return ms.AllIn(cloud.Stopped) && !slices.ContainsFunc(ms, func(m cloud.Machine) bool { return !isAt(m, depth) && !cannotReach(m, depth) })
	})
	return ref
}

// cannotReach reports whether the machine sleeps above the depth, and the platform cannot put it deeper.
func cannotReach(m cloud.Machine, depth cloud.Depth) bool {
	return m.CannotDeepen && depth.IsDeeperThan(m.Depth)
}

// isAt reports whether the machine sleeps at the depth, neither more nor less deeply.
func isAt(m cloud.Machine, depth cloud.Depth) bool {
	return m.State == cloud.Stopped && !depth.IsDeeperThan(m.Depth) && !m.Depth.IsDeeperThan(depth)
}

// checkDepths fails the test if a machine that is not stopped has a depth.
func (s *suite) checkDepths(ms cloud.Machines) {
	s.Helper()
	for _, m := range ms {
		if m.State != cloud.Stopped && m.Depth != "" {
			s.Fatalf("%s is %s at depth %s", m.Name, m.State, m.Depth)
		}
		if m.CannotDeepen && isAt(m, cloud.DepthStop) {
			s.Fatalf("%s is stopped, which is the deepest sleep, and cannot be put deeper", m.Name)
		}
		s.checkSecrets(m.DepthObstacle)
	}
}

func sleepsAtDeeperDepth(s *suite) {
	ref := s.runningCluster(1)
	ref.Depth = cloud.DepthFreeze
	want := ref.SelectDepth(func(d cloud.Depth) bool { return slices.Contains(s.reportedDepths(ref), d) })
	s.sleep(ref, want)
	s.reachState(ref, cloud.Running, s.startCluster)
}

func sleepsAtEachDepth(s *suite) {
	ref := s.runningCluster(2)
	if got := s.reportedDepths(ref); !slices.Equal(got, s.Depths) {
		s.Fatalf("it reports the depths %v, want %v", got, s.Depths)
	}
	for _, depth := range s.Depths {
		ref = s.sleep(ref, depth)
		s.stopCluster(ref)
		s.advanceClock()
		s.sleep(ref, depth) // the second call changed nothing
		s.reachState(ref, cloud.Running, s.startCluster)
	}
	s.sleep(ref, cloud.DepthStop)
}

func sleepsDeeper(s *suite) {
	ref := s.runningCluster(2)
	for _, depth := range append(slices.Clone(s.Depths), cloud.DepthStop) {
		ref = s.sleep(ref, depth)
	}
	ref.Depth = s.Depths[0]
	s.stopCluster(ref)
	s.advanceClock()
	for _, m := range s.observeMachines(ref) {
		if !isAt(m, cloud.DepthStop) && !cannotReach(m, cloud.DepthStop) {
			s.Errorf("%s was stopped, and is %s at depth %q after a request to sleep less deeply", m.Name, m.State, m.Depth)
		}
	}
	s.reachState(ref, cloud.Running, s.startCluster)
}

func wakesWhileFallingAsleep(s *suite) {
	ref := s.runningCluster(2)
	for _, depth := range s.Depths {
		ref.Depth = depth
		s.stopCluster(ref)
		s.reachState(ref, cloud.Running, s.startCluster)
	}
}

func sleepsWhileWaking(s *suite) {
	ref := s.runningCluster(2)
	for _, depth := range s.Depths {
		ref = s.sleep(ref, depth)
		s.startCluster(ref)
		// A machine that was started and not yet woken may sleep deeper than it did.
		s.repeatUntil(ref, "all sleep", s.stopCluster, func(ms cloud.Machines) bool {
			return ms.AllIn(cloud.Stopped) && !slices.ContainsFunc(ms, func(m cloud.Machine) bool { return m.IsAsleepAbove(depth) })
		})
		s.reachState(ref, cloud.Running, s.startCluster)
	}
}

func putsWorkersToSleepFirst(s *suite) {
	ref := s.runningCluster(2)
	for _, depth := range s.Depths {
		ref.Depth = depth
		s.repeatUntil(ref, "all sleep", s.stopCluster, func(ms cloud.Machines) bool {
			if anyStopped(ms, isControlPlane) && anyRunning(ms, isWorker) {
				s.Fatalf("the control plane sleeps before the workers: %v", ms)
			}
			return ms.AllIn(cloud.Stopped)
		})
		s.reachState(ref, cloud.Running, s.startCluster)
	}
}

func skipsMachineThatVanishedAsleep(s *suite) {
	ref := s.runningCluster(2)
	ref = s.sleep(ref, s.Depths[0])
	lost := s.findWorker(ref)
	s.Vanish(s.T, ref, lost)
	s.repeatUntil(ref, "the others run", s.startCluster, func(ms cloud.Machines) bool {
		return len(ms) == 2 && !hasMachine(ms, lost) && ms.AllIn(cloud.Running)
	})
}

func reportsRefusedDepth(s *suite) {
	ref := s.runningCluster(2)
	refused := s.Depths[0]
	s.RefuseDepth(s.T, ref, refused)
	ref.Depth = refused
	want := cloud.Ref{Depth: refused, RefusedDepths: []cloud.Depth{refused}}.SelectDepth(func(d cloud.Depth) bool { return slices.Contains(s.Depths, d) })
	s.repeatUntil(ref, "all sleep deeper than at the refused depth", func(cloud.Ref) {
		refusals, others := cloud.SplitRefusedDepths(s.Actuator.Stop(s.Context(), ref))
		if others != nil {
			s.Fatalf("stopping: %v", others)
		}
		for _, r := range refusals {
			s.checkSecrets(r.Error())
			if r.Depth != refused || r.Reason == "" || !hasMachine(s.observeMachines(ref), r.Machine) || slices.Contains(ref.RefusedDepths, refused) {
				s.Errorf("refused: %v", r)
			}
		}
		if len(refusals) > 0 {
			ref.RefusedDepths = []cloud.Depth{refused}
		}
	}, func(ms cloud.Machines) bool {
		return ms.AllIn(cloud.Stopped) && !slices.ContainsFunc(ms, func(m cloud.Machine) bool { return !isAt(m, want) })
	})
	if len(ref.RefusedDepths) == 0 {
		s.Error("no DepthRefusedError was returned")
	}
}

func wakesSoonerFromShallowDepth(s *suite) {
	ref := s.runningCluster(2)
	fromStop := s.countStepsUntilUp(ref, cloud.DepthStop)
	for _, depth := range s.Depths {
		if n := s.countStepsUntilUp(ref, depth); n*3 > fromStop {
			s.Errorf("it is up %d steps after it slept at depth %s, and %d steps after it was stopped", n, depth, fromStop)
		}
	}
}

// countStepsUntilUp waits until the cluster's guests are up, puts it to sleep at the depth, and returns
// the number of steps from the start until its guests are up again.
func (s *suite) countStepsUntilUp(ref cloud.Ref, depth cloud.Depth) int {
	s.Helper()
	s.waitForGuests(ref)
	s.sleep(ref, depth)
	if s.GuestsAreUp(ref) {
		s.Fatalf("the guests of a cluster that sleeps at depth %s are up", depth)
	}
	return s.waitForGuests(ref)
}

// waitForGuests starts the cluster and returns the number of steps until its guests are up.
func (s *suite) waitForGuests(ref cloud.Ref) int {
	s.Helper()
	for n := range maxSteps {
		if s.GuestsAreUp(ref) {
			return n
		}
		s.startCluster(ref)
		s.advanceClock()
	}
	s.Fatalf("the guests are not up: %v", s.observeMachines(ref))
	return 0
}
