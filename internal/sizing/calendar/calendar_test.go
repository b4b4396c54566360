package calendar

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"
)

func number(n float64) *float64 { return &n }

func TestWhenAnEntryIsInEffect(t *testing.T) {
	for name, c := range map[string]struct {
		item    Item
		in, out string
	}{
		"a date":                      {Item{Start: "2026-12-24"}, "2026-12-24T23:59:59Z", "2026-12-25T00:00:00Z"},
		"a date in its zone":          {Item{Start: "2026-12-24", TimeZone: "Europe/Berlin"}, "2026-12-23T23:00:00Z", "2026-12-24T23:00:00Z"},
		"the last day is included":    {Item{Start: "2026-12-24", End: "2026-12-26"}, "2026-12-26T12:00:00Z", "2026-12-27T00:00:00Z"},
		"until a day, from a time":    {Item{Start: "2026-12-24T18:00", End: "2026-12-26"}, "2026-12-26T23:59:59Z", "2026-12-27T00:00:00Z"},
		"the rest of the day":         {Item{Start: "2026-12-24T18:00", End: "2026-12-24"}, "2026-12-24T23:59:59Z", "2026-12-25T00:00:00Z"},
		"times":                       {Item{Start: "2026-12-24T18:00", End: "2026-12-24T20:00"}, "2026-12-24T19:59:59Z", "2026-12-24T20:00:00Z"},
		"every year":                  {Item{Start: "2020-12-24", Rule: "FREQ=YEARLY"}, "2031-12-24T12:00:00Z", "2031-12-25T12:00:00Z"},
		"weekends":                    {Item{Start: "2026-01-03", Rule: "FREQ=WEEKLY;BYDAY=SA,SU"}, "2026-06-07T12:00:00Z", "2026-06-08T12:00:00Z"},
		"not before the first":        {Item{Start: "2026-01-03", Rule: "FREQ=DAILY"}, "2026-01-03T00:00:00Z", "2026-01-02T23:59:59Z"},
		"until":                       {Item{Start: "2026-01-03", Rule: "FREQ=DAILY;UNTIL=20260105T000000Z"}, "2026-01-05T12:00:00Z", "2026-01-06T12:00:00Z"},
		"until a date, in its zone":   {Item{Start: "2026-01-03", Rule: "FREQ=DAILY;UNTIL=20260105", TimeZone: "America/New_York"}, "2026-01-06T04:59:59Z", "2026-01-06T05:00:00Z"},
		"until a date, with a time":   {Item{Start: "2026-01-03T18:00", End: "2026-01-03T19:00", Rule: "FREQ=DAILY;UNTIL=20260105"}, "2026-01-05T18:30:00Z", "2026-01-06T18:30:00Z"},
		"until a local time":          {Item{Start: "2026-01-03T18:00", End: "2026-01-03T19:00", Rule: "FREQ=DAILY;UNTIL=20260105T180000", TimeZone: "America/New_York"}, "2026-01-05T23:30:00Z", "2026-01-06T23:30:00Z"},
		"the day that clocks change":  {Item{Start: "2026-03-29", TimeZone: "Europe/Berlin"}, "2026-03-29T21:59:59Z", "2026-03-29T22:00:00Z"},
		"9 o'clock in summer as well": {Item{Start: "2026-01-05T09:00", End: "2026-01-05T10:00", Rule: "FREQ=WEEKLY", TimeZone: "Europe/Berlin"}, "2026-07-06T07:30:00Z", "2026-07-06T08:30:00Z"},
	} {
		c.item.Name, c.item.Demand = "entry", number(0)
		cal, err := Parse([]Item{c.item})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for text, want := range map[string]string{c.in: "entry", c.out: ""} {
			at, err := time.Parse(time.RFC3339, text)
			if err != nil {
				t.Fatal(err)
			}
			if got := cal.At(at).Demand.Entry; got != want {
				t.Errorf("%s: at %s it is %q, want %q", name, text, got, want)
			}
		}
	}
}

func TestItemsThatCannotBeRead(t *testing.T) {
	minus := -1
	for want, item := range map[string]Item{
		"calendar[0].start":        {Name: "x", Start: "24.12.2026", Demand: number(1)},
		"calendar[0].end":          {Name: "x", Start: "2026-12-24", End: "2026-12-01", Demand: number(1)},
		"more than a year":         {Name: "x", Start: "2026-12-24", End: "2029-12-01", Demand: number(1)},
		"calendar[0].rule":         {Name: "x", Start: "2026-12-24", Rule: "FREQ=OFTEN", Demand: number(1)},
		"has no occurrence":        {Name: "x", Start: "2026-12-24", Rule: "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30", Demand: number(1)},
		"BYDAY=+10MO":              {Name: "x", Start: "2026-12-24", Rule: "FREQ=MONTHLY;BYDAY=10MO", Demand: number(1)},
		"BYDAY=-6FR":               {Name: "x", Start: "2026-12-24", Rule: "FREQ=YEARLY;BYMONTH=1;BYDAY=-6FR", Demand: number(1)},
		"BYEASTER":                 {Name: "x", Start: "2026-12-24", Rule: "FREQ=YEARLY;BYEASTER=300", Demand: number(1)},
		"INTERVAL=92233720":        {Name: "x", Start: "2026-12-24", Rule: "FREQ=MONTHLY;INTERVAL=9223372036854775807", Demand: number(1)},
		"more often than daily":    {Name: "x", Start: "2026-12-24", Rule: "FREQ=SECONDLY", Demand: number(1)},
		"calendar[0].timeZone":     {Name: "x", Start: "2026-12-24", TimeZone: "Mars", Demand: number(1)},
		"use a name from the IANA": {Name: "x", Start: "2026-12-24", TimeZone: "Local", Demand: number(1)},
		"calendar[0].name":         {Start: "2026-12-24", Demand: number(1)},
		"set demand, running":      {Name: "x", Start: "2026-12-24"},
		"it multiplies":            {Name: "x", Start: "2026-12-24", Demand: number(-1)},
		"running -1 is not from 0": {Name: "x", Start: "2026-12-24", Running: &minus},
	} {
		if _, err := Parse([]Item{item}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", item, err, want)
		}
	}
	if _, err := Parse(make([]Item, maxItems+1)); err == nil {
		t.Error("a thousand and one entries were accepted")
	}
}

func TestTheLaterEntryWins(t *testing.T) {
	one, two := 1, 2
	cal, err := Parse([]Item{{Name: "a", Start: "2026-01-01", Demand: number(3), Running: &one}, {Name: "b", Start: "2026-01-01", Running: &two}})
	if err != nil {
		t.Fatal(err)
	}
	if e := cal.At(time.Date(2026, 1, 1, 1, 0, 0, 0, time.UTC)); e.Running != (Setting{"b", &two}) || e.Demand.Entry != "a" || e.DemandFactor() != 3 {
		t.Errorf("%+v", e)
	}
	var none *Calendar
	if e := none.At(time.Now()); e.DemandFactor() != 1 {
		t.Errorf("%+v", e)
	}
}

func TestTheHighestValuesOfAWhile(t *testing.T) {
	low, high := 1, 8
	cal, err := Parse([]Item{
		{Name: "release", Start: "2026-03-02T06:00", End: "2026-03-02T06:10", Rule: "FREQ=WEEKLY", Demand: number(3), Running: &high},
		{Name: "freeze", Start: "2026-03-02T00:00", End: "2026-03-02T05:50", Running: &low},
	})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]struct {
		running int
		factor  float64
	}{
		"2026-03-02T04:00:00Z": {1, 1},
		"2026-03-02T05:31:00Z": {8, 3}, // it begins within the while
		"2026-03-02T05:00:00Z": {1, 1}, // it begins when the while ends
		"2026-03-02T06:05:00Z": {8, 3},
		"2026-03-02T06:10:00Z": {0, 1},
		"2026-03-09T05:45:00Z": {8, 3}, // the next week
	} {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		e, running := cal.Highest(at, at.Add(45*time.Minute)), 0
		if e.Running.Count != nil {
			running = *e.Running.Count
		}
		if running != want.running || e.DemandFactor() != want.factor {
			t.Errorf("%s: %d running, times %g, want %+v", text, running, e.DemandFactor(), want)
		}
	}
}

func TestALookupDoesNotDependOnTheOnesBefore(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 1))
	items := []Item{
		{Name: "a", Start: "2026-01-05T09:00", End: "2026-01-05T10:00", Rule: "FREQ=WEEKLY;BYDAY=MO,TH", TimeZone: "Europe/Berlin", Demand: number(2)},
		{Name: "b", Start: "2026-02-01", End: "2026-02-03", Rule: "FREQ=MONTHLY;COUNT=5", Demand: number(3)},
		{Name: "c", Start: "2026-06-01", Demand: number(4)},
		{Name: "d", Start: "2025-03-29T23:00", Rule: "FREQ=YEARLY;UNTIL=20270101", TimeZone: "America/New_York", Demand: number(5)},
	}
	parse := func() *Calendar {
		c, err := Parse(items)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	used := parse()
	for range 60 {
		at := time.Date(2025, 12, 1, 0, r.IntN(600*24*60), 0, 0, time.UTC)
		if got, want := used.At(at).DemandFactor(), parse().At(at).DemandFactor(); got != want {
			t.Fatalf("seed %d, %s: times %g, want %g", seed, at, got, want)
		}
	}
}

func TestNoRulePanics(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a test
	number := func(most int) string { return strconv.Itoa(random.IntN(2*most+1) - most) }
	parts := []func() string{
		func() string { return "INTERVAL=" + number(2000) },
		func() string { return "COUNT=" + number(40) },
		func() string { return "BYMONTH=" + number(13) },
		func() string { return "BYMONTHDAY=" + number(32) },
		func() string { return "BYYEARDAY=" + number(367) },
		func() string { return "BYWEEKNO=" + number(54) },
		func() string { return "BYSETPOS=" + number(367) },
		func() string { return "BYEASTER=" + number(400) },
		func() string { return "BYDAY=" + number(60) + []string{"MO", "FR", "SU"}[random.IntN(3)] },
		func() string { return "WKST=SU" },
		func() string { return "BYHOUR=" + number(24) },
	}
	accepted := 0
	for range 3000 {
		rule := "FREQ=" + []string{"WEEKLY", "MONTHLY", "MONTHLY", "YEARLY"}[random.IntN(4)]
		for range random.IntN(4) {
			rule += ";" + parts[random.IntN(len(parts))]()
		}
		cal := parseWithoutPanic(t, Item{Name: "x", Start: "2026-02-28", Rule: rule, Demand: new(float64)})
		if cal == nil {
			continue
		}
		accepted++
		for _, year := range []int{2025, 2026, 2040, 2125} {
			at := time.Date(year, time.Month(random.IntN(12)+1), random.IntN(28), 1, 0, 0, 0, time.UTC)
			lookUpWithoutPanic(t, rule, cal, at)
		}
	}
	if accepted < 3 {
		t.Errorf("only %d rules were accepted", accepted)
	}
}

func parseWithoutPanic(t *testing.T, item Item) *Calendar {
	t.Helper()
	defer func() {
		if why := recover(); why != nil {
			t.Errorf("%s: parsing panics: %v", item.Rule, why)
		}
	}()
	cal, err := Parse([]Item{item})
	if err != nil {
		return nil
	}
	return cal
}

func lookUpWithoutPanic(t *testing.T, rule string, cal *Calendar, at time.Time) {
	t.Helper()
	defer func() {
		if why := recover(); why != nil {
			t.Errorf("%s: a lookup at %s panics: %v", rule, at, why)
		}
	}()
	cal.Highest(at, at.Add(time.Hour))
}

func TestNextChange(t *testing.T) {
	double, count := 2.0, 3
	items := []Item{
		{Name: "night", Start: "2026-01-01T18:00", End: "2026-01-02T08:00", Rule: "FREQ=DAILY", TimeZone: "Europe/Berlin", Demand: &double},
		{Name: "release", Start: "2026-03-28", Demand: &double},
		{Name: "counts", Start: "2026-03-28T12:00", Running: &count},
	}
	c, err := Parse(items)
	if err != nil {
		t.Fatal(err)
	}
	at := func(text string) time.Time {
		parsed, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	// Berlin is an hour ahead of UTC, and two from 29 March on.
	for from, want := range map[string]string{
		"2025-01-01T00:00:00Z": "2026-01-01T17:00:00Z",
		"2026-01-01T17:00:00Z": "2026-01-02T07:00:00Z",
		"2026-01-02T07:00:00Z": "2026-01-02T17:00:00Z",
		"2026-03-27T17:30:00Z": "2026-03-28T00:00:00Z",
		"2026-03-28T10:00:00Z": "2026-03-28T17:00:00Z",
		"2026-03-28T17:00:00Z": "2026-03-29T00:00:00Z",
		"2026-03-29T00:30:00Z": "2026-03-29T06:00:00Z",
	} {
		if got := c.NextChange(at(from)); !got.Equal(at(want)) {
			t.Errorf("after %s: %s, want %s", from, got.UTC().Format(time.RFC3339), want)
		}
		if before, change := c.At(at(want).Add(-time.Second)).DemandFactor(), c.At(at(want)).DemandFactor(); before == change && from != "2026-03-28T10:00:00Z" && from != "2026-03-28T17:00:00Z" && from != "2026-03-27T17:30:00Z" {
			t.Errorf("nothing changes at %s: %g", want, change)
		}
	}
	if got := (*Calendar)(nil).NextChange(at("2026-01-01T00:00:00Z")); !got.IsZero() {
		t.Errorf("without a calendar: %s", got)
	}
	same, err := Parse(items)
	if err != nil {
		t.Fatal(err)
	}
	other, err := Parse(items[1:])
	if err != nil || !c.Equal(same) || c.Equal(other) || c.Equal(nil) || !(*Calendar)(nil).Equal(nil) {
		t.Errorf("calendars are compared wrongly: %v", err)
	}
}
