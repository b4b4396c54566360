package sizing

import (
	"fmt"
	"math"
	"time"

	"hotspare.io/hotspare/internal/sizing/calendar"
)

// Decide returns the setting that the pool should have. The guards apply in this order, and a later
// one wins: calendar, steps down, waiting claims, minimum, budget, maximum, size.
func Decide(s Snapshot) Plan {
	entry := s.Calendar.At(s.Now)
	p := Plan{Coverage: s.coverage(), ExpectsNone: entry.DemandFactor() <= 0}
	beforeResume := s.Calendar.Highest(s.Now, s.Now.Add(runningLead(s.Objective, s.Durations)))
	beforeInstall := s.Calendar.Highest(s.Now, s.Now.Add(sizeLead(s.Objective, s.Durations)))
	if p.Fallback = s.fallbackReason(); p.Fallback == "" {
		p.Computed = true
		p.Running, p.ExpectedClaims = s.runningForDemand(entry, beforeResume)
		p.Size = s.sizeForDemand(s.Calendar.Highest(s.Now, s.Now.Add(s.Learned.Size.Lead)))
		s.raiseToStatic(&p)
	} else {
		kept, whose := s.Static, "your setting: "
		if s.isRecordAhead() { // the clock is or was wrong, and nothing changes because of it
			kept, whose = s.Current, "unchanged: "
		}
		p.Running = Target{kept.Running, whose + p.Fallback, ByStatic}
		p.Size = Target{kept.Size, whose + p.Fallback, ByStatic}
	}
	p.Running.applyCalendar(entry.Running, beforeResume.Running)
	p.Size.applyCalendar(entry.Size, beforeInstall.Size)
	s.limitSteps(&p)
	s.applyLimits(&p)
	return p
}

// coverage returns what was seen so far.
func (s Snapshot) coverage() Coverage {
	c := Coverage{Promised: s.Objective.Share}
	if l := s.Learned; l != nil && l.Outcomes.All.Claims > 0 {
		c.Claims, c.Seen = l.Outcomes.All.Claims, l.Outcomes.All.Served/l.Outcomes.All.Claims
	}
	return c
}

// maxErrorFactor is how many times as many claims as promised may wait before the computed counts
// are not trusted.
const maxErrorFactor = 5

// fallbackReason explains why nothing can be computed; empty if it can.
func (s Snapshot) fallbackReason() string {
	l := s.Learned
	switch {
	case l == nil || l.At.IsZero():
		return "no claims were recorded yet"
	case s.isRecordAhead():
		return fmt.Sprintf("the record of claims ends at %s, which is in the future", l.At.UTC().Format(time.RFC3339))
	case s.Durations.Resume <= 0 || s.Durations.Install <= 0:
		return "it is not known yet how long a resume and an install take"
	case s.Objective.Share <= 0 || s.Objective.Share >= 1:
		return fmt.Sprintf("the objective of %g %% is not above 0 and below 100", 100*s.Objective.Share)
	case !l.isWarm():
		return fmt.Sprintf("the record has %s in %.1f days, and needs %g in %g days",
			formatClaims(l.WatchedClaims), l.WatchedHours/hoursOfDay, warmUpClaims, warmUpHours/hoursOfDay)
	case s.Now.Sub(s.RecordedSince).Hours() < warmUpHours:
		return fmt.Sprintf("claims are recorded since %s, and %g days are needed: of the claims before, only those that still existed are known",
			s.RecordedSince.In(l.location()).Format("Mon 2 Jan 15:04"), warmUpHours/hoursOfDay)
	}
	return ""
}

// isRecordAhead reports whether the record ends in the future.
func (s Snapshot) isRecordAhead() bool {
	return s.Learned != nil && s.Learned.At.After(s.Now.Add(time.Hour))
}

// distrust explains why the computed counts are not trusted, because of what they gave; empty if they are.
func (o Outcome) distrust(promised float64) string {
	if o.Claims-o.Served <= maxErrorFactor*o.Claims*(1-promised)+5 {
		return ""
	}
	return fmt.Sprintf("the forecast is not trusted, because %.1f %% of the last %s claims were served in time and %g %% were promised",
		100*o.Served/o.Claims, formatNumber(o.Claims), 100*promised)
}

// raiseToStatic sets the owner's counts where they are higher than computed ones that are not trusted.
// Lower ones would make more claims wait, and the error would never end.
func (s Snapshot) raiseToStatic(p *Plan) {
	p.Fallback = s.Learned.Outcomes.OfForecast.distrust(s.Objective.Share)
	if p.Fallback == "" {
		return
	}
	for t, count := range map[*Target]int{&p.Running: s.Static.Running, &p.Size: s.Static.Size} {
		if count > t.Count {
			t.set(count, ByStatic, "your setting of "+formatNumber(float64(count))+": "+p.Fallback)
		}
	}
}

// runningForDemand returns the number of clusters that should run, and the number of claims expected
// in the next hour, for what the calendar says now, and until a cluster that is resumed now runs.
func (s Snapshot) runningForDemand(now, soon calendar.Entry) (t Target, perHour float64) {
	l, factor := s.Learned, soon.DemandFactor()
	if !s.Terse {
		perHour = now.DemandFactor() * l.expectedNow(time.Hour)
	}
	if l.Running.Lead <= 0 {
		return Target{0, fmt.Sprintf("a claim may wait %s, and a resume takes %s", s.Objective.MaxWait, s.Durations.Resume), ByDemand}, perHour
	}
	asleep := s.sleepers()
	n := s.countWithSleepers(s.countWithin(&l.Running, factor), factor, asleep)
	if s.Terse {
		return Target{n, "", ByDemand}, perHour
	}
	mean := factor * l.expectedAhead(l.Running.Lead)
	return Target{n, fmt.Sprintf("%s: %s expected%s, a resume takes %s%s: %d running%s",
		describeHour(s.Now.In(l.location())), formatRate(perHour), describeFactor(soon), formatDuration(s.Durations.Resume), describeSleepers(asleep), n,
		describeExtra(n, mean, s.Objective.Share)), ByDemand}, perHour
}

// spareShare is the share of claims that should not wait for an install: the share of those that do is
// a tenth of the share that may wait at all, because a claim that waits for an install waits long.
func spareShare(o Objective) float64 { return 1 - (1-o.Share)/10 }

// sizeForDemand returns the number of clusters that should exist. It is computed for the busiest hour
// of the day that follows, because installs and deletions cost more than hibernating clusters.
func (s Snapshot) sizeForDemand(e calendar.Entry) Target {
	l := s.Learned
	lead := l.Size.Lead
	if lead <= 0 {
		return Target{0, "an install takes no time", ByDemand}
	}
	busiest := l.At
	if l.Busiest.Mean > l.expectedClaims(lead) {
		busiest = l.Busiest.At
	}
	mean := e.DemandFactor() * l.expectedPeak(lead)
	n := l.Size.sizeFor(mean, 1-spareShare(s.Objective), max(l.margin(s.Objective), 0))
	if s.Terse {
		return Target{n, "", ByDemand}
	}
	return Target{n, fmt.Sprintf("%s: %s expected%s within the %s of an install: size %d%s",
		describeHour(busiest.In(l.location())), formatClaims(mean), describeFactor(e), formatDuration(s.Durations.Install), n,
		describeExtra(n, mean, spareShare(s.Objective))), ByDemand}
}

// countFor returns the count for the expected claims. Margin is that of logThreshold.
func (lm *leadModel) countFor(c claims, miss, margin float64, m Method) int {
	if c.mean <= 0 || math.IsNaN(c.mean) {
		return 0
	}
	return countAt(c, lm.logThreshold(miss, margin, m), lm.plausibleMax(c.mean, runningPeakFactor))
}

func (l *Learned) location() *time.Location {
	if l.zone == nil {
		return time.UTC
	}
	return l.zone
}
