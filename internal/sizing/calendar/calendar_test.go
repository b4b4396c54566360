package calendar

import (
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
		"times":                       {Item{Start: "2026-12-24T18:00", End: "2026-12-24T20:00"}, "2026-12-24T19:59:59Z", "2026-12-24T20:00:00Z"},
		"every year":                  {Item{Start: "2020-12-24", Rule: "FREQ=YEARLY"}, "2031-12-24T12:00:00Z", "2031-12-25T12:00:00Z"},
		"weekends":                    {Item{Start: "2026-01-03", Rule: "FREQ=WEEKLY;BYDAY=SA,SU"}, "2026-06-07T12:00:00Z", "2026-06-08T12:00:00Z"},
		"not before the first":        {Item{Start: "2026-01-03", Rule: "FREQ=DAILY"}, "2026-01-03T00:00:00Z", "2026-01-02T23:59:59Z"},
		"until":                       {Item{Start: "2026-01-03", Rule: "FREQ=DAILY;UNTIL=20260105T000000Z"}, "2026-01-05T12:00:00Z", "2026-01-06T12:00:00Z"},
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
			if got := cal.At(at).Name; got != want {
				t.Errorf("%s: at %s it is %q, want %q", name, text, got, want)
			}
		}
	}
}

func TestItemsThatCannotBeRead(t *testing.T) {
	minus := -1
	for want, item := range map[string]Item{
		"calendar[0].start":         {Name: "x", Start: "24.12.2026", Demand: number(1)},
		"calendar[0].end":           {Name: "x", Start: "2026-12-24", End: "2026-12-01", Demand: number(1)},
		"more than a year":          {Name: "x", Start: "2026-12-24", End: "2029-12-01", Demand: number(1)},
		"calendar[0].rule":          {Name: "x", Start: "2026-12-24", Rule: "FREQ=OFTEN", Demand: number(1)},
		"more often than daily":     {Name: "x", Start: "2026-12-24", Rule: "FREQ=SECONDLY", Demand: number(1)},
		"calendar[0].timeZone":      {Name: "x", Start: "2026-12-24", TimeZone: "Mars", Demand: number(1)},
		"use a name from the IANA":  {Name: "x", Start: "2026-12-24", TimeZone: "Local", Demand: number(1)},
		"calendar[0].name":          {Start: "2026-12-24", Demand: number(1)},
		"set demand, running":       {Name: "x", Start: "2026-12-24"},
		"it multiplies":             {Name: "x", Start: "2026-12-24", Demand: number(-1)},
		"running or size is negati": {Name: "x", Start: "2026-12-24", Running: &minus},
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
	if e := cal.At(time.Date(2026, 1, 1, 1, 0, 0, 0, time.UTC)); e.Name != "b" || *e.Running != 2 || e.DemandFactor() != 3 {
		t.Errorf("%+v", e)
	}
	var none *Calendar
	if e := none.At(time.Now()); e.DemandFactor() != 1 {
		t.Errorf("%+v", e)
	}
}
