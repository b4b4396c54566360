package power

import (
	"fmt"
	"strings"
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/csr"
)

// Action is what to do about a cluster's machines.
type Action int

// Each pass does one of these.
const (
	// NoAction leaves the machines alone.
	NoAction Action = iota
	// Start starts those that do not run.
	Start
	// Stop stops those that do.
	Stop
	// Hibernate asks for hibernation in the cluster's specification, and does nothing else.
	Hibernate
)

// String says the action in words.
func (a Action) String() string {
	return [...]string{
		"leave the machines alone", "start the machines", "stop the machines",
		"ask for hibernation: hibernateAfter has passed",
	}[a]
}

// Plan is what a pass does, records and tells.
type Plan struct {
	Act Action
	// Approve are certificate requests to be approved.
	Approve []csr.Decision
	// Errand is the mark of the errand to be sent; empty for none. Dismiss takes the
	// one that is there away.
	Errand  string
	Dismiss bool
	// Replace are spot machines that are gone, whose Machines are to be deleted.
	Replace []SpotMachine
	// Drift names the machines that were found stopped in a cluster that had come up, or
	// running in one that had stopped, when that is first seen; empty otherwise.
	Drift string
	// Record is the new status.powerTransition. It is stored before the machines
	// hear of it: a decision that opens a record acts in the next pass.
	Record *hivev1.PowerTransition
	State
	// Version is zero when nothing new is known about it.
	Version Version
	// Unreachable is zero when nothing new is known about it.
	Unreachable condition.Value
	// Next is when to look again; 0 is not before something changes.
	Next time.Duration
}

// String says the decision in words.
func (d Plan) String() string {
	if d.Act == Hibernate {
		return d.Act.String()
	}
	word := d.Word
	if word == "" {
		word = "not installed"
	}
	s := d.Act.String()
	for _, v := range d.Approve {
		s += fmt.Sprintf("; approve %s for node %s", v.Request.Name, v.Node)
	}
	if d.Errand != "" {
		s += "; see whether the controller manager acts"
	}
	if len(d.Replace) > 0 {
		s += "; have spot machines made anew: " + spotNames(d.Replace)
	}
	s = fmt.Sprintf("%s; tell %s: %s", s, word, strings.TrimSuffix(d.detailedCondition().Message, "."))
	if d.Next == 0 {
		return s
	}
	return fmt.Sprintf("%s; look again in %s", s, d.Next)
}

// detailedCondition is the condition that has more to tell.
func (d Plan) detailedCondition() condition.Value {
	if d.Hibernating.Reason == hivev1.ReasonResuming {
		return d.Ready
	}
	return d.Hibernating
}
