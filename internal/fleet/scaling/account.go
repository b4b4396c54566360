package scaling

import (
	"fmt"
	"slices"
	"time"
)

// typeTotals is the account of one instance type in the region.
type typeTotals struct {
	Type
	biggest int
	// committed is the number of units that count against the limit.
	committed int
	// openSlots are the slots that accept instances, oldest first. searchStart is, by number of
	// units, the index at which a search starts: a slot that was too full stays too full within a
	// plan.
	openSlots   []*slot
	searchStart map[int]int
	// largestMax is the number of units of the biggest data plane on which instances can be placed,
	// now or once it is Ready and its agent reports again.
	largestMax int
	// waitingUnits are the units of instances for which there is no room, oldest first.
	waitingUnits []int
	// refusedUnits are the units of instances that were refused by every data plane with room for
	// them, without the instances that a data plane on its way has room for.
	refusedUnits []int
	// hasUnschedulable is set while an instance waits for room, on any data plane.
	hasUnschedulable bool
	// pendingUnits is the number of units of instances without a data plane, whatever the reason.
	pendingUnits int

	// limitLeft is the number of units that the limit still allows; -1 without a limit.
	// biggestAdmitted is the biggest size that the limit still allows.
	limitLeft, biggestAdmitted int

	// ready sums the Ready data planes. inFlightUnits has, for each data plane on its way, its
	// future units minus the units of the instances that wait for it.
	ready         planeTotals
	inFlightUnits []int
	// planned is the number of entries of inFlightUnits that this plan creates.
	planned int
	// inFlightMax is the number of units that all data planes on their way will have together.
	inFlightMax int

	// lastCreated is the creation time of the newest data plane; lastReadyCreated is the creation
	// time of the newest one that became Ready.
	lastCreated, lastReadyCreated time.Time
	// failures are the failed data planes, newest failure first.
	failures []*plane
	// samples are the open slots of managed data planes, oldest first: the newest shows what the
	// next data plane is likely to have.
	samples []*slot
}

// planeTotals sums the units of a number of data planes.
type planeTotals struct {
	planes, max, used, free int
	// fitBiggest and fitAdmitted count the data planes with room for the biggest size, and for the
	// biggest size that the limit allows.
	fitBiggest, fitAdmitted int
}

// computeLimitLeft sets limitLeft and biggestAdmitted.
func (t *typeTotals) computeLimitLeft() {
	t.limitLeft, t.biggestAdmitted = -1, t.biggest
	if t.Limit == nil {
		return
	}
	t.limitLeft, t.biggestAdmitted = max(0, *t.Limit-t.committed), 0
	for _, units := range t.Sizes {
		if units <= t.limitLeft {
			t.biggestAdmitted = max(t.biggestAdmitted, units)
		}
	}
}

// totalsOfSlot returns what one slot adds to the totals. Units on which no instance can be placed
// do not count as free.
func (t *typeTotals) totalsOfSlot(s *slot) planeTotals {
	h := planeTotals{planes: 1, max: s.used, used: s.used}
	if !s.isOpen() {
		return h
	}
	h.free = s.freeUnits()
	h.max, h.used = s.max, s.max-h.free
	if h.free >= t.biggest {
		h.fitBiggest = 1
	}
	if h.free >= t.biggestAdmitted {
		h.fitAdmitted = 1
	}
	return h
}

func (t planeTotals) plus(o planeTotals) planeTotals {
	return planeTotals{t.planes + o.planes, t.max + o.max, t.used + o.used, t.free + o.free, t.fitBiggest + o.fitBiggest, t.fitAdmitted + o.fitAdmitted}
}

func (t planeTotals) minus(o planeTotals) planeTotals {
	return planeTotals{t.planes - o.planes, t.max - o.max, t.used - o.used, t.free - o.free, t.fitBiggest - o.fitBiggest, t.fitAdmitted - o.fitAdmitted}
}

// addSlot adds a slot of a managed data plane. Callers add the oldest data plane first.
func (t *typeTotals) addSlot(s *slot) {
	p := s.plane
	if p.Created.After(t.lastCreated) {
		t.lastCreated = p.Created
	}
	if (p.stage == stageReady || p.stage == stageRemoving) && p.Created.After(t.lastReadyCreated) {
		t.lastReadyCreated = p.Created
	}
	switch {
	case p.Gone: // it counts as once Ready, and for nothing else
	case p.stage == stageReady:
		t.ready = t.ready.plus(t.totalsOfSlot(s))
		if s.isOpen() {
			t.samples = append(t.samples, s)
		}
	case p.stage == stageInFlight:
		t.inFlightUnits = append(t.inFlightUnits, s.max)
		t.inFlightMax += s.max
	case p.stage == stageFailed:
		t.failures = append(t.failures, p)
	}
}

// addRestoredSlot adds a slot of a data plane that is restored to Ready.
func (t *typeTotals) addRestoredSlot(s *slot) {
	if s.plane.Gone {
		return
	}
	t.ready = t.ready.plus(t.totalsOfSlot(s))
	if s.isOpen() {
		at, _ := slices.BinarySearchFunc(t.samples, s, func(x, y *slot) int { return oldestFirst(x.plane, y.plane) })
		t.samples = slices.Insert(t.samples, at, s)
	}
}

// removeSlot subtracts a slot of a data plane that is being removed. Data planes are removed newest
// first: truncating the end of samples, and marking the other slots, is much faster than deleting
// each slot from the list.
func (t *typeTotals) removeSlot(s *slot) {
	if s.plane.Gone {
		return
	}
	t.ready = t.ready.minus(t.totalsOfSlot(s))
	s.gone = true
	for n := len(t.samples); n > 0 && t.samples[n-1].gone; n-- {
		t.samples = t.samples[:n-1]
	}
}

// newestSample returns the newest sample that is not of data plane but; nil if there is none.
func (t *typeTotals) newestSample(but *plane) *slot {
	for _, s := range slices.Backward(t.samples) {
		if s.plane != but && !s.gone {
			return s
		}
	}
	return nil
}

// finishCounting drops the failures that are older than a success, and allocates data planes on
// their way to waiting instances.
func (t *typeTotals) finishCounting() {
	t.failures = slices.DeleteFunc(t.failures, func(p *plane) bool { return !p.Created.After(t.lastReadyCreated) })
	slices.SortFunc(t.failures, func(x, y *plane) int {
		if c := y.since.Compare(x.since); c != 0 {
			return c
		}
		return oldestFirst(y, x)
	})
	t.allocateWaiting()
}

// allocateWaiting removes the instances that data planes on their way have room for from
// waitingUnits and refusedUnits.
func (t *typeTotals) allocateWaiting() {
	t.waitingUnits = slices.DeleteFunc(t.waitingUnits, t.allocateInFlight)
	t.refusedUnits = slices.DeleteFunc(t.refusedUnits, t.allocateInFlight)
}

// allocateInFlight allocates units on the first data plane on its way with room for them, and
// reports whether there is one.
func (t *typeTotals) allocateInFlight(units int) bool {
	for i := range t.inFlightUnits {
		if t.inFlightUnits[i] >= units {
			t.inFlightUnits[i] -= units
			return true
		}
	}
	return false
}

// addPlannedPlane adds a data plane that this plan creates.
func (t *typeTotals) addPlannedPlane() {
	t.inFlightUnits = append(t.inFlightUnits, t.Expected)
	t.planned++
	t.allocateWaiting()
}

// isRecentFailure reports whether p is among the newest maxRecentFailures failures.
func (t *typeTotals) isRecentFailure(p *plane) bool {
	return slices.Contains(t.failures[:min(maxRecentFailures, len(t.failures))], p)
}

// expectedTotals returns the totals of the Ready data planes and those on their way.
func (t *typeTotals) expectedTotals() planeTotals {
	s := t.ready
	for _, free := range t.inFlightUnits {
		h := planeTotals{planes: 1, max: free, free: free}
		if free >= t.biggest {
			h.fitBiggest = 1
		}
		if free >= t.biggestAdmitted {
			h.fitAdmitted = 1
		}
		s = s.plus(h)
	}
	return s
}

func (t *typeTotals) buildReport() TypeReport {
	r := TypeReport{
		Name: t.Name, DataPlanes: t.ready.planes + len(t.inFlightUnits), InFlight: len(t.inFlightUnits),
		MaxUnits: t.ready.max + t.inFlightMax, UsedUnits: t.ready.used, BiggestFits: t.biggest > 0 && t.ready.fitBiggest > 0,
	}
	r.FreeUnits = r.MaxUnits - r.UsedUnits
	return r
}

// checkShortage reports whether s is too little capacity, and why, with newest as a sample of a new
// data plane. Creation and removal share this check, so that the two cannot undo each other.
func (t *typeTotals) checkShortage(s planeTotals, newest *slot) (Reason, bool) {
	switch {
	case t.Limit != nil && t.limitLeft == 0:
		return LimitReached, false
	case s.planes < t.MinPlanes:
		return BelowMinimum, true
	case len(t.refusedUnits) > 0:
		return InstancesRefused, true
	case t.isLimitCovered(s):
		return LimitCovered, false
	case s.fitBiggest == 0 && !t.isNewPlaneTooSmall(newest):
		return BiggestDoesNotFit, true
	case s.free <= t.Slack:
		return BelowSlack, true
	case s.fitBiggest == 0:
		return BiggestFitsNowhere, false
	default:
		return Sufficient, false
	}
}

// isLimitCovered reports whether there is room for everything that the limit still allows (fleet N:
// a data plane was created there of which nothing could be used).
func (t *typeTotals) isLimitCovered(s planeTotals) bool {
	return t.Limit != nil && (t.biggestAdmitted == 0 || s.fitAdmitted > 0 && s.free >= t.limitLeft)
}

// isNewPlaneTooSmall reports whether a new data plane would have no room for the biggest size
// either: because of the expected units, or because the newest data plane is empty and too small.
// Without this check, the region would create data planes without end.
func (t *typeTotals) isNewPlaneTooSmall(newest *slot) bool {
	return t.Expected > 0 && t.Expected < t.biggest || newest != nil && newest.used == 0 && newest.max < t.biggest
}

// backoffUntil returns the time from which the next data plane may be created after the failures;
// the zero time if there is no backoff.
func (t *typeTotals) backoffUntil(up ScaleUp) time.Time {
	n := len(t.failures)
	if n == 0 || up.Backoff <= 0 {
		return time.Time{}
	}
	return t.failures[0].since.Add(up.Backoff << (min(n, maxRecentFailures) - 1))
}

// describeReason returns the explanation of a reason, with its figures.
func (t *typeTotals) describeReason(r Reason, s planeTotals) string {
	switch r {
	case LimitReached:
		return fmt.Sprintf("%d of at most %s are in use", t.committed, formatCount(*t.Limit, "unit"))
	case LimitCovered:
		return fmt.Sprintf("the limit of %d leaves %s, and the existing data planes have room for that", *t.Limit, formatCount(t.limitLeft, "unit"))
	case BelowMinimum:
		return fmt.Sprintf("minDataPlanes is %d, and %d would be left", t.MinPlanes, s.planes)
	case BiggestDoesNotFit:
		return fmt.Sprintf("no data plane has room for the biggest size, %s", formatCount(t.biggest, "unit"))
	case InstancesRefused:
		return fmt.Sprintf("%s refused by every data plane with room for it", formatInstancesWere(len(t.refusedUnits)))
	case BelowSlack:
		return fmt.Sprintf("%s free, and the slack requires more than %d", formatUnitsAre(s.free), t.Slack)
	case BiggestFitsNowhere:
		return fmt.Sprintf("the biggest size needs %s, more than a new data plane has: raise maxNodes of the type's node pool, or remove the size",
			formatCount(t.biggest, "unit"))
	default:
		return fmt.Sprintf("%s free, more than the slack of %d, and the biggest size, %s, fits", formatUnitsAre(s.free), t.Slack, formatCount(t.biggest, "unit"))
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
