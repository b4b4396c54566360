// Package capacity decides what a FleetRegion does next: which instance goes to which
// data plane, when a data plane is made before the region runs out of room, and which
// empty one is not needed any more.
//
// Decide is one pure function from a Snapshot to a Plan: it reads no cluster, no clock,
// no random source, and gives the same plan whatever the order of the lists. Reserve is
// another: which reserved instances a data plane should have. Controllers gather the
// snapshot, carry out the plan and report it; hotspare fleet evaluate does the first half
// offline.
//
// Units are streaming units. A code such as "fleet N" is a known fault of
// kas-fleet-manager that a test of ours guards against.
package capacity

import (
	"cmp"
	"slices"
	"time"
)

// Snapshot is everything that the next steps of one region depend on.
type Snapshot struct {
	Region Region
	// Planes are all data planes of the region that exist or are recorded to be made.
	Planes []Plane
	// Instances are all instances that name the region, placed or not, dying ones too.
	Instances []Instance
	Now       time.Time
}

// Region is what the region should have.
type Region struct {
	// Types are what can be ordered in it.
	Types []Type
	Up    ScaleUp
	Down  ScaleDown
}

// Mode is whether decisions are carried out.
type Mode string

// The modes of scaling up and of scaling down.
const (
	Auto   Mode = "Auto"
	DryRun Mode = "DryRun"
	Off    Mode = "Off"
)

// ScaleUp is how data planes are made.
type ScaleUp struct {
	Mode Mode
	// MaxInFlight is how many of a type may be on their way.
	MaxInFlight int
	// Timeout is how long one may be on its way; 0 is for ever.
	Timeout time.Duration
	// Backoff is how long after a failure the next is made.
	Backoff time.Duration
}

// ScaleDown is how data planes are removed.
type ScaleDown struct {
	Mode Mode
	// EmptyFor is how long one must have been empty, Cooldown how long ago the last one must have been made.
	EmptyFor, Cooldown time.Duration
	// MaxConcurrent limits those on their way out; nil is no limit.
	MaxConcurrent *int
}

// Type is what the region should have of one instance type.
type Type struct {
	Name string
	// Limit is how many units may be used; nil is no limit.
	Limit *int
	// Slack is how many units are kept free.
	Slack int
	// MinPlanes and MaxPlanes bound the number of data planes; nil is no bound.
	MinPlanes int
	MaxPlanes *int
	// Sizes are the units of each size; in no order.
	Sizes []int
	// MultiZone is what its data planes have to be.
	MultiZone bool
	// Expected is how many units a new data plane will have; 0 when nobody knows.
	Expected int
	// Blocked says why no data plane can be made now, in words; empty when one can.
	Blocked string
	// Unknown says why nothing can be decided about the type, in words: it does not
	// exist, or cannot be read. Empty when all is known.
	Unknown string
	// Reserved is how many instances of which size each data plane keeps nodes for.
	Reserved Reserved
}

func (t Type) biggestSize() int { return slices.Max(append([]int{0}, t.Sizes...)) }

// Phase is how far a data plane is.
type Phase string

// The phases of a data plane, in their order.
const (
	Accepted        Phase = "Accepted"
	Provisioning    Phase = "Provisioning"
	Provisioned     Phase = "Provisioned"
	WaitingForAgent Phase = "WaitingForAgent"
	Ready           Phase = "Ready"
	Deprovisioning  Phase = "Deprovisioning"
	Cleanup         Phase = "Cleanup"
	Failed          Phase = "Failed"
)

// Plane is one data plane, as observed.
type Plane struct {
	Name    string
	Created time.Time
	// Phase is how far it is; the empty one is Accepted. Since is since when.
	Phase Phase
	Since time.Time
	// Rooms are the types that it takes, with what it has of each.
	Rooms []Room
	// MultiZone is set when it spans several zones.
	MultiZone bool
	// Managed is set when hotspare may count on it and remove it.
	Managed bool
	// Protected keeps it from being removed, Cordoned from getting more instances.
	Protected, Cordoned bool
	// Silent is set while its agent is not heard of, although it is Ready.
	Silent bool
	// Gone is set when its cluster is gone, or is being destroyed, though nobody has let it go.
	Gone bool
	// Unlisted names the instances on it that have no ServiceInstance.
	Unlisted []string
	// Unknown says, in words, why nobody knows what is on it; empty when its agent has
	// reported it. A Silent one is unknown, too.
	Unknown string
	// Confirmed is set when its agent has reported what is on it since it was to be removed.
	Confirmed bool
	// Discard is set when a person has given up what is on it and has no ServiceInstance.
	Discard bool
	// EmptySince is since when no instance is on it; zero when one is, or nobody has noted it.
	EmptySince time.Time
	// Released is set when it was decided for good to give its cluster back; Deleting
	// when the object itself is being deleted.
	Released, Deleting bool
	// Bookings are instances that were given a place on it and may not know.
	Bookings []Booking
	// Unreadable says what of it could not be read; empty when all could. It is left
	// alone then, and its room counts as none.
	Unreadable string
	// Versions are what it can run.
	Versions []Version
}

// Room is what a data plane has of one type.
type Room struct {
	Type string
	// Max is how many units it has, or will have as far as is known.
	Max int
	// Reported is set when its agent has reported the figures below.
	Reported bool
	// Used and Remaining are how many units its agent has last reported as used, and as
	// left. Known is how many of those used are of Instances of the Snapshot.
	Used, Remaining, Known int
}

// Booking is a place that was given to an instance.
type Booking struct {
	// Instance and UID tell which.
	Instance, UID string
	Type          string
	Units         int
}

// Instance is one instance, as observed.
type Instance struct {
	// Name is unique among all: namespace and name. UID tells it from one before.
	Name, UID string
	Created   time.Time
	Type      string
	// Units is how many it takes; 0 when they are not known, see Fault.
	Units int
	// Plane names the data plane that it is on; empty while it has none.
	Plane string
	// Pin names the only data plane that it may be placed on.
	Pin string
	// Refusals are data planes that would not have it.
	Refusals []Refusal
	// Fault says why it can be placed nowhere, in words, and Reason in a word.
	Reason Reason
	Fault  string
	// Deleting is set while it is being deleted. It takes its units until it is gone.
	Deleting bool
}

// Refusal is a data plane that would not have an instance. It is not asked again before
// Until, nor while it reports what it did then.
type Refusal struct {
	Plane string
	Until time.Time
	// Remaining is how many units of the type it had left then, without the instance, and
	// Versions what it could run, as ReadyVersions says.
	Remaining int
	Versions  string
	// Vacant is set when nothing else was on it: a new data plane would refuse it, too.
	Vacant bool
}

// stage is what a phase means for capacity.
type stage int

const (
	stageInFlight stage = iota // on its way, never was ready
	stageReady
	stageRemoving // to be removed, and looked at once more
	stageReleased // no way back
	stageFailed
	stageUnreadable // it cannot be read
)

func (p Plane) capacityStage() stage {
	switch {
	case p.Deleting || p.Released || p.Phase == Cleanup:
		return stageReleased
	case p.Unreadable != "":
		return stageUnreadable
	case p.Phase == Failed:
		return stageFailed
	case p.Phase == Deprovisioning:
		return stageRemoving
	case p.Phase == Ready:
		return stageReady
	default:
		return stageInFlight
	}
}

// isOverdue reports whether p has been on its way for too long.
func (p Plane) isOverdue(up ScaleUp, now time.Time) bool {
	return p.Managed && p.capacityStage() == stageInFlight && up.Timeout > 0 && !now.Before(p.Created.Add(up.Timeout))
}

func oldestFirst(a, b *plane) int {
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
}
