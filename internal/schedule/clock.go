package schedule

import "time"

// clock is the clock on the wall of a time zone. What it shows is written as a time
// in UTC, in which one can count without leaps.
type clock struct{ zone *time.Location }

// wallClockAt is what the clock shows at a moment.
func (c clock) wallClockAt(at time.Time) time.Time {
	_, offset := at.In(c.zone).Zone()
	return at.UTC().Add(time.Duration(offset) * time.Second)
}

// maxZoneOffset is more than any zone has been away from UTC.
const maxZoneOffset = 24 * time.Hour

// firstMomentShowing is the first moment at which the clock shows that, or something later. So
// what is shown twice when clocks are put back counts once, and what is left out
// when they are put forward counts at the moment of the leap.
func (c clock) firstMomentShowing(shown time.Time) time.Time {
	for from := shown.Add(-maxZoneOffset); ; {
		_, offset := from.In(c.zone).Zone()
		at := laterTime(from, shown.Add(-time.Duration(offset)*time.Second))
		_, end := from.In(c.zone).ZoneBounds()
		if end.IsZero() || at.Before(end) {
			return at.UTC()
		}
		from = end
	}
}

func laterTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
