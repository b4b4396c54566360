package local

import (
	"cmp"
	"slices"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/embedded/machine"
)

// observedMachine is the state of one machine at one moment.
type observedMachine struct {
	machine.Config
	dir      string
	wanted   bool // whether the machine should run
	freeze   bool // whether it should be frozen; then, wanted is false
	phase    processPhase
	lastExit exitResult
	// freezeObstacle is why the machine was stopped although it should be frozen.
	freezeObstacle string
	gone           bool // its folder was removed, but its process still exists
}

// processPhase is the phase of a machine's process.
type processPhase int

const (
	phaseAbsent   processPhase = iota
	phaseStarting              // launched, or about to be; does not hold the machine's lock yet
	phaseRunning               // holds the lock
	phaseStopping              // was asked to stop
	phaseFreezing              // is being frozen
	phaseFrozen                // is frozen
	phaseThawing               // was thawed; a control plane wakes up
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
	case m.isFrozen():
		return cloud.Stopped, ""
	case m.phase == phaseStopping, m.phase != phaseAbsent && !m.wanted:
		return cloud.Stopping, ""
	case m.phase == phaseRunning:
		return cloud.Running, ""
	case m.phase != phaseAbsent:
		return cloud.Starting, ""
	case !m.lastExit.isEmpty():
		return m.lastExit.state, m.lastExit.reason
	case m.wanted:
		return cloud.Starting, ""
	default:
		return cloud.Stopped, ""
	}
}

// isFrozen reports whether the machine sleeps at depth freeze, and should.
func (m observedMachine) isFrozen() bool { return m.phase == phaseFrozen && m.freeze }

// canFreeze reports whether the machine should be frozen and can be: one that is starting or stopping, or that could
// not be frozen, cannot.
func (m observedMachine) canFreeze() bool {
	return m.freeze && m.freezeObstacle == "" && (m.phase == phaseRunning || m.phase == phaseFreezing || m.phase == phaseFrozen)
}

// depthObstacle returns why a machine that should be frozen is stopped, as a clause; "" if it is not.
func (m observedMachine) depthObstacle() string {
	if !m.freeze || m.phase != phaseAbsent {
		return ""
	}
	return cmp.Or(m.freezeObstacle, "hotspare has ended while it was frozen, which stops it")
}

// step is one action on one machine.
type step struct {
	verb verb
	observedMachine
}

type verb string

const (
	verbStart  verb = "start"
	verbStop   verb = "stop"
	verbFreeze verb = "freeze"
	verbThaw   verb = "thaw"
)

func (s step) String() string { return string(s.verb) + " " + s.Name }

// decideSteps returns the steps to take now for the machines of one cluster. A worker starts or is thawed when
// the control plane runs, or when it will not run; the control plane stops when no worker is left. A
// control plane is frozen after the workers, although the step comes at once: see freezeProcess.
// While the store is closing, no machine should run or be frozen.
func decideSteps(ms []observedMachine, closing bool) []step {
	var steps []step
	for _, m := range ms {
		if v := m.decideVerb(ms, closing); v != "" {
			steps = append(steps, step{v, m})
		}
	}
	return steps
}

// decideVerb returns what to do now about the machine, which is one of ms; "" for nothing.
func (m observedMachine) decideVerb(ms []observedMachine, closing bool) verb {
	switch {
	case m.wanted && !closing:
		return m.decideStart(ms)
	case m.phase == phaseAbsent, m.phase == phaseStopping, m.phase == phaseThawing && !closing:
		return ""
	case m.canFreeze() && !closing:
		if m.phase == phaseRunning {
			return verbFreeze
		}
		return ""
	case isControlPlane(m) && slices.ContainsFunc(ms, isLiveWorker):
		return ""
	default:
		return verbStop
	}
}

// decideStart is decideVerb for a machine that should run.
func (m observedMachine) decideStart(ms []observedMachine) verb {
	isTurn := isControlPlane(m) || isControlPlaneSettled(ms)
	switch {
	case m.phase == phaseAbsent && m.lastExit.isEmpty() && isTurn:
		return verbStart
	case m.phase == phaseFrozen && isTurn:
		return verbThaw
	default:
		return ""
	}
}

// isControlPlaneSettled reports whether no control plane is still expected to start running.
func isControlPlaneSettled(ms []observedMachine) bool {
	return !slices.ContainsFunc(ms, func(m observedMachine) bool {
		return isControlPlane(m) && m.wanted && m.phase != phaseRunning && m.lastExit.isEmpty()
	})
}

func isControlPlane(m observedMachine) bool { return m.Role == machine.ControlPlane }

func isLiveWorker(m observedMachine) bool { return !isControlPlane(m) && m.phase != phaseAbsent }

// isAwakeWorker reports whether m is a worker that is to be frozen before its control plane.
func isAwakeWorker(m observedMachine) bool {
	return isLiveWorker(m) && m.phase != phaseFrozen && m.phase != phaseStopping
}

func containsMachine(ms []observedMachine, dir string) bool {
	return slices.ContainsFunc(ms, func(m observedMachine) bool { return m.dir == dir })
}
