package scaling

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// placeInstances finds a data plane for each instance that has none: the one that is booked for it,
// or the oldest with room.
func (d *draft) placeInstances() {
	waiting := d.listUnplaced()
	held := d.countBookings(waiting)
	for _, p := range d.all {
		for i := range p.slots {
			p.slots[i].counted = min(p.slots[i].used, p.slots[i].room.Known)
		}
	}
	for _, i := range waiting {
		if p := held[i.Name]; p != nil {
			d.placeBooked(i, p)
		}
	}
	for _, i := range waiting {
		if held[i.Name] == nil && !i.Deleting {
			d.placeUnbooked(i)
		}
	}
	slices.SortStableFunc(d.placements, func(a, b Placement) int { return d.waitingRank[a.Instance] - d.waitingRank[b.Instance] })
}

// listUnplaced returns the instances without a data plane, oldest first.
func (d *draft) listUnplaced() []*Instance {
	var out []*Instance
	for i := range d.Instances {
		if d.Instances[i].Plane == "" {
			out = append(out, &d.Instances[i])
		}
	}
	slices.SortFunc(out, func(a, b *Instance) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name)) })
	d.waitingRank = make(map[string]int, len(out))
	for n, i := range out {
		d.waitingRank[i.Name] = n
	}
	return out
}

// countBookings counts the bookings, and returns the data plane that is booked for each instance. A
// booking ends when its instance is deleted, has its data plane in its status, or has an older
// booking; or when the data plane is lost, or has refused the instance.
func (d *draft) countBookings(waiting []*Instance) map[string]*plane {
	booked := map[string]*plane{}
	byName := make(map[string]*Instance, len(waiting))
	for _, i := range waiting {
		byName[i.Name] = i
	}
	for _, p := range d.all {
		for _, b := range p.Bookings {
			i := byName[b.Instance]
			if i == nil || i.UID != b.UID || booked[b.Instance] != nil || p.stage == stageReleased || p.stage == stageFailed || p.Gone || d.hasRefusedSinceBooking(p, i) {
				d.addStep(Step{Verb: Unbook, DataPlane: p.Name, Instance: b.Instance, Reason: Settled, Message: "the booking is no longer needed"})
				continue
			}
			booked[b.Instance] = p
			p.addInstance(b.Type, b.Units)
			if a := d.typesByName[b.Type]; a != nil && p.Managed {
				a.committed += b.Units
			}
		}
	}
	return booked
}

// placeBooked places an instance on the data plane that is booked for it.
func (d *draft) placeBooked(i *Instance, p *plane) {
	if i.Deleting {
		return // it keeps its booking until it is deleted
	}
	if p.stage != stageReady {
		d.addWaiting(i, PlaneIsLeaving, fmt.Sprintf("data plane %s, which was booked for it, is not Ready and is being checked again", p.Name))
		return
	}
	d.addPlacement(i, p, Booked, "the data plane was booked for the instance before")
}

func (d *draft) addPlacement(i *Instance, p *plane, reason Reason, words string) {
	d.addStep(Step{Verb: Place, Instance: i.Name, DataPlane: p.Name, Type: i.Type, Units: i.Units, Reason: reason, Message: words})
	d.placements = append(d.placements, Placement{Instance: i.Name, DataPlane: p.Name, Decision: Decision{Action: Place, Reason: reason, Message: words}})
}

func (d *draft) addWaiting(i *Instance, reason Reason, words string) {
	d.placements = append(d.placements, Placement{Instance: i.Name, Decision: Decision{Action: Wait, Reason: reason, Message: words}})
}

// placeUnbooked places an instance on a data plane with room, or records why there is none.
func (d *draft) placeUnbooked(i *Instance) {
	a := d.typesByName[i.Type]
	switch {
	case i.Fault != "":
		d.addWaiting(i, i.Reason, i.Fault)
		return
	case a == nil:
		d.addWaiting(i, NotOffered, fmt.Sprintf("the region does not offer type %q: add it to spec.instanceTypes of its FleetRegion, or use another type", i.Type))
		return
	}
	a.pendingUnits += i.Units
	s, reason, words := d.chooseSlot(a, i)
	if s == nil {
		a.recordUnplaced(i, reason)
		d.addWaiting(i, reason, words)
		return
	}
	s.plane.addInstance(i.Type, i.Units)
	if s.plane.Managed {
		a.committed += i.Units
	}
	if s.plane.stage == stageRemoving {
		d.addWaiting(i, PlaneIsLeaving, fmt.Sprintf("data plane %s, which spec.dataPlaneName names, was marked for removal and is kept for the instance", s.plane.Name))
		return
	}
	a.pendingUnits -= i.Units
	d.addPlacement(i, s.plane, Fits, "the oldest data plane with "+formatCount(i.Units, "unit")+" free")
}

// recordUnplaced counts an instance that waits for room.
func (t *typeTotals) recordUnplaced(i *Instance, reason Reason) {
	switch {
	case i.Pin != "" || i.NewPlaneWouldRefuse():
	case reason == NoCapacity:
		t.waitingUnits = append(t.waitingUnits, i.Units)
		t.hasUnschedulable = true
	case reason == Refused:
		t.hasUnschedulable = true
		if t.Expected == 0 || i.Units <= t.Expected {
			t.refusedUnits = append(t.refusedUnits, i.Units)
		}
	}
}

// maxRefusals is the number of refusals after which no data plane is created for an instance.
const maxRefusals = 3

// NewPlaneWouldRefuse reports whether a new data plane would most likely refuse the instance, too:
// an otherwise empty data plane has refused it, or at least maxRefusals have. Without this check,
// the region would create data planes without end.
func (i *Instance) NewPlaneWouldRefuse() bool {
	return len(i.Refusals) >= maxRefusals || slices.ContainsFunc(i.Refusals, func(r Refusal) bool { return r.Vacant })
}

// wouldRefuseAgain reports whether the data plane would refuse the instance again: it has refused it,
// and has since reported neither more room nor other versions.
func (d *draft) wouldRefuseAgain(s *slot, i *Instance) bool {
	r := i.refusalBy(s.plane.Name)
	switch {
	case r == nil:
		return false
	case d.Now.Before(r.Until):
		d.requeueAt(r.Until)
		return true
	}
	return s.room.Reported && s.room.Remaining <= r.Remaining && JoinReadyVersions(s.plane.Versions) == r.Versions
}

// hasRefusedSinceBooking reports whether p has refused an instance since it was booked: the booking
// is then of a placement that the instance has lost.
func (d *draft) hasRefusedSinceBooking(p *plane, i *Instance) bool {
	n := slices.IndexFunc(p.Rooms, func(r Room) bool { return r.Type == i.Type })
	return n >= 0 && d.wouldRefuseAgain(&p.slots[n], i)
}

// JoinReadyVersions returns the names of the ready versions, sorted and joined with commas.
func JoinReadyVersions(all []Version) string {
	var names []string
	for _, v := range all {
		if v.Ready {
			names = append(names, v.Strimzi)
		}
	}
	slices.Sort(names)
	const most = 1024 // the maximum length in the API
	text := strings.Join(names, ",")
	return text[:min(len(text), most)]
}

// chooseSlot returns the slot for an instance; or nil, with the reason and a message.
func (d *draft) chooseSlot(a *typeTotals, i *Instance) (*slot, Reason, string) {
	if i.Pin != "" {
		return d.choosePinnedSlot(a, i)
	}
	if a.Limit != nil && a.committed+i.Units > *a.Limit {
		return nil, LimitReached, fmt.Sprintf("%d of at most %s of %s are in use in the region: raise the limit of its FleetRegion, or delete instances",
			a.committed, formatCount(*a.Limit, "unit"), a.Name)
	}
	var refusals []string
	at := a.searchStart[i.Units]
	for at < len(a.openSlots) && a.openSlots[at].freeUnits() < i.Units {
		at++
	}
	a.searchStart[i.Units] = at
	for ; at < len(a.openSlots); at++ {
		s := a.openSlots[at]
		if s.freeUnits() < i.Units {
			continue
		}
		if d.wouldRefuseAgain(s, i) {
			refusals = append(refusals, s.plane.Name)
			continue
		}
		return s, "", ""
	}
	if i.NewPlaneWouldRefuse() {
		return nil, Refused, fmt.Sprintf("the instance was refused by %s, and a new data plane would most likely refuse it, too: "+
			"correct spec.parameters, or delete the instance and create another; a data plane is asked again when it reports more room or other versions",
			listFirst(i.refusingPlanes()))
	}
	if len(refusals) > 0 {
		return nil, Refused, fmt.Sprintf("the instance was refused by %s, and no other data plane has room: each is asked again when it reports more room or other versions",
			listFirst(refusals))
	}
	if most := a.maxUnitsPerPlane(); most > 0 && i.Units > most {
		return nil, TooBig, fmt.Sprintf("the instance needs %s, and a data plane of %s has at most %d: use a smaller size", formatCount(i.Units, "unit"), a.Name, most)
	}
	return nil, NoCapacity, fmt.Sprintf("no data plane of %s has %s free", a.Name, formatCount(i.Units, "unit"))
}

// refusingPlanes returns the names of the data planes that have refused the instance.
func (i *Instance) refusingPlanes() []string {
	var out []string
	for _, r := range i.Refusals {
		out = append(out, r.Plane)
	}
	return out
}

func (i *Instance) refusalBy(plane string) *Refusal {
	for n := range i.Refusals {
		if i.Refusals[n].Plane == plane {
			return &i.Refusals[n]
		}
	}
	return nil
}

// maxUnitsPerPlane returns the number of units that a data plane of the type can have; 0 when it is
// unknown.
func (t *typeTotals) maxUnitsPerPlane() int {
	if t.Expected == 0 {
		return 0
	}
	return max(t.Expected, t.largestMax)
}

// choosePinnedSlot returns the slot on the data plane that the instance names. The data plane may
// be marked for removal: the instance then takes its place there, which restores the data plane, so
// that the capacity left for others accounts for it.
func (d *draft) choosePinnedSlot(a *typeTotals, i *Instance) (*slot, Reason, string) {
	p := d.planesByName[i.Pin]
	if p == nil {
		return nil, PinNotThere, fmt.Sprintf("the region has no data plane %q", i.Pin)
	}
	n := slices.IndexFunc(p.Rooms, func(r Room) bool { return r.Type == i.Type })
	switch {
	case n < 0:
		return nil, PinUnsuitable, fmt.Sprintf("data plane %s does not accept type %s", p.Name, i.Type)
	case p.MultiZone != a.MultiZone:
		return nil, PinUnsuitable, fmt.Sprintf("data plane %s has other zones than type %s needs: spec.multiZone of the data plane is %t, of the type %t",
			p.Name, i.Type, p.MultiZone, a.MultiZone)
	case !p.slots[n].isOpen() && !(p.stage == stageRemoving && p.Managed && p.slots[n].acceptsWhenReady()):
		return nil, PinUnsuitable, fmt.Sprintf("data plane %s accepts no instances now: see its conditions and its spec.schedulable", p.Name)
	case p.Managed && a.Limit != nil && a.committed+i.Units > *a.Limit:
		return nil, LimitReached, fmt.Sprintf("%d of at most %s of %s are in use in the region", a.committed, formatCount(*a.Limit, "unit"), a.Name)
	case d.wouldRefuseAgain(&p.slots[n], i):
		p.retryPending = true
		return nil, Refused, fmt.Sprintf("the instance was refused by %s, which is asked again when it reports more room or other versions", p.Name)
	case p.slots[n].freeUnits() < i.Units:
		return nil, NoCapacity, fmt.Sprintf("data plane %s does not have %s free", p.Name, formatCount(i.Units, "unit"))
	}
	return &p.slots[n], "", ""
}
