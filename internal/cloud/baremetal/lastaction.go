package baremetal

import (
	"sync"
	"time"

	"hotspare.io/hotspare/internal/cloud"
)

const (
	// shutdownGrace is how long a host may take to shut down before it is powered off.
	shutdownGrace = 5 * time.Minute
	// settleDelay is how long a BMC may still report the old state after an action.
	settleDelay = 30 * time.Second
	// actionTTL is the age from which an action without effect is ignored.
	actionTTL = 3 * shutdownGrace
	// lateHibernation is the age of a hibernation at which every host has had its grace period, the
	// control plane after the workers. If hotspare remembers no action then, it may have executed
	// it before a restart.
	lateHibernation = 4 * shutdownGrace
	// lateGrace is the grace period of a host that is asked to shut down after lateHibernation.
	lateGrace = 2 * time.Minute
)

// powerAction is an action that a BMC can execute.
type powerAction int

const (
	noAction powerAction = iota
	turnOn
	shutDown
	powerOff
	// waitAction is not sent to the BMC: it records since when a host has been between two states.
	waitAction
)

func (a powerAction) String() string {
	return [...]string{"nothing", "starting", "shutting down", "powering off", "waiting for"}[a]
}

// lastAction is the last action for a host, and its time. The zero value is no action.
type lastAction struct {
	action powerAction
	at     time.Time
}

// power is the power state that a BMC reports.
type power int

const (
	unknownPower power = iota
	poweredOn
	poweredOff
	poweringOn
	poweringOff
	paused
)

// machineState returns the state of a host. Immediately after an action it takes precedence over
// the state that the BMC reports; a guest that was asked to shut down counts as stopping.
func (a lastAction) machineState(p power, now time.Time) cloud.State {
	age := now.Sub(a.at)
	switch {
	case p == poweringOn, p == poweredOff && a.action == turnOn && age < settleDelay:
		return cloud.Starting
	case p == poweringOff, p == poweredOn && a.action == powerOff && age < settleDelay, p == poweredOn && a.action == shutDown && age < shutdownGrace:
		return cloud.Stopping
	case p == poweredOn:
		return cloud.Running
	case p == poweredOff:
		return cloud.Stopped
	case p == paused:
		return cloud.Failed
	}
	return cloud.Unknown
}

// nextStartAction returns the next action to start a host.
func (a lastAction) nextStartAction(p power, now time.Time) powerAction {
	switch {
	case p == paused, p == poweredOff && (a.action != turnOn || now.Sub(a.at) >= settleDelay):
		return turnOn
	}
	return noAction
}

// nextStopAction returns the next action to stop a host. patience is how long its guest may take to
// shut down.
func (a lastAction) nextStopAction(p power, now time.Time, patience time.Duration) powerAction {
	age := now.Sub(a.at)
	switch {
	case p == poweredOff, p == unknownPower:
		return noAction
	case p == paused:
		return powerOff // its guest cannot react
	case a.action == powerOff && age < settleDelay, a.action == shutDown && age < patience, a.action == waitAction && p != poweredOn && age < patience:
		return noAction
	case a.action == powerOff, a.action == shutDown, a.action == waitAction && p != poweredOn:
		return powerOff
	case p == poweredOn:
		return shutDown
	}
	return waitAction
}

// shutdownGraceAt returns how long a guest may take to shut down in a hibernation of that age.
func shutdownGraceAt(age time.Duration) time.Duration {
	if age >= lateHibernation {
		return lateGrace
	}
	return shutdownGrace
}

// actionStore has the last action for each host. Losing it when the process ends only costs time:
// hotspare asks hosts to shut down again.
type actionStore struct {
	mu          sync.Mutex
	lastActions map[string]lastAction
}

// getLastAction returns the last action for host id. It deletes an action that has completed or
// expired.
func (s *actionStore) getLastAction(id string, p power, now time.Time) lastAction {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.lastActions[id]
	done := p == poweredOff && t.action != turnOn || p == poweredOn && t.action == turnOn
	if done || now.Sub(t.at) > actionTTL {
		delete(s.lastActions, id)
		return lastAction{}
	}
	return t
}

// recordLastAction stores an action for host id.
func (s *actionStore) recordLastAction(id string, o powerAction, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for other, t := range s.lastActions {
		if now.Sub(t.at) > actionTTL {
			delete(s.lastActions, other)
		}
	}
	s.lastActions[id] = lastAction{o, now}
}
