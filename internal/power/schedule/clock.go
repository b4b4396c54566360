package schedule

import "time"

// clock is the wall clock of a time zone. Wall-clock times are written as times in UTC, which has
// no daylight saving changes.
type clock struct{ zone *time.Location }

// wallClockAt returns what the clock shows at a moment.
func (c clock) wallClockAt(at time.Time) time.Time {
	_, offset := at.In(c.zone).Zone()
	return at.UTC().Add(time.Duration(offset) * time.Second)
}

// maxZoneOffset is larger than any zone's offset from UTC has ever been.
const maxZoneOffset = 24 * time.Hour

// firstMomentShowing returns the first moment at which the clock shows the given time or a later
// one. A time that is shown twice when clocks are set back counts once, and a time that is
// skipped when they are set forward counts at the moment of the change.
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
