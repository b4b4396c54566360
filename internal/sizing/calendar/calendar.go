// Package calendar knows the days on which the demand for clusters differs from what is usual:
// holidays, freezes, releases. It is pure.
package calendar

import (
	"fmt"
	"math"
	"time"
	_ "time/tzdata" // the machine may have no time zone database, as in an image built from scratch

	"github.com/teambition/rrule-go"
)

// An Item is one entry as its owner writes it.
type Item struct {
	// Name explains the entry to people; it is shown in reasons.
	Name string `json:"name"`
	// Start is a date or a time in TimeZone: 2026-12-24 or 2026-12-24T18:00.
	Start string `json:"start"`
	// End is when the first occurrence ends, exclusive; for a date, the last day. If it is empty, the
	// entry lasts a day.
	End string `json:"end,omitempty"`
	// Rule is an iCalendar RRULE that repeats the entry, such as FREQ=YEARLY.
	Rule string `json:"rule,omitempty"`
	// TimeZone is an IANA name; empty for UTC.
	TimeZone string `json:"timeZone,omitempty"`
	// Demand multiplies the expected demand: 0 on a holiday, 3 for a release. Nil leaves it.
	Demand *float64 `json:"demand,omitempty"`
	// Running and Size set the counts themselves; nil leaves them to the demand.
	Running *int `json:"running,omitempty"`
	Size    *int `json:"size,omitempty"`
}

// An Entry is what is in effect at a moment. The zero value changes nothing.
type Entry struct {
	Name          string
	Demand        *float64
	Running, Size *int
}

// DemandFactor returns by what the expected demand is multiplied.
func (e Entry) DemandFactor() float64 {
	if e.Demand == nil {
		return 1
	}
	return *e.Demand
}

// A Calendar has entries that can be looked up. A nil Calendar has none.
type Calendar struct{ entries []entry }

type entry struct {
	Entry
	start  time.Time
	length time.Duration
	// wall is the zone of start; occurrences are computed on its wall clock.
	wall *time.Location
	rule *rrule.RRule
}

// maxLength is the longest entry, and maxItems their number: each lookup searches all of them.
const (
	maxLength = 366 * 24 * time.Hour
	maxItems  = 1000
)

// Parse checks and prepares items. The error names the item and its field.
func Parse(items []Item) (*Calendar, error) {
	if len(items) > maxItems {
		return nil, fmt.Errorf("calendar has %d entries: use at most %d, and rules for those that repeat", len(items), maxItems)
	}
	c := &Calendar{}
	for i, it := range items {
		e, err := it.parse()
		if err != nil {
			return nil, fmt.Errorf("calendar[%d].%w", i, err)
		}
		c.entries = append(c.entries, e)
	}
	return c, nil
}

func (it Item) parse() (entry, error) {
	e := entry{Entry: Entry{Name: it.Name, Demand: it.Demand, Running: it.Running, Size: it.Size}}
	if err := it.checkEffect(); err != nil {
		return e, err
	}
	zone, err := time.LoadLocation(it.TimeZone)
	if err != nil || it.TimeZone == "Local" {
		return e, fmt.Errorf("timeZone %q is not a time zone: use a name from the IANA database, such as UTC or Europe/Berlin", it.TimeZone)
	}
	start, isDate, err := parseMoment("start", it.Start, zone)
	if err != nil {
		return e, err
	}
	e.start, e.wall = start, zone
	if err := e.parseEnd(it.End, isDate); err != nil {
		return e, err
	}
	return e, e.parseRule(it.Rule)
}

// checkEffect checks what the entry changes.
func (it Item) checkEffect() error {
	switch {
	case it.Name == "":
		return fmt.Errorf("name is empty: name the entry, such as Christmas; reasons show it")
	case it.Demand == nil && it.Running == nil && it.Size == nil:
		return fmt.Errorf("demand is missing: set demand, running or size")
	case it.Demand != nil && (math.IsNaN(*it.Demand) || *it.Demand < 0 || *it.Demand > 1000):
		return fmt.Errorf("demand %g is not from 0 to 1000: it multiplies the expected demand", *it.Demand)
	case it.Running != nil && *it.Running < 0, it.Size != nil && *it.Size < 0:
		return fmt.Errorf("running or size is negative: use 0 or more")
	}
	return nil
}

func (e *entry) parseEnd(text string, startIsDate bool) error {
	if text == "" {
		e.length = wallTime(e.start).AddDate(0, 0, 1).Sub(wallTime(e.start))
		return nil
	}
	end, isDate, err := parseMoment("end", text, e.wall)
	if err != nil {
		return err
	}
	if isDate && startIsDate {
		end = end.AddDate(0, 0, 1)
	}
	e.length = wallTime(end).Sub(wallTime(e.start))
	if e.length <= 0 || e.length > maxLength {
		return fmt.Errorf("end %q is not after the start, or more than a year after it", text)
	}
	return nil
}

func (e *entry) parseRule(text string) error {
	if text == "" {
		return nil
	}
	option, err := rrule.StrToROption(text)
	if err != nil {
		return fmt.Errorf("rule %q is not an iCalendar RRULE (%w): write for example FREQ=YEARLY or FREQ=WEEKLY;BYDAY=SA,SU", text, err)
	}
	if option.Freq > rrule.DAILY {
		return fmt.Errorf("rule %q repeats more often than daily: use FREQ=DAILY, WEEKLY, MONTHLY or YEARLY", text)
	}
	option.Dtstart = wallTime(e.start)
	if !option.Until.IsZero() {
		option.Until = wallTime(option.Until.In(e.wall))
	}
	if e.rule, err = rrule.NewRRule(*option); err != nil {
		return fmt.Errorf("rule %q is not an iCalendar RRULE (%w): write for example FREQ=YEARLY", text, err)
	}
	return nil
}

func parseMoment(field, text string, zone *time.Location) (at time.Time, isDate bool, err error) {
	if at, err = time.ParseInLocation(time.DateOnly, text, zone); err == nil {
		return at, true, nil
	}
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05"} {
		if at, err = time.ParseInLocation(layout, text, zone); err == nil {
			return at, false, nil
		}
	}
	if at, err = time.Parse(time.RFC3339, text); err == nil {
		return at.In(zone), false, nil
	}
	return at, false, fmt.Errorf("%s %q is not a date or time: write 2026-12-24 or 2026-12-24T18:00", field, text)
}

// wallTime returns what a clock shows, as a time in UTC: there are no daylight saving changes in it,
// so that a day is a day.
func wallTime(at time.Time) time.Time {
	return time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), 0, time.UTC)
}

// At returns what is in effect at a moment. If several entries are, the later of the list wins where
// both set the same thing.
func (c *Calendar) At(now time.Time) Entry {
	var out Entry
	if c == nil {
		return out
	}
	for i := range c.entries {
		e := &c.entries[i]
		if !e.contains(now) {
			continue
		}
		out.Name = e.Name
		if e.Demand != nil {
			out.Demand = e.Demand
		}
		if e.Running != nil {
			out.Running = e.Running
		}
		if e.Size != nil {
			out.Size = e.Size
		}
	}
	return out
}

func (e *entry) contains(now time.Time) bool {
	shown := wallTime(now.In(e.wall))
	start := wallTime(e.start)
	if e.rule != nil {
		start = e.rule.Before(shown, true)
		if start.IsZero() {
			return false
		}
	}
	return !shown.Before(start) && shown.Before(start.Add(e.length))
}
