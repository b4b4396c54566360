package capacity

import (
	"fmt"
	"slices"
	"time"
)

// account is what the region has of one type.
type account struct {
	Type
	biggest int
	// committed is how many units count against the limit.
	committed int
	// open are the seats that instances may take, oldest first, and from is where to
	// begin to look for so many units: what was too full stays so within a plan.
	open []*seat
	from map[int]int
	// roomiest is how many units the biggest data plane has that instances may be placed
	// on, now or once it is Ready, and heard of, again.
	roomiest int
	// waiting are the units of instances that found no room, oldest first.
	waiting []int
	// refused are those of instances that only data planes with room for them have refused,
	// less those for which one is on its way.
	refused []int
	// hungry is set while an instance waits for room, on whichever data plane.
	hungry bool
	// pendingUnits is what instances take that have no data plane, whatever they wait for.
	pendingUnits int

	// left is what the limit leaves, and admitted the biggest size that it lets in.
	left, admitted int

	// ready is what Ready data planes have; coming is what each of those on their way
	// will have, less what waits for it.
	ready  stock
	coming []int
	// planned is how many of those are of this plan.
	planned int
	// comingMax is what those on their way will have in all.
	comingMax int

	// lastMade is when the newest data plane was made, proven when the newest data plane was that
	// became Ready.
	lastMade, proven time.Time
	// failures are the failed data planes, newest failure first.
	failures []*plane
	// samples are the open seats of managed data planes, oldest first: the newest shows
	// what the next one is likely to be.
	samples []*seat
}

// stock is what a number of data planes have together.
type stock struct {
	planes, max, used, free int
	// fits and admits count those with room for the biggest size, and for the biggest
	// that the limit lets in.
	fits, admits int
}

// bound finds out what the limit leaves.
func (a *account) bound() {
	a.left, a.admitted = -1, a.biggest
	if a.Limit == nil {
		return
	}
	a.left, a.admitted = max(0, *a.Limit-a.committed), 0
	for _, units := range a.Sizes {
		if units <= a.left {
			a.admitted = max(a.admitted, units)
		}
	}
}

// holding is what one seat adds. What nobody can be placed on is not free.
func (a *account) holding(s *seat) stock {
	h := stock{planes: 1, max: s.used, used: s.used}
	if !s.open() {
		return h
	}
	h.free = s.free()
	h.max, h.used = s.max, s.max-h.free
	if h.free >= a.biggest {
		h.fits = 1
	}
	if h.free >= a.admitted {
		h.admits = 1
	}
	return h
}

func (s stock) plus(o stock) stock {
	return stock{s.planes + o.planes, s.max + o.max, s.used + o.used, s.free + o.free, s.fits + o.fits, s.admits + o.admits}
}

func (s stock) minus(o stock) stock {
	return stock{s.planes - o.planes, s.max - o.max, s.used - o.used, s.free - o.free, s.fits - o.fits, s.admits - o.admits}
}

// count adds a seat of a managed data plane; the oldest comes first.
func (a *account) count(s *seat) {
	p := s.plane
	if p.Created.After(a.lastMade) {
		a.lastMade = p.Created
	}
	if (p.stage == ready || p.stage == doubted) && p.Created.After(a.proven) {
		a.proven = p.Created
	}
	switch {
	case p.Gone: // it was Ready once, and that is all
	case p.stage == ready:
		a.ready = a.ready.plus(a.holding(s))
		if s.open() {
			a.samples = append(a.samples, s)
		}
	case p.stage == coming:
		a.coming = append(a.coming, s.max)
		a.comingMax += s.max
	case p.stage == failed:
		a.failures = append(a.failures, p)
	}
}

// join adds a seat of a data plane that is Ready after all.
func (a *account) join(s *seat) {
	if s.plane.Gone {
		return
	}
	a.ready = a.ready.plus(a.holding(s))
	if s.open() {
		at, _ := slices.BinarySearchFunc(a.samples, s, func(x, y *seat) int { return oldestFirst(x.plane, y.plane) })
		a.samples = slices.Insert(a.samples, at, s)
	}
}

// part takes away a seat of a data plane that is to go. Those go newest first: to cut the
// end off, and leave the rest marked, is much faster than to take each out.
func (a *account) part(s *seat) {
	if s.plane.Gone {
		return
	}
	a.ready = a.ready.minus(a.holding(s))
	s.gone = true
	for n := len(a.samples); n > 0 && a.samples[n-1].gone; n-- {
		a.samples = a.samples[:n-1]
	}
}

// newest is the newest sample but for one data plane; nil if there is none.
func (a *account) newest(but *plane) *seat {
	for _, s := range slices.Backward(a.samples) {
		if s.plane != but && !s.gone {
			return s
		}
	}
	return nil
}

// settle ends the counting: failures before a success are over, and what waits is given
// what comes.
func (a *account) settle() {
	a.failures = slices.DeleteFunc(a.failures, func(p *plane) bool { return !p.Created.After(a.proven) })
	slices.SortFunc(a.failures, func(x, y *plane) int {
		if c := y.since.Compare(x.since); c != 0 {
			return c
		}
		return oldestFirst(y, x)
	})
	a.await()
}

// await has those that wait for room wait for what is on its way.
func (a *account) await() {
	a.waiting = slices.DeleteFunc(a.waiting, a.expect)
	a.refused = slices.DeleteFunc(a.refused, a.expect)
}

// expect has so many units wait for the first data plane on its way with room for them,
// and reports whether there is one.
func (a *account) expect(units int) bool {
	for i := range a.coming {
		if a.coming[i] >= units {
			a.coming[i] -= units
			return true
		}
	}
	return false
}

// arrive adds a data plane that this plan makes.
func (a *account) arrive() {
	a.coming = append(a.coming, a.Expected)
	a.planned++
	a.await()
}

// remembers reports whether p is among the failures that count.
func (a *account) remembers(p *plane) bool {
	return slices.Contains(a.failures[:min(memory, len(a.failures))], p)
}

// outlook is what there will be: what is Ready, and what comes.
func (a *account) outlook() stock {
	s := a.ready
	for _, free := range a.coming {
		h := stock{planes: 1, max: free, free: free}
		if free >= a.biggest {
			h.fits = 1
		}
		if free >= a.admitted {
			h.admits = 1
		}
		s = s.plus(h)
	}
	return s
}

func (a *account) report() TypeReport {
	r := TypeReport{
		Name: a.Name, DataPlanes: a.ready.planes + len(a.coming), InFlight: len(a.coming),
		MaxUnits: a.ready.max + a.comingMax, UsedUnits: a.ready.used, BiggestFits: a.biggest > 0 && a.ready.fits > 0,
	}
	r.FreeUnits = r.MaxUnits - r.UsedUnits
	return r
}

// shortage judges whether so much is too little, with the newest data plane as a sample. It
// is the one judgement for making and for removing, so that the two cannot undo each other.
func (a *account) shortage(s stock, newest *seat) (Reason, bool) {
	switch {
	case a.Limit != nil && a.left == 0:
		return LimitReached, false
	case s.planes < a.MinPlanes:
		return BelowMinimum, true
	case len(a.refused) > 0:
		return InstancesRefused, true
	case a.covered(s):
		return LimitCovered, false
	case s.fits == 0 && !a.hopeless(newest):
		return BiggestDoesNotFit, true
	case s.free <= a.Slack:
		return BelowSlack, true
	case s.fits == 0:
		return BiggestFitsNowhere, false
	default:
		return Sufficient, false
	}
}

// covered reports whether all that the limit still lets in has room (fleet N: there a
// data plane was made of which nothing could be used).
func (a *account) covered(s stock) bool {
	return a.Limit != nil && (a.admitted == 0 || s.admits > 0 && s.free >= a.left)
}

// hopeless reports whether a new data plane would have no room for the biggest size
// either, as far as is known or as the newest shows, which is empty and too small. Making
// one after the other would never end.
func (a *account) hopeless(newest *seat) bool {
	return a.Expected > 0 && a.Expected < a.biggest || newest != nil && newest.used == 0 && newest.max < a.biggest
}

// backoff is when the next data plane may be made after the failures that there were.
func (a *account) backoff(up Up) time.Time {
	n := len(a.failures)
	if n == 0 || up.Backoff <= 0 {
		return time.Time{}
	}
	return a.failures[0].since.Add(up.Backoff << (min(n, memory) - 1))
}

// words says what a reason means, with the figures.
func (a *account) words(r Reason, s stock) string {
	switch r {
	case LimitReached:
		return fmt.Sprintf("%d of at most %s are used", a.committed, count(*a.Limit, "unit"))
	case LimitCovered:
		return fmt.Sprintf("the limit of %d leaves %s, for which there is room", *a.Limit, count(a.left, "unit"))
	case BelowMinimum:
		return fmt.Sprintf("minDataPlanes is %d, and there would be %d", a.MinPlanes, s.planes)
	case BiggestDoesNotFit:
		return fmt.Sprintf("no data plane has room for the biggest size, %s", count(a.biggest, "unit"))
	case InstancesRefused:
		return fmt.Sprintf("%s refused by every data plane with room for it", wasWere(len(a.refused)))
	case BelowSlack:
		return fmt.Sprintf("%s free, and there should be more than %d", are(s.free), a.Slack)
	case BiggestFitsNowhere:
		return fmt.Sprintf("the biggest size takes %s, more than a new data plane has: raise maxNodes of the type's node pool, or take the size away",
			count(a.biggest, "unit"))
	default:
		return fmt.Sprintf("%s free, more than the slack of %d, and the biggest size, %s, has room", are(s.free), a.Slack, count(a.biggest, "unit"))
	}
}

func wasWere(instances int) string {
	if instances == 1 {
		return "1 instance was"
	}
	return fmt.Sprintf("%d instances were each", instances)
}

func are(units int) string {
	if units == 1 {
		return "1 unit is"
	}
	return fmt.Sprintf("%d units are", units)
}
