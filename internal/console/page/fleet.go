package page

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/explain/fleetplan"
	"hotspare.io/hotspare/internal/explain/remedy"
	"hotspare.io/hotspare/internal/fleet/scaling"
)

// Fleet is the content of the pages of fleets. Its texts are those of hotspare fleet explain.
type Fleet struct {
	// Recorded is set if the viewer may not read everything that decisions depend on. The page then
	// shows what the hub's controllers last wrote to status and computes nothing itself.
	Recorded bool
	Regions  []Region
	// Others are the data planes without a decision.
	Others []OtherPlane
	// Single is the region of the page of one region; nil on the page of all.
	Single *Region
}

// A Region is a region with everything in it.
type Region struct {
	fleetplan.Region
	Link string
	// NextCheck is when the controller reconciles the region again if nothing changes; it may be
	// zero.
	NextCheck Moment
	Types     []Type
	// Phases counts the data planes by phase, in the order of the data planes.
	Phases []Count
	Planes []Plane
	// Waiting are the instances without a data plane, Placed those that are being placed on one.
	Waiting, Placed []Instance
	// Actions are the tasks for a person, Waits those that only need time.
	Actions, Waits []fleetplan.Task
}

// A Type is an instance type in a region.
type Type struct {
	fleetplan.Type
	Tone string
	// InFlightUnits are the free units on data planes that are not ready yet, ReadyFreeUnits the
	// other free units.
	InFlightUnits, ReadyFreeUnits int
	Bar                           Bar
}

// A Plane is a data plane with the decision about it.
type Plane struct {
	fleetplan.Plane
	Tone string
	// PhaseAge is when the data plane entered its phase.
	PhaseAge Moment
	Rooms    []Room
	// Removal and RemovalReason describe the decision about removing the data plane; both may be
	// empty.
	Removal, RemovalReason string
	// Outcome describes what happens to the data plane, and why. TimesOut is when the provisioning
	// of a data plane fails if it is not ready by then.
	Outcome  string
	TimesOut Moment
}

// A Room is the capacity of a data plane for a type.
type Room struct {
	fleetplan.Room
	Bar Bar
}

// An Instance is an instance without a data plane.
type Instance struct {
	fleetplan.Instance
	Age Moment
}

// An OtherPlane is a data plane without a decision.
type OtherPlane struct {
	Namespace, Name, Region, Phase, Why string
	Age                                 Moment
	// ToDo is what a person can do; nil if no action is needed.
	ToDo *remedy.Remedy
}

// NewFleet describes the regions of a namespace, or of all if it is empty. For recorded, see Fleet.
func NewFleet(h *fleetplan.Hub, namespace string, recorded bool, now time.Time) Fleet {
	regions := h.RegionsInNamespace(namespace)
	slices.SortFunc(regions, compareByKey[*v1alpha1.FleetRegion])
	v := viewRegions(h, regions, recorded, now)
	f := Fleet{Recorded: recorded}
	for _, r := range v.Regions {
		f.Regions = append(f.Regions, newRegion(r, now))
	}
	for _, o := range h.ListOtherPlanes(v, remedy.FormatPlainCommand) {
		if namespace == "" || o.Namespace == namespace {
			f.Others = append(f.Others, OtherPlane{
				o.Namespace, o.Name, o.FleetRegion, o.Phase, o.Why, PastMoment(o.Created, now), o.ToDo,
			})
		}
	}
	slices.SortFunc(f.Others, func(a, b OtherPlane) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return f
}

// NewSingleRegion describes one region. It returns false if the region does not exist.
func NewSingleRegion(h *fleetplan.Hub, namespace, name string, recorded bool, now time.Time) (Fleet, bool) {
	for _, r := range h.RegionsInNamespace(namespace) {
		if r.Name == name {
			v := viewRegions(h, []*v1alpha1.FleetRegion{r}, recorded, now)
			one := newRegion(v.Regions[0], now)
			return Fleet{Recorded: recorded, Single: &one}, true
		}
	}
	return Fleet{}, false
}

func viewRegions(h *fleetplan.Hub, regions []*v1alpha1.FleetRegion, recorded bool, now time.Time) fleetplan.Fleet {
	if recorded {
		return h.RecordedFleet(regions, now, remedy.FormatPlainCommand)
	}
	return h.EvaluateFleet(regions, now, remedy.FormatPlainCommand)
}

type namedObject interface {
	GetNamespace() string
	GetName() string
}

func compareByKey[T namedObject](a, b T) int {
	return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
}

func newRegion(r fleetplan.Region, now time.Time) Region {
	out := Region{Region: r, Link: RegionLink(r.Namespace, r.Name)}
	if r.LooksAgain > 0 {
		out.NextCheck = FutureMoment(now.Add(r.LooksAgain), now)
	}
	coming := map[string]int{}
	for _, p := range r.DataPlanes {
		for _, room := range p.Rooms {
			if p.IsInFlight() {
				coming[room.Type] += room.MaxUnits - room.UsedUnits
			}
		}
		out.Planes = append(out.Planes, newPlane(p, now))
		if n := len(out.Phases); n > 0 && out.Phases[n-1].What == p.Phase { // the data planes are sorted by phase
			out.Phases[n-1].N++
		} else {
			out.Phases = append(out.Phases, Count{p.Phase, 1})
		}
	}
	for _, t := range r.Types {
		c := min(coming[t.Name], t.FreeUnits)
		out.Types = append(out.Types, Type{Type: t, Tone: toneFor(string(t.Decision.Reason)), InFlightUnits: c, ReadyFreeUnits: t.FreeUnits - c, Bar: newTypeBar(t, c)})
	}
	for _, i := range r.Instances {
		one := Instance{i, PastMoment(i.Created, now)}
		if i.DataPlane == "" {
			out.Waiting = append(out.Waiting, one)
		} else {
			out.Placed = append(out.Placed, one)
		}
	}
	out.Actions, out.Waits = r.ListTasks()
	return out
}

func newPlane(p fleetplan.Plane, now time.Time) Plane {
	out := Plane{Plane: p, Tone: toneFor(p.Phase), PhaseAge: PastMoment(p.Since, now)}
	if p.AgentState() == fleetplan.AgentSilent {
		out.Tone = toneBad
	}
	for _, r := range p.Rooms {
		if p.DescribeUnits() != "" {
			out.Rooms = append(out.Rooms, Room{r, newRoomBar(r)})
		}
	}
	out.Removal, out.RemovalReason = p.RemovalDecision()
	if p.GivenUp != nil {
		out.TimesOut = FutureMoment(*p.GivenUp, now)
	}
	p.GivenUp = nil // the page shows the countdown separately
	out.Outcome = p.DescribeOutcome(now)
	return out
}

// Tones select icons and colors.
const (
	toneGood     = "good"
	toneWait     = "wait"
	toneBad      = "bad"
	toneDeleting = "deleting"
)

// tones maps reasons of decisions and phases of data planes to tones. Others have none.
var tones = map[string]string{
	string(scaling.Sufficient):         toneGood,
	string(scaling.LimitCovered):       toneGood,
	string(scaling.LimitReached):       toneWait,
	string(scaling.InFlight):           toneWait,
	string(scaling.BelowMinimum):       toneWait,
	string(scaling.BelowSlack):         toneWait,
	string(scaling.BiggestDoesNotFit):  toneWait,
	string(scaling.AtMaximum):          toneBad,
	string(scaling.BackingOff):         toneBad,
	string(scaling.Blocked):            toneBad,
	string(scaling.NoUnits):            toneBad,
	string(scaling.BiggestFitsNowhere): toneBad,
	string(scaling.Undecided):          toneBad,

	string(v1alpha1.PhaseReady):           toneGood,
	string(v1alpha1.PhaseAccepted):        toneWait,
	string(v1alpha1.PhaseProvisioning):    toneWait,
	string(v1alpha1.PhaseProvisioned):     toneWait,
	string(v1alpha1.PhaseWaitingForAgent): toneWait,
	string(v1alpha1.PhaseDeprovisioning):  toneDeleting,
	string(v1alpha1.PhaseCleanup):         toneDeleting,
	string(v1alpha1.PhaseFailed):          toneBad,
}

func toneFor(word string) string { return tones[word] }
