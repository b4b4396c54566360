package power

import (
	"fmt"
	"strings"
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/power/csr"
)

// Action says what a pass does to a cluster's machines.
type Action int

// Each pass takes exactly one of these actions.
const (
	// NoAction leaves the machines alone.
	NoAction Action = iota
	// Start starts the machines that are not running.
	Start
	// Stop stops the machines that are running.
	Stop
	// Hibernate sets spec.powerState to Hibernating, and does nothing else.
	Hibernate
	// HibernateInactive is Hibernate for a cluster that nobody uses.
	HibernateInactive
	// Wake sets spec.powerState to Running, because a client connects, and does nothing else.
	Wake
)

// SetsPowerState reports whether the action is a write of spec.powerState.
func (a Action) SetsPowerState() bool { return a >= Hibernate }

// String returns the action as text.
func (a Action) String() string {
	return [...]string{
		"leave the machines alone", "start the machines", "stop the machines",
		"request hibernation: hibernateAfter has passed", "request hibernation: nobody uses it", "request running: a client connects",
	}[a]
}

// Plan is what one pass does to the cluster and writes into its status.
type Plan struct {
	Action Action
	// Approve lists the certificate requests to approve.
	Approve []csr.Decision
	// CreateProbe is the mark of the resume probe to create; empty for none. Dismiss deletes the
	// existing probe.
	CreateProbe string
	DeleteProbe bool
	// Replace lists the spot machines that no longer exist and whose Machines must be deleted.
	Replace []SpotMachine
	// CompleteResume resumes the controllers of the platform that the hibernation has suspended.
	CompleteResume bool
	// Drift names the machines that were found stopped in a cluster that had come up, or running
	// in one that had stopped. It is set when the drift is first seen, and empty otherwise.
	Drift string
	// Record is the new status.powerTransition. It is stored before any machine is started or
	// stopped: a plan that opens a record acts in the next pass.
	Record *hivev1.PowerTransition
	State
	// Version is zero when nothing new is known about it.
	Version Version
	// Unreachable is zero when nothing new is known about it.
	Unreachable condition.Value
	// Inactivity is the new record of the inactivity. HoldAddress keeps the address of the cluster.
	Inactivity  InactivityRecord
	HoldAddress bool
	// Next is the delay until the next pass; 0 means that only a change triggers one.
	Next time.Duration
}

// String returns the plan as text.
func (p Plan) String() string {
	if p.Action.SetsPowerState() {
		return p.Action.String()
	}
	powerState := p.PowerState
	if powerState == "" {
		powerState = "not installed"
	}
	s := p.Action.String()
	for _, v := range p.Approve {
		s += fmt.Sprintf("; approve %s for node %s", v.Request.Name, v.Node)
	}
	if p.CreateProbe != "" {
		s += "; create the resume probe"
	}
	if len(p.Replace) > 0 {
		s += "; replace spot machines: " + spotNames(p.Replace)
	}
	if p.CompleteResume {
		s += "; complete the resume"
	}
	s = fmt.Sprintf("%s; report %s: %s", s, powerState, strings.TrimSuffix(p.detailedCondition().Message, "."))
	if p.Next == 0 {
		return s
	}
	return fmt.Sprintf("%s; check again in %s", s, p.Next)
}

// detailedCondition returns the condition with the more detailed message.
func (p Plan) detailedCondition() condition.Value {
	if p.Hibernating.Reason == hivev1.ReasonResuming {
		return p.Ready
	}
	return p.Hibernating
}
