package scaling

import (
	"fmt"
	"strings"
	"time"
)

// Verb is the action of a step.
type Verb string

// The verbs of steps, in the order of a plan, and the actions that are not steps.
const (
	// Place gives an instance a data plane, or completes a booking.
	Place Verb = "place"
	// Unbook deletes a booking that is complete, or has lost its instance.
	Unbook Verb = "unbook"
	// Fail marks a data plane as failed that did not become Ready in time.
	Fail Verb = "fail"
	// Forget deletes a data plane that failed long ago.
	Forget Verb = "forget"
	// Restore makes a data plane Ready again that was marked for removal.
	Restore Verb = "restore"
	// Release returns the cluster of a data plane that was marked for removal. It cannot be undone.
	Release Verb = "release"
	// Create creates a data plane.
	Create Verb = "create"
	// Remove marks a data plane for removal.
	Remove Verb = "remove"
	// Keep is not a step: it is the decision for a data plane that stays.
	Keep Verb = "keep"
	// Wait is not a step: it is the decision for an instance without a place.
	Wait Verb = "wait"
	// None is not a step: it is the decision for a type that needs no data plane.
	None Verb = "none"
)

// Reason is why something was decided: a word from a closed list.
type Reason string

// Reasons why a data plane is created, or not.
const (
	BelowMinimum      Reason = "BelowMinimum"
	BiggestDoesNotFit Reason = "BiggestDoesNotFit"
	BelowSlack        Reason = "BelowSlack"
	// InstancesRefused: every data plane with room has refused a waiting instance.
	InstancesRefused Reason = "InstancesRefused"

	Sufficient   Reason = "Sufficient"
	LimitReached Reason = "LimitReached"
	// LimitCovered: the free units cover what the limit still allows.
	LimitCovered Reason = "LimitCovered"
	InFlight     Reason = "InFlight"
	AtMaximum    Reason = "AtMaximum"
	// BackingOff: the last data planes failed, and the backoff has not ended.
	BackingOff Reason = "BackingOff"
	// Blocked: there is no source for the cluster.
	Blocked Reason = "Blocked"
	// NoUnits: the last data plane has no units, so another would not help.
	NoUnits Reason = "NoUnits"
	// BiggestFitsNowhere: the biggest size does not even fit on a new data plane.
	BiggestFitsNowhere Reason = "BiggestFitsNowhere"
	// Undecided: the type is unknown.
	Undecided   Reason = "Undecided"
	SwitchedOff Reason = "SwitchedOff"
)

// Reasons why a data plane is removed, or stays.
const (
	NotNeeded     Reason = "NotNeeded"
	NotConfigured Reason = "NotConfigured"

	NotEmpty      Reason = "NotEmpty"
	Protected     Reason = "Protected"
	EmptyRecently Reason = "EmptyRecently"
	CoolingDown   Reason = "CoolingDown"
	Concurrent    Reason = "MaxConcurrent"
	// ClusterGone: its cluster is gone, so there is nothing to keep.
	ClusterGone Reason = "ClusterGone"
	// Unlisted: its agent reports instances, or used units, without a ServiceInstance.
	Unlisted Reason = "UnlistedInstances"
	// ContentsUnknown: its agent does not report what is on it.
	ContentsUnknown Reason = "ContentsUnknown"
	// AwaitingReport: its agent was asked again what is on it.
	AwaitingReport Reason = "AwaitingReport"
	// Needed: without it the region would be short of capacity.
	Needed Reason = "Needed"

	TimedOut   Reason = "ProvisionTimedOut"
	Superseded Reason = "Superseded"
)

// Reasons why an instance is placed, or waits.
const (
	Fits   Reason = "Fits"
	Booked Reason = "Booked"

	NoCapacity     Reason = "NoCapacity"
	TooBig         Reason = "TooBig"
	Refused        Reason = "Refused"
	NotOffered     Reason = "NotOffered"
	UnknownType    Reason = "UnknownType"
	UnknownSize    Reason = "UnknownSize"
	Unreadable     Reason = "Unreadable"
	PinUnsuitable  Reason = "DataPlaneUnsuitable"
	PinNotThere    Reason = "DataPlaneNotFound"
	PlaneIsLeaving Reason = "DataPlaneLeaving"
	// Settled: a booking is no longer needed.
	Settled Reason = "Settled"
)

// Step is one action of a plan. Steps are independent: each may fail or be repeated without harm to
// the others. The caller that executes a step writes the data plane first, at the observed resource
// version, so that steps of different passes cannot contradict each other.
type Step struct {
	Verb Verb `json:"verb"`
	// DataPlane is empty for a Create: the name is chosen when it is recorded.
	DataPlane string `json:"dataPlane,omitempty"`
	// Instance is set for Place and Unbook.
	Instance string `json:"instance,omitempty"`
	// Type is set for Create and Place, Units for Place.
	Type  string `json:"type,omitempty"`
	Units int    `json:"units,omitempty"`
	// MultiZone is set for a Create of a data plane that spans several zones.
	MultiZone bool   `json:"multiZone,omitempty"`
	Reason    Reason `json:"reason"`
	// Message explains the reason.
	Message string `json:"message"`
}

// String returns the step as a sentence: "place a/x on dp-1: …".
func (s Step) String() string {
	switch s.Verb {
	case Place:
		return fmt.Sprintf("place %s on %s: %s", s.Instance, s.DataPlane, s.Message)
	case Unbook:
		return fmt.Sprintf("unbook %s from %s: %s", s.Instance, s.DataPlane, s.Message)
	case Create:
		return fmt.Sprintf("create a data plane for %s: %s", s.Type, s.Message)
	default:
		return fmt.Sprintf("%s %s: %s", s.Verb, s.DataPlane, s.Message)
	}
}

// Decision is the decision about one type, data plane or instance, and its reason.
type Decision struct {
	Action Verb   `json:"action"`
	Reason Reason `json:"reason"`
	// Message explains the reason, stable from pass to pass.
	Message string `json:"message"`
	// DryRun is set when the action is only reported, not taken.
	DryRun bool `json:"dryRun,omitempty"`
}

// Plan has the next steps, and the reports about them.
type Plan struct {
	Steps []Step
	// Types has each type of the region, by name.
	Types []TypeReport
	// Planes has each Managed data plane that is Ready or marked for removal, by name.
	Planes []PlaneReport
	// Placements has each instance that has no data plane, oldest first.
	Placements []Placement
	// Next is the time until the plan must be computed again if nothing changes; 0 when only a
	// change matters.
	Next time.Duration
}

// TypeReport sums the region's capacity for one type. It includes the plan's placements, and no
// other step of the plan. It counts Managed data planes that accept instances or will.
type TypeReport struct {
	Name string `json:"name"`
	// DataPlanes is the number of data planes, InFlight the number of those that are on their way.
	DataPlanes int `json:"dataPlanes"`
	InFlight   int `json:"inFlight"`
	MaxUnits   int `json:"maxUnits"`
	UsedUnits  int `json:"usedUnits"`
	FreeUnits  int `json:"freeUnits"`
	// PendingUnits is the number of units of instances without room.
	PendingUnits int `json:"pendingUnits"`
	// BiggestFits is set when a Ready data plane has room for the biggest size.
	BiggestFits bool     `json:"biggestFits"`
	Decision    Decision `json:"decision"`
}

// PlaneReport is the decision about one data plane.
type PlaneReport struct {
	Name string `json:"name"`
	// Instances is the number of instances on it, including those of this plan.
	Instances int      `json:"instances"`
	Decision  Decision `json:"decision"`
}

// Placement is the decision about one instance without a data plane.
type Placement struct {
	Instance string `json:"instance"`
	// DataPlane is where the instance is placed; empty when it waits.
	DataPlane string   `json:"dataPlane,omitempty"`
	Decision  Decision `json:"decision"`
}

// StepsOf returns the steps with that verb, in order.
func (p Plan) StepsOf(v Verb) []Step {
	var out []Step
	for _, s := range p.Steps {
		if s.Verb == v {
			out = append(out, s)
		}
	}
	return out
}

// String returns the plan as text, one line per step.
func (p Plan) String() string {
	lines := make([]string, len(p.Steps))
	for i, s := range p.Steps {
		lines[i] = s.String()
	}
	return strings.Join(lines, "\n")
}

// Summarize returns a summary of the plan in one sentence, for people.
func (p Plan) Summarize() string {
	var parts []string
	for _, w := range []struct {
		verb Verb
		what string
	}{
		{Place, "placing %s"},
		{Fail, "marking %s as failed"},
		{Restore, "restoring %s"},
		{Release, "releasing %s"},
		{Create, "creating %s"},
		{Remove, "removing %s"},
	} {
		n := len(p.StepsOf(w.verb))
		thing := "data plane"
		if w.verb == Place {
			thing = "instance"
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf(w.what, formatCount(n, thing)))
		}
	}
	waiting, inFlight := 0, 0
	for _, pl := range p.Placements {
		if pl.Decision.Action == Wait {
			waiting++
		}
	}
	for _, t := range p.Types {
		inFlight += t.InFlight
	}
	if inFlight > 0 {
		parts = append(parts, "waiting for "+formatCount(inFlight, "data plane"))
	}
	if waiting > 0 {
		parts = append(parts, formatCount(waiting, "instance")+" without a place")
	}
	for _, t := range p.Types {
		switch t.Decision.Reason {
		case Blocked, BackingOff, NoUnits, BiggestFitsNowhere, Undecided:
			parts = append(parts, t.Name+": "+t.Decision.Message)
		}
	}
	if len(parts) == 0 {
		return "settled"
	}
	return strings.Join(parts, "; ")
}

func formatCount(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
