package local

import (
	"slices"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/machine"
)

// seen is what is known of one machine at one moment.
type seen struct {
	machine.Config
	dir    string
	wanted bool // to run
	phase  phase
	ending ending
	gone   bool // its folder is not there any more, its process is
}

// phase is how far a machine's process is.
type phase int

const (
	absent   phase = iota
	starting       // launched, or about to be; does not hold the machine's lock yet
	up             // holds the lock
	stopping       // has been told to end
)

// ending is how a machine's last process ended, if it did so by itself.
type ending struct {
	state  cloud.State // Stopped or Failed; empty: it did not
	reason string
}

func (e ending) none() bool { return e.state == "" }

// state returns what a cloud would say of m, and why if it is Failed.
func (m seen) state() (cloud.State, string) {
	switch {
	case m.phase == stopping, m.phase != absent && !m.wanted:
		return cloud.Stopping, ""
	case m.phase == up:
		return cloud.Running, ""
	case m.phase == starting:
		return cloud.Starting, ""
	case !m.ending.none():
		return m.ending.state, m.ending.reason
	case m.wanted:
		return cloud.Starting, ""
	default:
		return cloud.Stopped, ""
	}
}

// step is one thing to do to one machine.
type step struct {
	verb verb
	seen
}

type verb string

const (
	start verb = "start"
	stop  verb = "stop"
)

func (s step) String() string { return string(s.verb) + " " + s.Name }

// decide returns what to do now for the machines of one cluster. A worker starts
// when the control plane runs, or will not; the control plane stops when no
// worker is left. When the store is closing, no machine is wanted to run.
func decide(ms []seen, closing bool) []step {
	var steps []step
	for _, m := range ms {
		wanted := m.wanted && !closing
		switch {
		case wanted && m.phase == absent && m.ending.none() && (isControlPlane(m) || led(ms)):
			steps = append(steps, step{start, m})
		case !wanted && (m.phase == starting || m.phase == up) && !(isControlPlane(m) && slices.ContainsFunc(ms, liveWorker)):
			steps = append(steps, step{stop, m})
		}
	}
	return steps
}

// led reports whether no control plane is still to come.
func led(ms []seen) bool {
	return !slices.ContainsFunc(ms, func(m seen) bool {
		return isControlPlane(m) && m.wanted && m.phase != up && m.ending.none()
	})
}

func isControlPlane(m seen) bool { return m.Role == machine.ControlPlane }

func liveWorker(m seen) bool { return !isControlPlane(m) && m.phase != absent }

func contains(ms []seen, dir string) bool {
	return slices.ContainsFunc(ms, func(m seen) bool { return m.dir == dir })
}
