package local

import (
	"slices"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/embedded/machine"
)

// observedMachine is the state of one machine at one moment.
type observedMachine struct {
	machine.Config
	dir      string
	wanted   bool // whether the machine should run
	phase    processPhase
	lastExit exitResult
	gone     bool // its folder was removed, but its process still exists
}

// processPhase is the phase of a machine's process.
type processPhase int

const (
	phaseAbsent   processPhase = iota
	phaseStarting              // launched, or about to be; does not hold the machine's lock yet
	phaseRunning               // holds the lock
	phaseStopping              // was asked to stop
)

// exitResult describes how a machine's last process ended, if it ended without being stopped.
type exitResult struct {
	state  cloud.State // Stopped or Failed; empty if it did not end
	reason string
}

func (e exitResult) isEmpty() bool { return e.state == "" }

// cloudState returns the state that a cloud would report for m, and the reason if the state is
// Failed.
func (m observedMachine) cloudState() (cloud.State, string) {
	switch {
	case m.phase == phaseStopping, m.phase != phaseAbsent && !m.wanted:
		return cloud.Stopping, ""
	case m.phase == phaseRunning:
		return cloud.Running, ""
	case m.phase == phaseStarting:
		return cloud.Starting, ""
	case !m.lastExit.isEmpty():
		return m.lastExit.state, m.lastExit.reason
	case m.wanted:
		return cloud.Starting, ""
	default:
		return cloud.Stopped, ""
	}
}

// step is one action on one machine.
type step struct {
	verb verb
	observedMachine
}

type verb string

const (
	verbStart verb = "start"
	verbStop  verb = "stop"
)

func (s step) String() string { return string(s.verb) + " " + s.Name }

// decideSteps returns the steps to take now for the machines of one cluster. A worker starts when
// the control plane runs, or when it will not run; the control plane stops when no worker is left.
// While the store is closing, no machine should run.
func decideSteps(ms []observedMachine, closing bool) []step {
	var steps []step
	for _, m := range ms {
		wanted := m.wanted && !closing
		switch {
		case wanted && m.phase == phaseAbsent && m.lastExit.isEmpty() && (isControlPlane(m) || isControlPlaneSettled(ms)):
			steps = append(steps, step{verbStart, m})
		case !wanted && (m.phase == phaseStarting || m.phase == phaseRunning) && !(isControlPlane(m) && slices.ContainsFunc(ms, isLiveWorker)):
			steps = append(steps, step{verbStop, m})
		}
	}
	return steps
}

// isControlPlaneSettled reports whether no control plane is still expected to start running.
func isControlPlaneSettled(ms []observedMachine) bool {
	return !slices.ContainsFunc(ms, func(m observedMachine) bool {
		return isControlPlane(m) && m.wanted && m.phase != phaseRunning && m.lastExit.isEmpty()
	})
}

func isControlPlane(m observedMachine) bool { return m.Role == machine.ControlPlane }

func isLiveWorker(m observedMachine) bool { return !isControlPlane(m) && m.phase != phaseAbsent }

func containsMachine(ms []observedMachine, dir string) bool {
	return slices.ContainsFunc(ms, func(m observedMachine) bool { return m.dir == dir })
}
