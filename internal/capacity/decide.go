package capacity

import (
	"cmp"
	"slices"
	"time"
)

// Decide makes the plan. The order of its parts matters: what is on its way for too long
// is given up before anything is counted; instances are placed before the region is judged,
// so that only those that find no room ask for more; what was to be removed is looked at
// once more before anything else is removed.
func Decide(s Snapshot) Plan {
	d := newDraft(s)
	d.failOverdue()
	d.placeInstances()
	d.countCapacity()
	d.forgetFailed()
	d.reviewRemovals()
	d.scaleUp()
	d.scaleDown()
	return d.buildPlan()
}

// draft is a plan in the making.
type draft struct {
	Snapshot
	// all are the data planes, oldest first; there may be thousands, so they are passed on by reference.
	all          []*plane
	planesByName map[string]*plane
	// types are the accounts by name, sorted.
	types       []*typeTotals
	typesByName map[string]*typeTotals
	// removingCount is how many managed data planes are.
	removingCount int

	steps      []Step
	planes     []PlaneReport
	placements []Placement
	// waitingRank is the place of an instance among those that wait.
	waitingRank map[string]int
	reports     map[*typeTotals]TypeReport
	next        time.Time
}

// plane is a data plane with what is on it.
type plane struct {
	*Plane
	stage stage
	// since is since when it has failed.
	since time.Time
	slots []slot
	// instanceCount is how many instances are on it or booked.
	instanceCount int
	// retryPending is set when one that names it will ask it again.
	retryPending bool
}

// slot is what a data plane has of one type.
type slot struct {
	// totals is nil for a type that the region does not have.
	totals    *typeTotals
	plane     *plane
	room      *Room
	max, used int
	// counted is how many of the used units its agent has counted in what it says remains.
	counted int
	// gone is set once this plan removes its data plane.
	gone bool
}

// freeUnits is how many units are left: of those that the data plane can have, and of those
// that its agent reports as remaining, less what was placed since the report.
func (s *slot) freeUnits() int {
	free := s.max - s.used
	if s.room.Reported {
		free = min(free, s.room.Remaining-(s.used-s.counted))
	}
	return free
}

// isOpen reports whether instances of the type can be placed there.
func (s *slot) isOpen() bool { return s.plane.stage == stageReady && s.acceptsWhenReady() }

// acceptsWhenReady reports whether they could be if its data plane were Ready.
func (s *slot) acceptsWhenReady() bool {
	p := s.plane
	return !p.Cordoned && !p.Silent && !p.Gone && p.MultiZone == s.totals.MultiZone
}

func newDraft(s Snapshot) *draft {
	d := &draft{
		Snapshot: s, planesByName: make(map[string]*plane, len(s.Planes)), typesByName: map[string]*typeTotals{},
		reports: map[*typeTotals]TypeReport{},
	}
	for _, t := range s.Region.Types {
		a := &typeTotals{Type: t, biggest: t.biggestSize(), searchStart: map[int]int{}}
		d.types, d.typesByName[t.Name] = append(d.types, a), a
	}
	slices.SortFunc(d.types, func(a, b *typeTotals) int { return cmp.Compare(a.Name, b.Name) })
	d.all = make([]*plane, len(s.Planes))
	for i := range s.Planes {
		p := &plane{Plane: &s.Planes[i], stage: s.Planes[i].capacityStage(), since: s.Planes[i].Since}
		d.all[i], d.planesByName[p.Name] = p, p
	}
	slices.SortFunc(d.all, oldestFirst)
	for _, p := range d.all {
		d.addSlots(p)
	}
	for i := range s.Instances {
		d.countInstance(&s.Instances[i])
	}
	return d
}

// addSlots gives p its seats, and shows them to the types.
func (d *draft) addSlots(p *plane) {
	p.slots = make([]slot, len(p.Rooms))
	for i, r := range p.Rooms {
		p.slots[i] = slot{totals: d.typesByName[r.Type], plane: p, room: &p.Rooms[i], max: r.Max}
		a := p.slots[i].totals
		if a == nil || p.MultiZone != a.MultiZone {
			continue
		}
		if !p.Gone && (p.stage == stageInFlight || p.stage == stageReady || p.stage == stageRemoving) {
			a.largestMax = max(a.largestMax, r.Max)
		}
		if p.slots[i].isOpen() {
			a.openSlots = append(a.openSlots, &p.slots[i])
		}
	}
	if p.Managed && !p.Gone && (p.stage == stageRemoving || p.stage == stageReleased) {
		d.removingCount++
	}
}

// countInstance counts an instance where it is.
func (d *draft) countInstance(i *Instance) {
	if i.Plane == "" {
		return
	}
	p := d.planesByName[i.Plane]
	if p != nil {
		p.addInstance(i.Type, i.Units)
	}
	if a := d.typesByName[i.Type]; a != nil && (p == nil || p.Managed) {
		a.committed += i.Units
	}
}

// addInstance puts an instance on p.
func (p *plane) addInstance(kind string, units int) {
	p.instanceCount++
	for i := range p.slots {
		if p.Rooms[i].Type == kind {
			p.slots[i].used += units
		}
	}
}

func (d *draft) addStep(s Step) { d.steps = append(d.steps, s) }

// requeueAt has the plan looked at again at that time.
func (d *draft) requeueAt(at time.Time) {
	if at.After(d.Now) && (d.next.IsZero() || at.Before(d.next)) {
		d.next = at
	}
}

// failOverdue gives up what is on its way for too long.
func (d *draft) failOverdue() {
	for _, p := range d.all {
		switch {
		case p.isOverdue(d.Region.Up, d.Now):
			p.stage, p.since = stageFailed, d.Now
			d.addStep(Step{Verb: Fail, DataPlane: p.Name, Reason: TimedOut, Message: "it was not ready within " + d.Region.Up.Timeout.String()})
		case p.Managed && p.stage == stageInFlight && d.Region.Up.Timeout > 0:
			d.requeueAt(p.Created.Add(d.Region.Up.Timeout))
		}
	}
}

// countCapacity counts what the region has, once all placements are known.
func (d *draft) countCapacity() {
	for _, a := range d.types {
		a.computeLimitLeft()
	}
	for _, p := range d.all {
		if !p.Managed {
			continue
		}
		for i := range p.slots {
			if a := p.slots[i].totals; a != nil {
				a.addSlot(&p.slots[i])
			}
		}
	}
	for _, a := range d.types {
		a.finishCounting()
		d.reports[a] = a.buildReport()
	}
}

// failures are kept as the memory of how long to back off: so many of the newest, until
// a data plane has come since.
const maxRecentFailures = 5

// forgetFailed deletes failed data planes that nobody has to know of any more.
func (d *draft) forgetFailed() {
	for _, p := range d.all {
		if p.Managed && p.stage == stageFailed && p.Phase == Failed && !slices.ContainsFunc(p.slots, func(s slot) bool { return s.totals != nil && s.totals.isRecentFailure(p) }) {
			d.addStep(Step{Verb: Forget, DataPlane: p.Name, Reason: Superseded, Message: "it failed, and what came later says more"})
		}
	}
}

func (d *draft) buildPlan() Plan {
	rank := map[Verb]int{Place: 0, Unbook: 1, Fail: 2, Forget: 3, Restore: 4, Release: 5, Create: 6, Remove: 7}
	slices.SortStableFunc(d.steps, func(a, b Step) int { return cmp.Compare(rank[a.Verb], rank[b.Verb]) })
	slices.SortFunc(d.planes, func(a, b PlaneReport) int { return cmp.Compare(a.Name, b.Name) })
	p := Plan{Steps: d.steps, Planes: d.planes, Placements: d.placements}
	for _, a := range d.types {
		p.Types = append(p.Types, d.reports[a])
	}
	if !d.next.IsZero() {
		p.Next = d.next.Sub(d.Now)
	}
	return p
}
