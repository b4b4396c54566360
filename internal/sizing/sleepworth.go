package sizing

import (
	"math"

	"hotspare.io/hotspare/internal/cloud"
)

// SleepWorth returns what each further cluster at a shallow depth is worth, for at most most of them, as a share of what a
// cluster that runs is worth: the average over the hours of a week. A cluster that makes one that runs unnecessary
// is worth 1. A further one is worth the share of their waits that it saves the claims that still have to wait.
// A depth has no values if its resume was not measured or is no shorter than one from stop, or if claims may wait for
// a resume from stop. ok is false while too little is known about the demand.
func SleepWorth(s Snapshot, most int) (worth PerShallowDepth[[]float64], ok bool) {
	if s.fallbackReason() != "" {
		return worth, false
	}
	if s.Learned.Running.Lead <= 0 {
		return worth, true
	}
	for _, depth := range ShallowDepths() {
		if wake := *s.Durations.Shallow.Of(depth); wake > 0 && wake < s.Durations.Resume {
			*worth.Of(depth) = s.worthAtDepth(depth, most)
		}
	}
	return worth, true
}

func (s Snapshot) worthAtDepth(depth cloud.Depth, most int) []float64 {
	l := s.Learned
	saved := 1 - float64(*s.Durations.Shallow.Of(depth))/float64(s.Durations.Resume)
	threshold := math.Exp(l.Running.logThreshold(1-s.Objective.Share, l.margin(s.Objective), l.Method))
	sum := make([]float64, most)
	for hour := range hoursOfWeek {
		needed := s.countInHour(&l.Running, hour)
		running := min(s.countInHour(l.Shallow.Of(depth), hour), needed)
		if s.Durations.Shallow.Suspend > 0 { // the scores of two leads are not the same
			running = min(running, s.countInHour(&l.Shallow.Suspend, hour))
		}
		if limit := s.Limits.Running.Max; limit > 0 {
			running = min(running, limit)
		}
		w := newWorth(l.claimsInHour(&l.Running, hour))
		for n := 1; n <= running+most; n++ {
			value := math.Min(w.next()/threshold, 1) * saved
			if n <= needed {
				value = 1
			}
			if n > running && !math.IsNaN(value) {
				sum[n-running-1] += value / hoursOfWeek
			}
		}
	}
	return sum
}

// claimsInHour returns the usual claims within the lead of a lead model, in an hour of the week.
func (l *Learned) claimsInHour(a *leadModel, hour int) claims {
	weight := l.Weights.Weight[0] + l.Weights.Weight[1]
	return claims{weight * l.profileRate(hour) * a.Lead.Hours(), a.dispersionAt(hour%hoursOfDay, l.Method), a.Lead.Hours()}
}

// countInHour returns the count of a lead model for the usual demand in an hour of the week.
func (s Snapshot) countInHour(a *leadModel, hour int) int {
	if a.Lead <= 0 {
		return 0
	}
	return a.countFor(s.Learned.claimsInHour(a, hour), 1-s.Objective.Share, s.Learned.margin(s.Objective), s.Learned.Method)
}
