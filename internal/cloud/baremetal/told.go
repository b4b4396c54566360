package baremetal

import (
	"sync"
	"time"

	"hotspare.io/hotspare/internal/cloud"
)

const (
	// shutdownGrace is how long a host has to shut down by itself before it is powered off.
	shutdownGrace = 5 * time.Minute
	// settleDelay is how long a BMC may go on telling the state from before an order.
	settleDelay = 30 * time.Second
	// actionTTL is when an order that came to nothing says nothing any more.
	actionTTL = 3 * shutdownGrace
	// lateHibernation is how old a hibernation is by which time every host has had its grace, the
	// control plane after the workers. What hotspare does not remember then it may well
	// have done and forgotten.
	lateHibernation = 4 * shutdownGrace
	// lateGrace is the grace that is left to a host that is asked so late.
	lateGrace = 2 * time.Minute
)

// powerAction is what a BMC can be told.
type powerAction int

const (
	noAction powerAction = iota
	turnOn
	shutDown
	powerOff
	// waitAction is no order: it marks since when a host has been between two states.
	waitAction
)

func (o powerAction) String() string {
	return [...]string{"nothing", "starting", "shutting down", "powering off", "waiting for"}[o]
}

// lastAction is what was last told to a host, and when. The zero value is nothing.
type lastAction struct {
	action powerAction
	at     time.Time
}

// power is the state that a BMC tells.
type power int

const (
	unknownPower power = iota
	poweredOn
	poweredOff
	poweringOn
	poweringOff
	paused
)

// machineState is what a host is doing. The BMC's word does not count for that right after an
// order, and a guest that was asked to shut down will.
func (t lastAction) machineState(p power, now time.Time) cloud.State {
	age := now.Sub(t.at)
	switch {
	case p == poweringOn, p == poweredOff && t.action == turnOn && age < settleDelay:
		return cloud.Starting
	case p == poweringOff, p == poweredOn && t.action == powerOff && age < settleDelay, p == poweredOn && t.action == shutDown && age < shutdownGrace:
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

// nextStartAction is what to tell a host so that it starts.
func (t lastAction) nextStartAction(p power, now time.Time) powerAction {
	switch {
	case p == paused, p == poweredOff && (t.action != turnOn || now.Sub(t.at) >= settleDelay):
		return turnOn
	}
	return noAction
}

// nextStopAction is what to tell a host so that it stops, given how long its guest may take.
func (t lastAction) nextStopAction(p power, now time.Time, patience time.Duration) powerAction {
	age := now.Sub(t.at)
	switch {
	case p == poweredOff, p == unknownPower:
		return noAction
	case p == paused:
		return powerOff // its guest hears nothing
	case t.action == powerOff && age < settleDelay, t.action == shutDown && age < patience, t.action == waitAction && p != poweredOn && age < patience:
		return noAction
	case t.action == powerOff, t.action == shutDown, t.action == waitAction && p != poweredOn:
		return powerOff
	case p == poweredOn:
		return shutDown
	}
	return waitAction
}

// shutdownGraceAt is how long a guest may take to shut down in a hibernation of that age.
func shutdownGraceAt(age time.Duration) time.Duration {
	if age >= lateHibernation {
		return lateGrace
	}
	return shutdownGrace
}

// actionStore is what hosts were told. Losing it, with the process, costs time only: a host
// is asked to shut down again.
type actionStore struct {
	mu          sync.Mutex
	lastActions map[string]lastAction
}

// getLastAction is what host id was told. An order that has been carried out is forgotten.
func (m *actionStore) getLastAction(id string, p power, now time.Time) lastAction {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.lastActions[id]
	done := p == poweredOff && t.action != turnOn || p == poweredOn && t.action == turnOn
	if done || now.Sub(t.at) > actionTTL {
		delete(m.lastActions, id)
		return lastAction{}
	}
	return t
}

// recordLastAction keeps what host id is told now.
func (m *actionStore) recordLastAction(id string, o powerAction, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for other, t := range m.lastActions {
		if now.Sub(t.at) > actionTTL {
			delete(m.lastActions, other)
		}
	}
	m.lastActions[id] = lastAction{o, now}
}
