package page

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/explain/fleetforecast"
	"hotspare.io/hotspare/internal/explain/remedy"
	"hotspare.io/hotspare/internal/fleet/scaling"
)

// Fleet is what there is of fleets. The words are those of hotspare fleet explain.
type Fleet struct {
	// Recorded is set when the viewer may not see all that is decided from: then this is
	// what the hub's controllers have last written, and not worked out anew.
	Recorded bool
	Regions  []Region
	// Others are data planes about which nothing is decided.
	Others []OtherPlane
	// Single is the only region that the page is about; nil when it is about all.
	Single *Region
}

// A Region is one with all that is in it.
type Region struct {
	fleetforecast.Region
	Link string
	// NextCheck is when its controller looks again though nothing has changed; it may be zero.
	NextCheck Moment
	Types     []Type
	// Phases has how many data planes there are in each, in the order in which people
	// want to know of them.
	Phases []Count
	Planes []Plane
	// Waiting are the instances that find no place, Placed those that are being given one.
	Waiting, Placed []Instance
	// Actions is what a person can do, Patience what needs no more than time.
	Actions, Waits []fleetforecast.Task
}

// A Type is what a region has of one.
type Type struct {
	fleetforecast.Type
	Tone string
	// InFlightUnits is how many of the free units come with data planes on their way, Now the others.
	InFlightUnits, ReadyFreeUnits int
	Bar                           Bar
}

// A Plane is a data plane, and what becomes of it.
type Plane struct {
	fleetforecast.Plane
	Tone string
	// PhaseAge is since when it is in its phase.
	PhaseAge Moment
	Rooms    []Room
	// Removal and Reason are of what is decided about removing it; both may be empty.
	Removal, RemovalReason string
	// Outcome say what becomes of it, and why; GivenUp is when it will have failed, of one
	// that is on its way.
	Outcome  string
	TimesOut Moment
}

// A Room is what a data plane has of a type.
type Room struct {
	fleetforecast.Room
	Bar Bar
}

// An Instance is one that has no data plane yet.
type Instance struct {
	fleetforecast.Instance
	Age Moment
}

// An OtherPlane is a data plane about which nothing is decided.
type OtherPlane struct {
	Namespace, Name, Region, Phase, Why string
	Age                                 Moment
	// ToDo is what a person can do about it; nil when nothing has to be done.
	ToDo *remedy.Remedy
}

// FleetLink is the page of a region.
func FleetLink(namespace, name string) string { return "/fleet/" + namespace + "/" + name }

// NewFleet tells of the regions of a namespace, or of all when it is empty. Written is as
// in Fleet.
func NewFleet(h *fleetforecast.Hub, namespace string, written bool, now time.Time) Fleet {
	regions := h.RegionsInNamespace(namespace)
	slices.SortFunc(regions, compareByKey[*v1alpha1.FleetRegion])
	v := viewRegions(h, regions, written, now)
	f := Fleet{Recorded: written}
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

// NewSingleRegion tells of one region; false when there is none of that name.
func NewSingleRegion(h *fleetforecast.Hub, namespace, name string, written bool, now time.Time) (Fleet, bool) {
	for _, r := range h.RegionsInNamespace(namespace) {
		if r.Name == name {
			v := viewRegions(h, []*v1alpha1.FleetRegion{r}, written, now)
			one := newRegion(v.Regions[0], now)
			return Fleet{Recorded: written, Single: &one}, true
		}
	}
	return Fleet{}, false
}

func viewRegions(h *fleetforecast.Hub, regions []*v1alpha1.FleetRegion, written bool, now time.Time) fleetforecast.Fleet {
	if written {
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

func newRegion(r fleetforecast.Region, now time.Time) Region {
	out := Region{Region: r, Link: FleetLink(r.Namespace, r.Name)}
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
		if n := len(out.Phases); n > 0 && out.Phases[n-1].What == p.Phase { // they come sorted by it
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

func newPlane(p fleetforecast.Plane, now time.Time) Plane {
	out := Plane{Plane: p, Tone: toneFor(p.Phase), PhaseAge: PastMoment(p.Since, now)}
	if p.Heard() == fleetforecast.AgentSilent {
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
	p.GivenUp = nil // it is told apart, since it ticks
	out.Outcome = p.DescribeOutcome(now)
	return out
}

// How things are, for icons and colours: well, under way, or wanting a person.
const (
	toneGood     = "good"
	toneWait     = "wait"
	toneBad      = "bad"
	toneDeleting = "deleting"
)

// tones are those of reasons and of phases of data planes. Others have none.
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
