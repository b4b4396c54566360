// Package calendar knows the days on which the demand for clusters differs from what is usual:
// holidays, freezes, releases. It is pure.
package calendar

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
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
	Demand        Factor
	Running, Size Setting
}

// A Factor multiplies the expected demand; nil leaves it. Entry is the name of the entry that sets it.
type Factor struct {
	Entry string
	By    *float64
}

// A Setting sets a count; nil leaves it to the demand. Entry is the name of the entry that sets it.
type Setting struct {
	Entry string
	Count *int
}

// DemandFactor returns by what the expected demand is multiplied.
func (e Entry) DemandFactor() float64 {
	if e.Demand.By == nil {
		return 1
	}
	return *e.Demand.By
}

// A Calendar has entries that can be looked up, by one goroutine at a time. A nil Calendar has none.
type Calendar struct{ entries []*entry }

type entry struct {
	Item
	start  time.Time
	length time.Duration
	// wall is the zone of start; occurrences are computed on its wall clock.
	wall *time.Location
	rule *rrule.RRule
	// last is the occurrence that was looked up last: rules count from their beginning, and most lookups are about
	// the same occurrence as the one before.
	last *occurrence
}

// occurrence is the time between the beginnings of two occurrences, on the wall clock. next is zero for the last one;
// start is zero for the time before the first one.
type occurrence struct{ start, next time.Time }

// maxLength is the longest entry, and maxItems their number: each lookup searches all of them. maxCount is the largest count of an
// entry, as in the schema of the API.
const (
	maxCount  = 100_000
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

func (it Item) parse() (*entry, error) {
	e := &entry{Item: it}
	if err := it.checkEffect(); err != nil {
		return e, err
	}
	zone, err := time.LoadLocation(it.TimeZone)
	if err != nil || it.TimeZone == "Local" {
		return e, fmt.Errorf("timeZone %q is not a time zone: use a name from the IANA database, such as UTC or Europe/Berlin", it.TimeZone)
	}
	start, _, err := parseMoment("start", it.Start, zone)
	if err != nil {
		return e, err
	}
	e.start, e.wall = start, zone
	if err := e.parseEnd(it.End); err != nil {
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
	}
	for _, f := range []struct {
		name  string
		count *int
	}{{"running", it.Running}, {"size", it.Size}} {
		if f.count != nil && (*f.count < 0 || *f.count > maxCount) {
			return fmt.Errorf("%s %d is not from 0 to %d", f.name, *f.count, maxCount)
		}
	}
	return nil
}

func (e *entry) parseEnd(text string) error {
	if text == "" {
		e.length = wallTime(e.start).AddDate(0, 0, 1).Sub(wallTime(e.start))
		return nil
	}
	end, isDate, err := parseMoment("end", text, e.wall)
	if err != nil {
		return err
	}
	if isDate {
		end = end.AddDate(0, 0, 1)
	}
	e.length = wallTime(end).Sub(wallTime(e.start))
	if e.length <= 0 || e.length > maxLength {
		return fmt.Errorf("end %q is not after the start, %s, or more than a year after it: correct it, or remove it for an entry of one day", text, e.Start)
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
	if err := checkRule(option); err != nil {
		return fmt.Errorf("rule %q: %w", text, err)
	}
	option.Dtstart = wallTime(e.start)
	option.Until = e.untilOf(text, option.Until)
	if end := option.Dtstart.AddDate(maxYears, 0, 0); option.Count == 0 && (option.Until.IsZero() || option.Until.After(end)) {
		option.Until = end
	}
	if e.rule, err = rrule.NewRRule(*option); err != nil {
		return fmt.Errorf("rule %q is not an iCalendar RRULE (%w): write for example FREQ=YEARLY", text, err)
	}
	if e.rule.After(option.Dtstart, true).IsZero() {
		return fmt.Errorf("rule %q has no occurrence after the start, %s: correct the rule, or remove it", text, e.Start)
	}
	return nil
}

// maxInterval is the largest INTERVAL of a rule.
const maxInterval = 1000

// checkRule refuses what rrule.NewRRule accepts, and cannot look up: it would panic.
func checkRule(o *rrule.ROption) error {
	if o.Interval > maxInterval {
		return fmt.Errorf("INTERVAL=%d is more than %d: use a smaller one", o.Interval, maxInterval)
	}
	if len(o.Byeaster) > 0 {
		return errors.New("BYEASTER is no part of RFC 5545: write an entry for each Easter")
	}
	ofMonth := o.Freq == rrule.MONTHLY || len(o.Bymonth) > 0
	for _, day := range o.Byweekday {
		if n := day.N(); ofMonth && (n < -5 || n > 5) {
			return fmt.Errorf("BYDAY=%s: a month has at most five of each day of the week: use -5 to 5, or BYMONTHDAY for a day of the month", day)
		}
	}
	return nil
}

// maxYears is how long rules repeat: one that never matches would be searched for ever.
const maxYears = 100

// untilOf returns the end of a rule on the wall clock. A time without Z is one of the zone of the entry, and a date
// includes the whole day (RFC 5545, 3.3.10).
func (e *entry) untilOf(rule string, until time.Time) time.Time {
	if until.IsZero() {
		return until
	}
	_, text, _ := strings.Cut(strings.ToUpper(rule), "UNTIL=")
	text, _, _ = strings.Cut(text, ";")
	switch {
	case strings.HasSuffix(text, "Z"):
		return wallTime(until.In(e.wall))
	case !strings.Contains(text, "T"):
		return until.AddDate(0, 0, 1).Add(-time.Second)
	default:
		return until
	}
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
	for _, e := range c.entries {
		if !e.contains(now) {
			continue
		}
		if e.Demand != nil {
			out.Demand = Factor{e.Name, e.Demand}
		}
		if e.Running != nil {
			out.Running = Setting{e.Name, e.Running}
		}
		if e.Size != nil {
			out.Size = Setting{e.Name, e.Size}
		}
	}
	return out
}

// Highest returns the highest values that are in effect at some moment from one time to another: so that what takes
// a while is begun before it is needed.
func (c *Calendar) Highest(from, to time.Time) Entry {
	out := c.At(from)
	if c == nil {
		return out
	}
	moments := []time.Time{to}
	for _, e := range c.entries {
		if at := e.nextStart(from); !at.IsZero() && at.Before(to) {
			moments = append(moments, at)
		}
	}
	for _, at := range moments {
		e := c.At(at)
		if e.DemandFactor() > out.DemandFactor() {
			out.Demand = e.Demand
		}
		out.Running, out.Size = higher(out.Running, e.Running), higher(out.Size, e.Size)
	}
	return out
}

func higher(a, b Setting) Setting {
	if a.Count == nil || b.Count != nil && *b.Count > *a.Count {
		return b
	}
	return a
}

// nextStart returns when the next occurrence after a moment begins; zero if there is none.
func (e *entry) nextStart(now time.Time) time.Time {
	next := e.occurrenceAt(wallTime(now.In(e.wall))).next
	if next.IsZero() {
		return next
	}
	return time.Date(next.Year(), next.Month(), next.Day(), next.Hour(), next.Minute(), next.Second(), 0, e.wall)
}

// NextChange returns the first moment after a time at which an entry that multiplies the demand begins or ends; zero if
// there is none.
func (c *Calendar) NextChange(after time.Time) time.Time {
	var first time.Time
	if c == nil {
		return first
	}
	for _, e := range c.entries {
		if e.Demand == nil {
			continue
		}
		for _, at := range []time.Time{e.nextStart(after), e.endAfter(after)} {
			if !at.IsZero() && at.After(after) && (first.IsZero() || at.Before(first)) {
				first = at
			}
		}
	}
	return first
}

// endAfter returns when the occurrence of a moment ends; zero if there is none.
func (e *entry) endAfter(now time.Time) time.Time {
	shown := wallTime(now.In(e.wall))
	start := e.occurrenceAt(shown).start
	end := start.Add(e.length)
	if start.IsZero() || !end.After(shown) {
		return time.Time{}
	}
	return time.Date(end.Year(), end.Month(), end.Day(), end.Hour(), end.Minute(), end.Second(), 0, e.wall)
}

// Equal reports whether two calendars have the same entries.
func (c *Calendar) Equal(other *Calendar) bool {
	return slices.EqualFunc(c.listItems(), other.listItems(), func(a, b Item) bool { return reflect.DeepEqual(a, b) })
}

func (c *Calendar) listItems() []Item {
	if c == nil {
		return nil
	}
	items := make([]Item, len(c.entries))
	for i, e := range c.entries {
		items[i] = e.Item
	}
	return items
}

func (e *entry) contains(now time.Time) bool {
	shown := wallTime(now.In(e.wall))
	start := e.occurrenceAt(shown).start
	return !start.IsZero() && shown.Before(start.Add(e.length))
}

// occurrenceAt returns the last occurrence that has begun at a time of the wall clock.
func (e *entry) occurrenceAt(shown time.Time) occurrence {
	if o := e.last; o != nil && !shown.Before(o.start) && (o.next.IsZero() || shown.Before(o.next)) {
		return *o
	}
	o := occurrence{next: wallTime(e.start)}
	switch {
	case e.rule != nil:
		o = occurrence{e.rule.Before(shown, true), e.rule.After(shown, false)}
	case !shown.Before(o.next):
		o = occurrence{start: o.next}
	}
	e.last = &o
	return o
}
