package scaling

import (
	"cmp"
	"slices"
	"time"
)

// Decide returns the plan for a region. The order of its parts matters: overdue data planes fail
// before anything is counted; instances are placed before the region's capacity is checked, so that
// only instances without room ask for more; data planes marked for removal are reviewed before any
// other is removed.
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

// draft is a plan under construction.
type draft struct {
	Snapshot
	// all are the data planes, oldest first. There may be thousands, so they are passed by
	// reference.
	all          []*plane
	planesByName map[string]*plane
	// types are the totals of each type, sorted by name.
	types       []*typeTotals
	typesByName map[string]*typeTotals
	// removingCount is the number of managed data planes that are being removed.
	removingCount int

	steps      []Step
	planes     []PlaneReport
	placements []Placement
	// waitingRank is the position of an instance among those without a data plane.
	waitingRank map[string]int
	reports     map[*typeTotals]TypeReport
	next        time.Time
}

// plane is a data plane and the instances on it.
type plane struct {
	*Plane
	stage stage
	// since is the time at which it failed.
	since time.Time
	slots []slot
	// instanceCount is the number of instances that are on it or booked.
	instanceCount int
	// retryPending is set when an instance that is pinned to it will ask it again.
	retryPending bool
}

// slot is the capacity of a data plane for one type.
type slot struct {
	// totals is nil for a type that the region does not have.
	totals    *typeTotals
	plane     *plane
	room      *Room
	max, used int
	// counted is the number of used units that the agent has already subtracted from the remaining
	// units it reports.
	counted int
	// gone is set once this plan removes its data plane.
	gone bool
}

// freeUnits returns the number of units left: the lower of the data plane's maximum minus the used
// units, and the agent's reported remaining units minus those placed since the report.
func (s *slot) freeUnits() int {
	free := s.max - s.used
	if s.room.Reported {
		free = min(free, s.room.Remaining-(s.used-s.counted))
	}
	return free
}

// isOpen reports whether instances of the type can be placed in the slot.
func (s *slot) isOpen() bool { return s.plane.stage == stageReady && s.acceptsWhenReady() }

// acceptsWhenReady reports whether instances could be placed in the slot if its data plane were
// Ready.
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

// addSlots creates the slots of p, and adds the open ones to their types.
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

// countInstance counts an instance on its data plane and against the limit of its type.
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

// addInstance adds an instance to p.
func (p *plane) addInstance(kind string, units int) {
	p.instanceCount++
	for i := range p.slots {
		if p.Rooms[i].Type == kind {
			p.slots[i].used += units
		}
	}
}

func (d *draft) addStep(s Step) { d.steps = append(d.steps, s) }

// requeueAt makes the controller reconcile the region no later than at. A time that is not in the
// future is ignored.
func (d *draft) requeueAt(at time.Time) {
	if at.After(d.Now) && (d.next.IsZero() || at.Before(d.next)) {
		d.next = at
	}
}

// failOverdue fails the data planes that are not Ready within the provision timeout.
func (d *draft) failOverdue() {
	for _, p := range d.all {
		switch {
		case p.isOverdue(d.Region.Up, d.Now):
			p.stage, p.since = stageFailed, d.Now
			d.addStep(Step{Verb: Fail, DataPlane: p.Name, Reason: TimedOut, Message: "the data plane was not Ready within " + d.Region.Up.Timeout.String()})
		case p.Managed && p.stage == stageInFlight && d.Region.Up.Timeout > 0:
			d.requeueAt(p.Created.Add(d.Region.Up.Timeout))
		}
	}
}

// countCapacity sums the region's capacity, once all placements are decided.
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

// maxRecentFailures is the number of failed data planes that are kept, newest first, to compute the
// backoff, until a data plane becomes Ready.
const maxRecentFailures = 5

// forgetFailed deletes failed data planes that are not among the recent failures of any type.
func (d *draft) forgetFailed() {
	for _, p := range d.all {
		if p.Managed && p.stage == stageFailed && p.Phase == Failed && !slices.ContainsFunc(p.slots, func(s slot) bool { return s.totals != nil && s.totals.isRecentFailure(p) }) {
			d.addStep(Step{Verb: Forget, DataPlane: p.Name, Reason: Superseded, Message: "the data plane failed, and newer failures determine the backoff"})
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
