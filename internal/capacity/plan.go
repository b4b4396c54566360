package capacity

import (
	"fmt"
	"strings"
	"time"
)

// Verb is what a step does.
type Verb string

// The verbs, in the order in which a plan has them.
const (
	// Place gives an instance a data plane, or finishes giving it.
	Place Verb = "place"
	// Unbook takes a booking back that has done its duty, or lost its instance.
	Unbook Verb = "unbook"
	// Fail gives up a data plane that has not come in time.
	Fail Verb = "fail"
	// Forget deletes a data plane that failed long ago.
	Forget Verb = "forget"
	// Restore makes a data plane Ready again that was to be removed.
	Restore Verb = "restore"
	// Release gives the cluster of one back that was to be removed: there is no way back.
	Release Verb = "release"
	// Create makes a data plane.
	Create Verb = "create"
	// Remove marks a data plane for removal.
	Remove Verb = "remove"
	// Keep is no step: it is what is decided of a data plane that stays.
	Keep Verb = "keep"
	// Wait is no step: it is what is decided of an instance that finds no place.
	Wait Verb = "wait"
	// None is no step: it is what is decided of a type that needs no data plane.
	None Verb = "none"
)

// Reason is why something was decided, in a word of a closed list.
type Reason string

// Why a data plane is made, or not.
const (
	BelowMinimum      Reason = "BelowMinimum"
	BiggestDoesNotFit Reason = "BiggestDoesNotFit"
	BelowSlack        Reason = "BelowSlack"
	// InstancesRefused: an instance waits that every data plane with room has refused.
	InstancesRefused Reason = "InstancesRefused"

	Sufficient   Reason = "Sufficient"
	LimitReached Reason = "LimitReached"
	// LimitCovered: what the limit leaves fits into what is free.
	LimitCovered Reason = "LimitCovered"
	InFlight     Reason = "InFlight"
	AtMaximum    Reason = "AtMaximum"
	// BackingOff: the last ones failed, and the next one's time has not come.
	BackingOff Reason = "BackingOff"
	// Blocked: there is nothing to make one from.
	Blocked Reason = "Blocked"
	// NoUnits: the last one came without units, so another would not help.
	NoUnits Reason = "NoUnits"
	// BiggestFitsNowhere: not even on a new data plane.
	BiggestFitsNowhere Reason = "BiggestFitsNowhere"
	// Undecided: the type is not known.
	Undecided   Reason = "Undecided"
	SwitchedOff Reason = "SwitchedOff"
)

// Why a data plane is removed, or stays.
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
	// Unlisted: its agent reports instances, or used units, that have no ServiceInstance.
	Unlisted Reason = "UnlistedInstances"
	// ContentsUnknown: its agent does not say what is on it.
	ContentsUnknown Reason = "ContentsUnknown"
	// AwaitingReport: its agent was asked once more what is on it.
	AwaitingReport Reason = "AwaitingReport"
	// Needed: without it the region would be short of capacity.
	Needed Reason = "Needed"

	TimedOut   Reason = "ProvisionTimedOut"
	Superseded Reason = "Superseded"
)

// Why an instance is placed, or waits.
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
	// Settled: a booking is not needed any more.
	Settled Reason = "Settled"
)

// Step is one thing to do. Steps are independent: each may fail or be repeated without
// harm to the others. Whoever carries one out writes the data plane first, on the version
// that was observed: then no two steps of different passes contradict each other.
type Step struct {
	Verb Verb `json:"verb"`
	// DataPlane is empty for a Create: its name is chosen when it is recorded.
	DataPlane string `json:"dataPlane,omitempty"`
	// Instance is set for Place and Unbook.
	Instance string `json:"instance,omitempty"`
	// Type is set for Create and Place, Units for Place.
	Type  string `json:"type,omitempty"`
	Units int    `json:"units,omitempty"`
	// MultiZone is set for a Create of a data plane that spans several zones.
	MultiZone bool   `json:"multiZone,omitempty"`
	Reason    Reason `json:"reason"`
	// Message is the reason in words.
	Message string `json:"message"`
}

// String reads as a sentence: "place a/x on dp-1: …".
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

// Decision is what was decided of one type, data plane or instance, and why.
type Decision struct {
	Action Verb   `json:"action"`
	Reason Reason `json:"reason"`
	// Message is the reason in words, stable from pass to pass.
	Message string `json:"message"`
	// DryRun is set when the action is told and not taken.
	DryRun bool `json:"dryRun,omitempty"`
}

// Plan is what to do next, and what to tell of it.
type Plan struct {
	Steps []Step
	// Types has each type of the region, by name.
	Types []TypeReport
	// Planes has each Managed data plane that is Ready or was to be removed, by name.
	Planes []PlaneReport
	// Placements has each instance that has no data plane, oldest first.
	Placements []Placement
	// Next is when to look again though nothing changed; 0 when only a change matters.
	Next time.Duration
}

// TypeReport is what the region has of one type. It foresees the plan's placements, and
// nothing else of the plan. Counted are Managed data planes that accept instances or will.
type TypeReport struct {
	Name string `json:"name"`
	// DataPlanes is how many there are, InFlight how many of them are on their way.
	DataPlanes int `json:"dataPlanes"`
	InFlight   int `json:"inFlight"`
	MaxUnits   int `json:"maxUnits"`
	UsedUnits  int `json:"usedUnits"`
	FreeUnits  int `json:"freeUnits"`
	// PendingUnits is what instances take that found no room.
	PendingUnits int `json:"pendingUnits"`
	// BiggestFits says whether one Ready data plane has room for the biggest size.
	BiggestFits bool     `json:"biggestFits"`
	Decision    Decision `json:"decision"`
}

// PlaneReport is one data plane.
type PlaneReport struct {
	Name string `json:"name"`
	// Instances is how many are on it, with those of this plan.
	Instances int      `json:"instances"`
	Decision  Decision `json:"decision"`
}

// Placement is one instance without a data plane.
type Placement struct {
	Instance string `json:"instance"`
	// DataPlane is where it goes; empty when it waits.
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

// String has one line a step.
func (p Plan) String() string {
	lines := make([]string, len(p.Steps))
	for i, s := range p.Steps {
		lines[i] = s.String()
	}
	return strings.Join(lines, "\n")
}

// Summarize is the plan for people, in one sentence.
func (p Plan) Summarize() string {
	var parts []string
	for _, w := range []struct {
		verb Verb
		what string
	}{
		{Place, "placing %s"},
		{Fail, "giving up %s"},
		{Restore, "keeping %s after all"},
		{Release, "releasing %s"},
		{Create, "making %s"},
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
