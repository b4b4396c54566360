package capacity

import (
	"fmt"
	"slices"
	"time"
)

// typeTotals is what the region has of one type.
type typeTotals struct {
	Type
	biggest int
	// committed is how many units count against the limit.
	committed int
	// openSlots are the seats that instances may take, oldest first, and from is where to
	// begin to look for so many units: what was too full stays so within a plan.
	openSlots   []*slot
	searchStart map[int]int
	// largestMax is how many units the biggest data plane has that instances may be placed
	// on, now or once it is Ready, and heard of, again.
	largestMax int
	// waitingUnits are the units of instances that found no room, oldest first.
	waitingUnits []int
	// refusedUnits are those of instances that only data planes with room for them have refused,
	// less those for which one is on its way.
	refusedUnits []int
	// hasUnschedulable is set while an instance waits for room, on whichever data plane.
	hasUnschedulable bool
	// pendingUnits is what instances take that have no data plane, whatever they wait for.
	pendingUnits int

	// limitLeft is what the limit leaves, and admitted the biggest size that it lets in.
	limitLeft, biggestAdmitted int

	// ready is what Ready data planes have; coming is what each of those on their way
	// will have, less what waits for it.
	ready         planeTotals
	inFlightUnits []int
	// planned is how many of those are of this plan.
	planned int
	// inFlightMax is what those on their way will have in all.
	inFlightMax int

	// lastCreated is when the newest data plane was made, proven when the newest data plane was that
	// became Ready.
	lastCreated, lastReadyCreated time.Time
	// failures are the failed data planes, newest failure first.
	failures []*plane
	// samples are the open seats of managed data planes, oldest first: the newest shows
	// what the next one is likely to be.
	samples []*slot
}

// planeTotals is what a number of data planes have together.
type planeTotals struct {
	planes, max, used, free int
	// fitBiggest and admits count those with room for the biggest size, and for the biggest
	// that the limit lets in.
	fitBiggest, fitAdmitted int
}

// computeLimitLeft finds out what the limit leaves.
func (a *typeTotals) computeLimitLeft() {
	a.limitLeft, a.biggestAdmitted = -1, a.biggest
	if a.Limit == nil {
		return
	}
	a.limitLeft, a.biggestAdmitted = max(0, *a.Limit-a.committed), 0
	for _, units := range a.Sizes {
		if units <= a.limitLeft {
			a.biggestAdmitted = max(a.biggestAdmitted, units)
		}
	}
}

// totalsOfSlot is what one seat adds. What nobody can be placed on is not free.
func (a *typeTotals) totalsOfSlot(s *slot) planeTotals {
	h := planeTotals{planes: 1, max: s.used, used: s.used}
	if !s.isOpen() {
		return h
	}
	h.free = s.freeUnits()
	h.max, h.used = s.max, s.max-h.free
	if h.free >= a.biggest {
		h.fitBiggest = 1
	}
	if h.free >= a.biggestAdmitted {
		h.fitAdmitted = 1
	}
	return h
}

func (s planeTotals) plus(o planeTotals) planeTotals {
	return planeTotals{s.planes + o.planes, s.max + o.max, s.used + o.used, s.free + o.free, s.fitBiggest + o.fitBiggest, s.fitAdmitted + o.fitAdmitted}
}

func (s planeTotals) minus(o planeTotals) planeTotals {
	return planeTotals{s.planes - o.planes, s.max - o.max, s.used - o.used, s.free - o.free, s.fitBiggest - o.fitBiggest, s.fitAdmitted - o.fitAdmitted}
}

// addSlot adds a seat of a managed data plane; the oldest comes first.
func (a *typeTotals) addSlot(s *slot) {
	p := s.plane
	if p.Created.After(a.lastCreated) {
		a.lastCreated = p.Created
	}
	if (p.stage == stageReady || p.stage == stageRemoving) && p.Created.After(a.lastReadyCreated) {
		a.lastReadyCreated = p.Created
	}
	switch {
	case p.Gone: // it was Ready once, and that is all
	case p.stage == stageReady:
		a.ready = a.ready.plus(a.totalsOfSlot(s))
		if s.isOpen() {
			a.samples = append(a.samples, s)
		}
	case p.stage == stageInFlight:
		a.inFlightUnits = append(a.inFlightUnits, s.max)
		a.inFlightMax += s.max
	case p.stage == stageFailed:
		a.failures = append(a.failures, p)
	}
}

// addRestoredSlot adds a seat of a data plane that is Ready after all.
func (a *typeTotals) addRestoredSlot(s *slot) {
	if s.plane.Gone {
		return
	}
	a.ready = a.ready.plus(a.totalsOfSlot(s))
	if s.isOpen() {
		at, _ := slices.BinarySearchFunc(a.samples, s, func(x, y *slot) int { return oldestFirst(x.plane, y.plane) })
		a.samples = slices.Insert(a.samples, at, s)
	}
}

// removeSlot takes away a seat of a data plane that is to go. Those go newest first: to cut the
// end off, and leave the rest marked, is much faster than to take each out.
func (a *typeTotals) removeSlot(s *slot) {
	if s.plane.Gone {
		return
	}
	a.ready = a.ready.minus(a.totalsOfSlot(s))
	s.gone = true
	for n := len(a.samples); n > 0 && a.samples[n-1].gone; n-- {
		a.samples = a.samples[:n-1]
	}
}

// newestSample is the newest sample but for one data plane; nil if there is none.
func (a *typeTotals) newestSample(but *plane) *slot {
	for _, s := range slices.Backward(a.samples) {
		if s.plane != but && !s.gone {
			return s
		}
	}
	return nil
}

// finishCounting ends the counting: failures before a success are over, and what waits is given
// what comes.
func (a *typeTotals) finishCounting() {
	a.failures = slices.DeleteFunc(a.failures, func(p *plane) bool { return !p.Created.After(a.lastReadyCreated) })
	slices.SortFunc(a.failures, func(x, y *plane) int {
		if c := y.since.Compare(x.since); c != 0 {
			return c
		}
		return oldestFirst(y, x)
	})
	a.allocateWaiting()
}

// allocateWaiting has those that wait for room wait for what is on its way.
func (a *typeTotals) allocateWaiting() {
	a.waitingUnits = slices.DeleteFunc(a.waitingUnits, a.allocateInFlight)
	a.refusedUnits = slices.DeleteFunc(a.refusedUnits, a.allocateInFlight)
}

// allocateInFlight has so many units wait for the first data plane on its way with room for them,
// and reports whether there is one.
func (a *typeTotals) allocateInFlight(units int) bool {
	for i := range a.inFlightUnits {
		if a.inFlightUnits[i] >= units {
			a.inFlightUnits[i] -= units
			return true
		}
	}
	return false
}

// addPlannedPlane adds a data plane that this plan makes.
func (a *typeTotals) addPlannedPlane() {
	a.inFlightUnits = append(a.inFlightUnits, a.Expected)
	a.planned++
	a.allocateWaiting()
}

// isRecentFailure reports whether p is among the failures that count.
func (a *typeTotals) isRecentFailure(p *plane) bool {
	return slices.Contains(a.failures[:min(maxRecentFailures, len(a.failures))], p)
}

// expectedTotals is what there will be: what is Ready, and what comes.
func (a *typeTotals) expectedTotals() planeTotals {
	s := a.ready
	for _, free := range a.inFlightUnits {
		h := planeTotals{planes: 1, max: free, free: free}
		if free >= a.biggest {
			h.fitBiggest = 1
		}
		if free >= a.biggestAdmitted {
			h.fitAdmitted = 1
		}
		s = s.plus(h)
	}
	return s
}

func (a *typeTotals) buildReport() TypeReport {
	r := TypeReport{
		Name: a.Name, DataPlanes: a.ready.planes + len(a.inFlightUnits), InFlight: len(a.inFlightUnits),
		MaxUnits: a.ready.max + a.inFlightMax, UsedUnits: a.ready.used, BiggestFits: a.biggest > 0 && a.ready.fitBiggest > 0,
	}
	r.FreeUnits = r.MaxUnits - r.UsedUnits
	return r
}

// checkShortage judges whether so much is too little, with the newest data plane as a sample. It
// is the one judgement for making and for removing, so that the two cannot undo each other.
func (a *typeTotals) checkShortage(s planeTotals, newest *slot) (Reason, bool) {
	switch {
	case a.Limit != nil && a.limitLeft == 0:
		return LimitReached, false
	case s.planes < a.MinPlanes:
		return BelowMinimum, true
	case len(a.refusedUnits) > 0:
		return InstancesRefused, true
	case a.isLimitCovered(s):
		return LimitCovered, false
	case s.fitBiggest == 0 && !a.isNewPlaneTooSmall(newest):
		return BiggestDoesNotFit, true
	case s.free <= a.Slack:
		return BelowSlack, true
	case s.fitBiggest == 0:
		return BiggestFitsNowhere, false
	default:
		return Sufficient, false
	}
}

// isLimitCovered reports whether all that the limit still lets in has room (fleet N: there a
// data plane was made of which nothing could be used).
func (a *typeTotals) isLimitCovered(s planeTotals) bool {
	return a.Limit != nil && (a.biggestAdmitted == 0 || s.fitAdmitted > 0 && s.free >= a.limitLeft)
}

// isNewPlaneTooSmall reports whether a new data plane would have no room for the biggest size
// either, as far as is known or as the newest shows, which is empty and too small. Making
// one after the other would never end.
func (a *typeTotals) isNewPlaneTooSmall(newest *slot) bool {
	return a.Expected > 0 && a.Expected < a.biggest || newest != nil && newest.used == 0 && newest.max < a.biggest
}

// backoffUntil is when the next data plane may be made after the failures that there were.
func (a *typeTotals) backoffUntil(up ScaleUp) time.Time {
	n := len(a.failures)
	if n == 0 || up.Backoff <= 0 {
		return time.Time{}
	}
	return a.failures[0].since.Add(up.Backoff << (min(n, maxRecentFailures) - 1))
}

// describeReason says what a reason means, with the figures.
func (a *typeTotals) describeReason(r Reason, s planeTotals) string {
	switch r {
	case LimitReached:
		return fmt.Sprintf("%d of at most %s are used", a.committed, formatCount(*a.Limit, "unit"))
	case LimitCovered:
		return fmt.Sprintf("the limit of %d leaves %s, for which there is room", *a.Limit, formatCount(a.limitLeft, "unit"))
	case BelowMinimum:
		return fmt.Sprintf("minDataPlanes is %d, and there would be %d", a.MinPlanes, s.planes)
	case BiggestDoesNotFit:
		return fmt.Sprintf("no data plane has room for the biggest size, %s", formatCount(a.biggest, "unit"))
	case InstancesRefused:
		return fmt.Sprintf("%s refused by every data plane with room for it", formatInstancesWere(len(a.refusedUnits)))
	case BelowSlack:
		return fmt.Sprintf("%s free, and there should be more than %d", formatUnitsAre(s.free), a.Slack)
	case BiggestFitsNowhere:
		return fmt.Sprintf("the biggest size takes %s, more than a new data plane has: raise maxNodes of the type's node pool, or take the size away",
			formatCount(a.biggest, "unit"))
	default:
		return fmt.Sprintf("%s free, more than the slack of %d, and the biggest size, %s, has room", formatUnitsAre(s.free), a.Slack, formatCount(a.biggest, "unit"))
	}
}

func formatInstancesWere(instances int) string {
	if instances == 1 {
		return "1 instance was"
	}
	return fmt.Sprintf("%d instances were each", instances)
}

func formatUnitsAre(units int) string {
	if units == 1 {
		return "1 unit is"
	}
	return fmt.Sprintf("%d units are", units)
}
