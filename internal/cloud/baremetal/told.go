package baremetal

import (
	"sync"
	"time"

	"hotspare.io/hotspare/internal/cloud"
)

const (
	// grace is how long a host has to shut down by itself before it is powered off.
	grace = 5 * time.Minute
	// settling is how long a BMC may go on telling the state from before an order.
	settling = 30 * time.Second
	// forgotten is when an order that came to nothing says nothing any more.
	forgotten = 3 * grace
	// late is how old a hibernation is by which time every host has had its grace, the
	// control plane after the workers. What hotspare does not remember then it may well
	// have done and forgotten.
	late = 4 * grace
	// again is the grace that is left to a host that is asked so late.
	again = 2 * time.Minute
)

// order is what a BMC can be told.
type order int

const (
	nothing order = iota
	turnOn
	shutDown
	powerOff
	// wait is no order: it marks since when a host has been between two states.
	wait
)

func (o order) String() string {
	return [...]string{"nothing", "starting", "shutting down", "powering off", "waiting for"}[o]
}

// told is what was last told to a host, and when. The zero value is nothing.
type told struct {
	order order
	at    time.Time
}

// power is the state that a BMC tells.
type power int

const (
	odd power = iota
	on
	off
	goingOn
	goingOff
	paused
)

// state is what a host is doing. The BMC's word does not count for that right after an
// order, and a guest that was asked to shut down will.
func (t told) state(p power, now time.Time) cloud.State {
	age := now.Sub(t.at)
	switch {
	case p == goingOn, p == off && t.order == turnOn && age < settling:
		return cloud.Starting
	case p == goingOff, p == on && t.order == powerOff && age < settling, p == on && t.order == shutDown && age < grace:
		return cloud.Stopping
	case p == on:
		return cloud.Running
	case p == off:
		return cloud.Stopped
	case p == paused:
		return cloud.Failed
	}
	return cloud.Unknown
}

// starting is what to tell a host so that it starts.
func (t told) starting(p power, now time.Time) order {
	switch {
	case p == paused, p == off && (t.order != turnOn || now.Sub(t.at) >= settling):
		return turnOn
	}
	return nothing
}

// stopping is what to tell a host so that it stops, given how long its guest may take.
func (t told) stopping(p power, now time.Time, patience time.Duration) order {
	age := now.Sub(t.at)
	switch {
	case p == off, p == odd:
		return nothing
	case p == paused:
		return powerOff // its guest hears nothing
	case t.order == powerOff && age < settling, t.order == shutDown && age < patience, t.order == wait && p != on && age < patience:
		return nothing
	case t.order == powerOff, t.order == shutDown, t.order == wait && p != on:
		return powerOff
	case p == on:
		return shutDown
	}
	return wait
}

// patienceAt is how long a guest may take to shut down in a hibernation of that age.
func patienceAt(age time.Duration) time.Duration {
	if age >= late {
		return again
	}
	return grace
}

// memory is what hosts were told. Losing it, with the process, costs time only: a host
// is asked to shut down again.
type memory struct {
	mu   sync.Mutex
	told map[string]told
}

// of is what host id was told. An order that has been carried out is forgotten.
func (m *memory) of(id string, p power, now time.Time) told {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.told[id]
	done := p == off && t.order != turnOn || p == on && t.order == turnOn
	if done || now.Sub(t.at) > forgotten {
		delete(m.told, id)
		return told{}
	}
	return t
}

// note keeps what host id is told now.
func (m *memory) note(id string, o order, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for other, t := range m.told {
		if now.Sub(t.at) > forgotten {
			delete(m.told, other)
		}
	}
	m.told[id] = told{o, now}
}
