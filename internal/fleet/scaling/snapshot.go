// Package scaling decides what a FleetRegion does next: on which data plane to place each
// instance, when to create a data plane before the region runs out of room, and which empty one is
// no longer needed.
//
// Decide is a pure function from a Snapshot to a Plan: it reads no cluster, no clock and no random
// source, and returns the same plan in whichever order the lists are. Region.PlanPrewarm is
// another: it returns the reserved instances that a data plane should have. Controllers gather the
// snapshot, execute the plan and report it; hotspare fleet evaluate gathers and decides offline.
//
// Units are streaming units. A code such as "fleet N" is a known bug of kas-fleet-manager that one
// of our tests guards against.
package scaling

import (
	"cmp"
	"slices"
	"time"
)

// Snapshot is everything that the next steps of one region depend on.
type Snapshot struct {
	Region Region
	// Planes are all data planes of the region that exist or are recorded for creation.
	Planes []Plane
	// Instances are all instances that name the region, whether or not they are placed, including
	// those that are being deleted.
	Instances []Instance
	Now       time.Time
}

// Region is what the region should have.
type Region struct {
	// Types are the instance types that can be ordered in the region.
	Types []Type
	Up    ScaleUp
	Down  ScaleDown
}

// Mode is whether decisions are executed.
type Mode string

// The modes of scaling up and of scaling down.
const (
	Auto   Mode = "Auto"
	DryRun Mode = "DryRun"
	Off    Mode = "Off"
)

// ScaleUp configures the creation of data planes.
type ScaleUp struct {
	Mode Mode
	// MaxInFlight is the maximum number of data planes of a type that are on their way at the same
	// time.
	MaxInFlight int
	// Timeout is the time after which a data plane on its way fails; 0 means never.
	Timeout time.Duration
	// Backoff is the delay after a failure before the next data plane is created; it doubles with
	// each further failure.
	Backoff time.Duration
}

// ScaleDown configures the removal of data planes.
type ScaleDown struct {
	Mode Mode
	// EmptyFor is the time for which a data plane must have been empty. Cooldown is the time that
	// must have passed since the last data plane was created.
	EmptyFor, Cooldown time.Duration
	// MaxConcurrent is the maximum number of data planes that are being removed at the same time;
	// nil is no limit.
	MaxConcurrent *int
}

// Type is what the region should have of one instance type.
type Type struct {
	Name string
	// Limit is the maximum number of used units; nil is no limit.
	Limit *int
	// Slack is the number of units that are kept free.
	Slack int
	// MinPlanes and MaxPlanes bound the number of data planes; nil is no bound.
	MinPlanes int
	MaxPlanes *int
	// Sizes are the units of each size, in no particular order.
	Sizes []int
	// MultiZone is whether its data planes must span several zones.
	MultiZone bool
	// Expected is the number of units of a new data plane; 0 when it is unknown.
	Expected int
	// Blocked says why no data plane can be created now; empty when one can.
	Blocked string
	// Unknown says why nothing can be decided about the type: it does not exist, or cannot be
	// decoded. It is empty otherwise.
	Unknown string
	// Reserved is the number and the size of the instances that each data plane keeps nodes for.
	Reserved Reserved
}

func (t Type) biggestSize() int { return slices.Max(append([]int{0}, t.Sizes...)) }

// Phase is the phase of a data plane.
type Phase string

// The phases of a data plane, in order.
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
	// Phase is the current phase; empty means Accepted. Since is when the phase began.
	Phase Phase
	Since time.Time
	// Rooms are the types that the data plane takes, with its capacity for each.
	Rooms []Room
	// MultiZone is set when it spans several zones.
	MultiZone bool
	// Managed is set when hotspare counts its capacity and may remove it.
	Managed bool
	// Protected prevents its removal; Cordoned prevents the placement of more instances.
	Protected, Cordoned bool
	// Silent is set while its agent does not report, although it is Ready.
	Silent bool
	// Gone is set when its cluster is gone or is being destroyed, although it was not released.
	Gone bool
	// Unlisted names the instances on it that have no ServiceInstance.
	Unlisted []string
	// Unknown says why its contents are unknown; empty when its agent has reported them. The
	// contents of a Silent one are unknown, too.
	Unknown string
	// Confirmed is set when its agent has reported its contents since it was marked for removal.
	Confirmed bool
	// Discard is set when a person has given up the contents that have no ServiceInstance.
	Discard bool
	// EmptySince is since when it has no instances; zero when it has some, or when the time was not
	// recorded.
	EmptySince time.Time
	// Released is set when the decision to release its cluster is permanent; Deleting when the
	// object itself is being deleted.
	Released, Deleting bool
	// Bookings are instances that were given a place on it, and whose status may not name it yet.
	Bookings []Booking
	// Unreadable says which part of the object could not be decoded; empty when all could. The data
	// plane is then left alone, and its room does not count.
	Unreadable string
	// Versions are the versions that it can run.
	Versions []Version
}

// Room is the capacity of a data plane for one type.
type Room struct {
	Type string
	// Max is the number of units that it has, or will have as far as is known.
	Max int
	// Reported is set when its agent has reported the figures below.
	Reported bool
	// Used and Remaining are the numbers of units that its agent last reported as used and as
	// remaining. Known is the number of used units that belong to Instances of the Snapshot.
	Used, Remaining, Known int
}

// Booking is a place that was given to an instance.
type Booking struct {
	// Instance and UID identify the instance.
	Instance, UID string
	Type          string
	Units         int
}

// Instance is one instance, as observed.
type Instance struct {
	// Name is the namespace and the name, unique among all instances. UID distinguishes it from an
	// earlier one of that name.
	Name, UID string
	Created   time.Time
	Type      string
	// Units is the number of units that it takes; 0 when it is unknown, see Fault.
	Units int
	// Plane names the data plane that it is on; empty while it has none.
	Plane string
	// Pin names the only data plane that it may be placed on.
	Pin string
	// Refusals are the data planes that have refused it.
	Refusals []Refusal
	// Fault says why it cannot be placed anywhere; Reason is the matching reason.
	Reason Reason
	Fault  string
	// Deleting is set while it is being deleted. It takes its units until it is deleted.
	Deleting bool
}

// Refusal is a data plane that has refused an instance. It is not asked again before Until, nor
// while it reports the same as at that time.
type Refusal struct {
	Plane string
	Until time.Time
	// Remaining is the number of remaining units of the type at that time, without the instance.
	// Versions are the versions that it could run, as JoinReadyVersions returns them.
	Remaining int
	Versions  string
	// Vacant is set when no other instance was on it: a new data plane would refuse the instance,
	// too.
	Vacant bool
}

// stage is the meaning of a phase for capacity.
type stage int

const (
	stageInFlight stage = iota // on its way, never was Ready
	stageReady
	stageRemoving // marked for removal, and under review
	stageReleased // cannot be restored
	stageFailed
	stageUnreadable // cannot be decoded
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

// isOverdue reports whether p has been on its way for longer than the timeout.
func (p Plane) isOverdue(up ScaleUp, now time.Time) bool {
	return p.Managed && p.capacityStage() == stageInFlight && up.Timeout > 0 && !now.Before(p.Created.Add(up.Timeout))
}

func oldestFirst(a, b *plane) int {
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
}
