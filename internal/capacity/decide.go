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
	d.expire()
	d.place()
	d.tally()
	d.forget()
	d.review()
	d.grow()
	d.shrink()
	return d.plan()
}

// draft is a plan in the making.
type draft struct {
	Snapshot
	// all are the data planes, oldest first; there may be thousands, so they are passed on by reference.
	all    []*plane
	byName map[string]*plane
	// types are the accounts by name, sorted.
	types    []*account
	accounts map[string]*account
	// onTheWayOut is how many managed data planes are.
	onTheWayOut int

	steps      []Step
	planes     []PlaneReport
	placements []Placement
	// rank is the place of an instance among those that wait.
	rank    map[string]int
	reports map[*account]TypeReport
	next    time.Time
}

// plane is a data plane with what is on it.
type plane struct {
	*Plane
	stage stage
	// since is since when it has failed.
	since time.Time
	seats []seat
	// load is how many instances are on it or booked.
	load int
	// awaited is set when one that names it will ask it again.
	awaited bool
}

// seat is what a data plane has of one type.
type seat struct {
	// of is nil for a type that the region does not have.
	of        *account
	plane     *plane
	room      *Room
	max, used int
	// counted is how many of the used units its agent has counted in what it says remains.
	counted int
	// gone is set once this plan removes its data plane.
	gone bool
}

// free is how many units are left: of those that the data plane can have, and of those
// that its agent reports as remaining, less what was placed since the report.
func (s *seat) free() int {
	free := s.max - s.used
	if s.room.Reported {
		free = min(free, s.room.Remaining-(s.used-s.counted))
	}
	return free
}

// open reports whether instances of the type can be placed there.
func (s *seat) open() bool { return s.plane.stage == ready && s.willing() }

// willing reports whether they could be if its data plane were Ready.
func (s *seat) willing() bool {
	p := s.plane
	return !p.Cordoned && !p.Silent && !p.Gone && p.MultiZone == s.of.MultiZone
}

func newDraft(s Snapshot) *draft {
	d := &draft{
		Snapshot: s, byName: make(map[string]*plane, len(s.Planes)), accounts: map[string]*account{},
		reports: map[*account]TypeReport{},
	}
	for _, t := range s.Region.Types {
		a := &account{Type: t, biggest: t.biggest(), from: map[int]int{}}
		d.types, d.accounts[t.Name] = append(d.types, a), a
	}
	slices.SortFunc(d.types, func(a, b *account) int { return cmp.Compare(a.Name, b.Name) })
	d.all = make([]*plane, len(s.Planes))
	for i := range s.Planes {
		p := &plane{Plane: &s.Planes[i], stage: s.Planes[i].stage(), since: s.Planes[i].Since}
		d.all[i], d.byName[p.Name] = p, p
	}
	slices.SortFunc(d.all, oldestFirst)
	for _, p := range d.all {
		d.furnish(p)
	}
	for i := range s.Instances {
		d.seat(&s.Instances[i])
	}
	return d
}

// furnish gives p its seats, and shows them to the types.
func (d *draft) furnish(p *plane) {
	p.seats = make([]seat, len(p.Rooms))
	for i, r := range p.Rooms {
		p.seats[i] = seat{of: d.accounts[r.Type], plane: p, room: &p.Rooms[i], max: r.Max}
		a := p.seats[i].of
		if a == nil || p.MultiZone != a.MultiZone {
			continue
		}
		if !p.Gone && (p.stage == coming || p.stage == ready || p.stage == doubted) {
			a.roomiest = max(a.roomiest, r.Max)
		}
		if p.seats[i].open() {
			a.open = append(a.open, &p.seats[i])
		}
	}
	if p.Managed && !p.Gone && (p.stage == doubted || p.stage == leaving) {
		d.onTheWayOut++
	}
}

// seat counts an instance where it is.
func (d *draft) seat(i *Instance) {
	if i.Plane == "" {
		return
	}
	p := d.byName[i.Plane]
	if p != nil {
		p.take(i.Type, i.Units)
	}
	if a := d.accounts[i.Type]; a != nil && (p == nil || p.Managed) {
		a.committed += i.Units
	}
}

// take puts an instance on p.
func (p *plane) take(kind string, units int) {
	p.load++
	for i := range p.seats {
		if p.Rooms[i].Type == kind {
			p.seats[i].used += units
		}
	}
}

func (d *draft) step(s Step) { d.steps = append(d.steps, s) }

// wake has the plan looked at again at that time.
func (d *draft) wake(at time.Time) {
	if at.After(d.Now) && (d.next.IsZero() || at.Before(d.next)) {
		d.next = at
	}
}

// expire gives up what is on its way for too long.
func (d *draft) expire() {
	for _, p := range d.all {
		switch {
		case p.overdue(d.Region.Up, d.Now):
			p.stage, p.since = failed, d.Now
			d.step(Step{Verb: Fail, DataPlane: p.Name, Reason: TimedOut, Message: "it was not ready within " + d.Region.Up.Timeout.String()})
		case p.Managed && p.stage == coming && d.Region.Up.Timeout > 0:
			d.wake(p.Created.Add(d.Region.Up.Timeout))
		}
	}
}

// tally counts what the region has, once all placements are known.
func (d *draft) tally() {
	for _, a := range d.types {
		a.bound()
	}
	for _, p := range d.all {
		if !p.Managed {
			continue
		}
		for i := range p.seats {
			if a := p.seats[i].of; a != nil {
				a.count(&p.seats[i])
			}
		}
	}
	for _, a := range d.types {
		a.settle()
		d.reports[a] = a.report()
	}
}

// failures are kept as the memory of how long to back off: so many of the newest, until
// a data plane has come since.
const memory = 5

// forget deletes failed data planes that nobody has to know of any more.
func (d *draft) forget() {
	for _, p := range d.all {
		if p.Managed && p.stage == failed && p.Phase == Failed && !slices.ContainsFunc(p.seats, func(s seat) bool { return s.of != nil && s.of.remembers(p) }) {
			d.step(Step{Verb: Forget, DataPlane: p.Name, Reason: Superseded, Message: "it failed, and what came later says more"})
		}
	}
}

func (d *draft) plan() Plan {
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
