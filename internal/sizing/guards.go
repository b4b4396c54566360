package sizing

import (
	"cmp"
	"fmt"
	"math"
	"sort"
	"strconv"
	"time"

	"hotspare.io/hotspare/internal/sizing/calendar"
)

// applyCalendar sets the count that an entry of the calendar sets now, or raises it to a higher one that an entry
// sets soon: clusters take a time to be ready for it.
func (t *Target) applyCalendar(now, soon calendar.Setting) {
	if now.Count != nil {
		t.set(*now.Count, ByCalendar, fmt.Sprintf("%s sets it to %d", now.Entry, *now.Count))
	}
	if soon.Count != nil && *soon.Count > t.Count {
		t.set(*soon.Count, ByCalendar, fmt.Sprintf("%s sets it to %d soon", soon.Entry, *soon.Count))
	}
}

// set changes the count and adds why. An empty reason is for terse plans.
func (t *Target) set(count int, why Cause, reason string) {
	if count == t.Count {
		return
	}
	t.Count, t.Cause = count, why
	if t.Reason != "" {
		t.Reason += "; " + reason
	}
}

// limitSteps keeps the counts from going down while claims wait, and from going down by more than one step at a time, unless the plan is a
// recommendation only.
func (s Snapshot) limitSteps(p *Plan) {
	if !s.Unpaced {
		interval := s.Limits.Interval
		if interval <= 0 {
			interval = DefaultInterval
		}
		s.limitStep(&p.Running, s.Current.Running, s.RunningLoweredAt, interval)
		s.limitStep(&p.Size, s.Current.Size, s.SizeLoweredAt, max(interval, sizeInterval))
	}
	if s.Waiting > 0 && p.Running.Count == 0 {
		p.Running.set(1, ByWaiting, formatWaiting(s.Waiting))
	}
}

func (s Snapshot) limitStep(t *Target, current int, lowered time.Time, interval time.Duration) {
	if t.Count >= current {
		return
	}
	due := !s.Now.Before(lowered.Add(interval)) || lowered.After(s.Now)
	switch {
	case s.Terse:
		t.set(s.stepTo(t.Count, current, due), ByPace, "")
	case s.Waiting > 0:
		t.set(current, ByWaiting, fmt.Sprintf("stays at %d while %s", current, formatWaiting(s.Waiting)))
	case !due:
		t.set(current, ByPace, fmt.Sprintf("stays at %d, because it was lowered less than %s ago", current, formatDuration(interval)))
	default:
		next := stepDown(t.Count, current)
		by := "one"
		if current-next > 1 {
			by = strconv.Itoa(current - next)
		}
		t.set(next, ByPace, fmt.Sprintf("lowered by %s, to %d", by, next))
	}
}

// stepDown returns the count after one step down towards a target: a twentieth of it lower, and at least one. A count of hundreds
// would otherwise take hours to fall, and one of up to 20 falls by one.
func stepDown(target, current int) int { return max(target, current-max(1, (current+19)/20)) }

// stepTo returns the count after a step down, if one may be taken.
func (s Snapshot) stepTo(target, current int, due bool) int {
	if s.Waiting > 0 || !due {
		return current
	}
	return stepDown(target, current)
}

// applyLimits applies the owner's limits. They are never exceeded, whatever else says.
func (s Snapshot) applyLimits(p *Plan) {
	p.Size.raiseToAtLeast(s.Limits.Size.Min)
	p.Running.raiseToAtLeast(s.Limits.Running.Min)
	if p.Running.Count > p.Size.Count {
		p.Size.set(p.Running.Count, BySize, fmt.Sprintf("%d are to run", p.Running.Count))
	}
	p.Size.limitTo(s.Limits.Size)
	p.Running.limitTo(s.Limits.Running)
	s.applyBudget(p)
	if p.Running.Count > p.Size.Count {
		p.Running.set(p.Size.Count, BySize, fmt.Sprintf("the size is %d", p.Size.Count))
	}
	p.Running.Count, p.Size.Count = max(p.Running.Count, 0), max(p.Size.Count, 0)
}

func (t *Target) raiseToAtLeast(least int) {
	if t.Count < least {
		t.set(least, ByMinimum, fmt.Sprintf("your minimum is %d", least))
	}
}

func (t *Target) limitTo(r Range) {
	if most := max(r.Max, 0); r.Max != 0 && t.Count > most {
		t.set(most, ByMaximum, cmp.Or(r.MaxReason, fmt.Sprintf("your maximum is %d", most)))
	}
}

// applyBudget lowers the number of running clusters, and if that is not enough the size, to what the
// rest of the budget can pay for the rest of the month.
func (s Snapshot) applyBudget(p *Plan) {
	b, prices := s.Limits.Budget, s.Limits.Prices
	if !b.Set || prices.Running <= 0 {
		return
	}
	const rounding = 1e-9
	perHour := affordableRate(b, s.Now) + rounding
	isAffordable := func(running, size int) bool { return s.costPerHour(running, size) <= perHour }
	if isAffordable(p.Running.Count, p.Size.Count) {
		return
	}
	reason := fmt.Sprintf("the budget of %.2f has %.2f left", b.Limit, math.Max(b.Limit-b.Spent, 0))
	size := largestCount(p.Size.Count, func(n int) bool { return isAffordable(0, n) })
	running := largestCount(min(p.Running.Count, size), func(n int) bool { return isAffordable(n, size) })
	p.Size.set(size, ByBudget, reason)
	p.Running.set(running, ByBudget, reason)
}

// costPerHour returns what a setting costs in an hour. Those that sleep at shallow depths now keep doing so.
func (s Snapshot) costPerHour(running, size int) float64 {
	asleep := max(size-running, 0)
	freeze := min(s.Sleeping.Freeze, asleep)
	shallow := PerShallowDepth[float64]{Freeze: float64(freeze), Suspend: float64(min(s.Sleeping.Suspend, asleep-freeze))}
	return float64(running)*s.Limits.Prices.Running + s.Limits.Prices.SleepCost(float64(asleep), shallow)
}

// largestCount returns the largest count up to a limit for which a condition holds, which holds for 0.
func largestCount(limit int, holds func(int) bool) int {
	return sort.Search(max(limit, 0), func(i int) bool { return !holds(i + 1) })
}

// affordableRate returns what may be spent for each hour: an equal part of the rest for each hour that is left of the
// month, or more, as long as at most one day's share more than the part of the month that has passed was spent. So a
// busy day can use what a quiet night has saved. More spending never makes the rate higher.
func affordableRate(b Budget, now time.Time) float64 {
	begin := time.Date(now.UTC().Year(), now.UTC().Month(), 1, 0, 0, 0, 0, time.UTC)
	end := begin.AddDate(0, 1, 0)
	left := math.Max(b.Limit-b.Spent, 0)
	passed := now.Sub(begin).Hours()
	month := end.Sub(begin).Hours()
	even := left / math.Max(end.Sub(now).Hours(), 1)
	ahead := b.Limit*(passed+hoursOfDay)/month - b.Spent
	return math.Max(even, math.Min(left, ahead)) // within the next hour
}
