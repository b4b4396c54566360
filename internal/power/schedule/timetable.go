package schedule

import (
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// Slot is a moment at which clusters are set to Running or Hibernating. The zero Slot means no
// slot.
type Slot struct {
	At    time.Time
	Power hivev1.PowerState
}

// IsZero reports whether s is the zero Slot.
func (s Slot) IsZero() bool { return s.At.IsZero() }

// String returns the slot as it is written into an annotation; ParseSlot parses it.
func (s Slot) String() string {
	if s.IsZero() {
		return ""
	}
	return fmt.Sprintf("%s %s", s.At.UTC().Format(time.RFC3339), s.Power)
}

// ParseSlot parses the output of String and ignores what follows it. It returns the zero Slot if
// the text is invalid: a corrupted annotation counts as absent.
func ParseSlot(text string) Slot {
	words := strings.Fields(text)
	if len(words) < 2 {
		return Slot{}
	}
	at, err := time.Parse(time.RFC3339, words[0])
	power := hivev1.PowerState(words[1])
	if err != nil || power != hivev1.PowerRunning && power != hivev1.PowerHibernating {
		return Slot{}
	}
	return Slot{At: at.UTC(), Power: power}
}

// isSameSlot reports whether both slots are the same moment and power state; time zones do not
// matter.
func (s Slot) isSameSlot(o Slot) bool { return s.At.Equal(o.At) && s.Power == o.Power }

// takesPrecedence reports whether s applies when both slots have passed: it is the later one, or
// at the same moment the one that resumes. No cluster should be found hibernating that should
// have resumed.
func (s Slot) takesPrecedence(o Slot) bool {
	if !s.At.Equal(o.At) {
		return s.At.After(o.At)
	}
	return s.Power == hivev1.PowerRunning && o.Power != hivev1.PowerRunning
}

// Timetable contains the slots of a schedule. The zero value has none.
type Timetable struct{ lines []cronLine }

// cronLine is one cron expression of a window.
type cronLine struct {
	rule  cron.Schedule
	clock clock
	power hivev1.PowerState
}

// nextMoment returns the first slot after a moment; zero if there is none. It passes the
// wall-clock time to the rule, because the library's own handling of daylight saving changes
// skips the times that are left out and repeats those that are shown twice.
func (l cronLine) nextMoment(after time.Time) time.Time {
	shown := l.clock.wallClockAt(after)
	for {
		if shown = l.rule.Next(shown); shown.IsZero() {
			return time.Time{}
		}
		if at := l.clock.firstMomentShowing(shown); at.After(after) {
			return at
		}
	}
}

// lastMoment returns the last slot after one moment, up to and including another; zero if there
// is none.
func (l cronLine) lastMoment(after, until time.Time) time.Time {
	after = laterTime(after, until.AddDate(-maxLookbackYears, 0, 0))
	for span := time.Hour; ; span *= 2 {
		from, found := laterTime(after, until.Add(-span)), time.Time{}
		for at := l.nextMoment(from); !at.IsZero() && !at.After(until); at = l.nextMoment(at) {
			found = at
		}
		if !found.IsZero() || !from.After(after) {
			return found
		}
	}
}

// maxLookbackYears is the number of years searched for slots: the longest time between two slots
// of any expression that Parse accepts.
const maxLookbackYears = 8

// NextSlot returns the first slot after a moment.
func (t Timetable) NextSlot(after time.Time) Slot {
	var out Slot
	for _, l := range t.lines {
		s := Slot{At: l.nextMoment(after), Power: l.power}
		if s.IsZero() {
			continue
		}
		if out.IsZero() || s.At.Before(out.At) || s.At.Equal(out.At) && s.takesPrecedence(out) {
			out = s
		}
	}
	return out
}

// LastSlot returns the slot in effect: the last one after a moment, up to and including another.
func (t Timetable) LastSlot(after, until time.Time) Slot {
	var out Slot
	for _, l := range t.lines {
		if s := (Slot{At: l.lastMoment(after, until), Power: l.power}); !s.IsZero() && s.takesPrecedence(out) {
			out = s
		}
	}
	return out
}
