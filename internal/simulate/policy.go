package simulate

import (
	"time"

	"hotspare.io/hotspare/internal/sizing"
)

// A Policy chooses a pool's setting while a trace is replayed.
type Policy interface {
	// Begin returns the setting that the pool has when the trace begins.
	Begin(now time.Time) sizing.Setting
	// Decide is called once a minute, and after each claim; Seen says what has happened.
	Decide(Seen) sizing.Setting
}

// Seen is what a policy learns at a moment.
type Seen struct {
	Now time.Time
	// Arrived is set if a claim has just arrived; Immediate if it got a running cluster.
	Arrived, Immediate bool
	// Waiting is the number of claims that wait. Waits are the waits of those that have got a cluster since the last
	// decision.
	Waiting int
	Waits   []time.Duration
	// Sleeping is the number of clusters that sleep at shallow depths.
	Sleeping sizing.PerShallowDepth[int]
	// Spent is what the unclaimed clusters have cost in this calendar month.
	Spent float64
}

// Static keeps one setting.
type Static sizing.Setting

// Begin returns the setting.
func (s Static) Begin(time.Time) sizing.Setting { return sizing.Setting(s) }

// Decide returns the setting.
func (s Static) Decide(Seen) sizing.Setting { return sizing.Setting(s) }

// HoursOfWeek is the number of hours in a week.
const HoursOfWeek = 7 * 24

// Weekly has a running count for each hour of the week; the week begins on Sunday.
type Weekly struct {
	Running [HoursOfWeek]int
	Size    int
	// Zone is the time zone of the hours.
	Zone *time.Location
	// Ahead is how much before its hour a higher count is in effect: the time that a resume takes.
	Ahead time.Duration
}

// Begin returns the setting of that hour.
func (w *Weekly) Begin(now time.Time) sizing.Setting { return w.settingAt(now) }

// Decide returns the setting of this hour.
func (w *Weekly) Decide(s Seen) sizing.Setting { return w.settingAt(s.Now) }

func (w *Weekly) settingAt(now time.Time) sizing.Setting {
	local := now.In(w.Zone)
	n := w.Running[HourOfWeek(local)]
	if w.Ahead > 0 {
		n = max(n, w.Running[HourOfWeek(local.Add(w.Ahead))])
	}
	return sizing.Setting{Running: min(n, w.Size), Size: w.Size}
}

// HourOfWeek returns the hour of the week that a clock shows.
func HourOfWeek(local time.Time) int { return int(local.Weekday())*24 + local.Hour() }

// Auto is the policy that sizes the pool by what it has seen.
type Auto struct {
	// Given has the owner's setting, objective, limits, durations and calendar.
	Given sizing.Snapshot
	// Zone is the IANA name of the zone of the hours of the week.
	Zone string
	// Method leaves out parts of the method.
	Method sizing.Method
	// Last is the last plan.
	Last sizing.Plan
	// Fallbacks counts the minutes in which the owner's setting was in effect, and FallbacksAfter those of them after From.
	// FallbackReason is why that was so the last time.
	Fallbacks, FallbacksAfter int
	FallbackReason            string
	// From is when FallbacksAfter begins to count.
	From time.Time

	learned *sizing.Learned
	// waiting has, for each claim that waits, oldest first, whether the count followed the forecast when it arrived.
	waiting []bool
}

// Begin returns the owner's setting.
func (a *Auto) Begin(now time.Time) sizing.Setting {
	a.learned = sizing.NewLearned(now, a.Zone)
	a.learned.Method = a.Method
	a.learned.SetCalendar(a.Given.Calendar)
	a.learned.SetLeads(a.Given.Objective, a.Given.Durations)
	a.Given.Current, a.waiting = a.Given.Static, nil
	return a.Given.Static
}

// learn records a claim and, as soon as it is known, whether it was served within the objective.
func (a *Auto) learn(s Seen) {
	maxWait := a.Given.Objective.MaxWait
	switch {
	case s.Arrived && (s.Immediate || maxWait == 0):
		a.learned.AddArrival(s.Now)
		a.learned.AddOutcome(s.Immediate, a.Last.FollowsForecast())
	case s.Arrived:
		a.learned.AddArrival(s.Now)
		a.waiting = append(a.waiting, a.Last.FollowsForecast())
	default:
		a.learned.Advance(s.Now)
	}
	if maxWait == 0 {
		return
	}
	served := min(len(s.Waits), len(a.waiting))
	for i, byForecast := range a.waiting[:served] {
		a.learned.AddOutcome(s.Waits[i] <= maxWait, byForecast)
	}
	a.waiting = a.waiting[served:]
}

// Decide records the claim and returns the setting of the plan.
func (a *Auto) Decide(s Seen) sizing.Setting {
	a.learn(s)
	in := a.Given
	in.Now, in.Learned, in.Waiting, in.Limits.Budget.Spent = s.Now, a.learned, s.Waiting, s.Spent
	in.Sleeping = s.Sleeping
	in.Terse = true
	a.Last = sizing.Decide(in)
	next := a.Last.Setting()
	if next.Running < a.Given.Current.Running {
		a.Given.RunningLoweredAt = s.Now
	}
	if next.Size < a.Given.Current.Size {
		a.Given.SizeLoweredAt = s.Now
	}
	if !a.Last.Computed && !s.Arrived {
		a.Fallbacks++
		a.FallbackReason = a.Last.Fallback
		if !s.Now.Before(a.From) {
			a.FallbacksAfter++
		}
	}
	a.Given.Current = next
	return next
}
