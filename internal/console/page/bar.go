package page

import (
	"fmt"
	"strconv"
	"strings"

	"hotspare.io/hotspare/internal/capacity/outlook"
	"hotspare.io/hotspare/internal/prose"
)

// A Bar draws units. Places and widths are in percent of its own width.
type Bar struct {
	Parts []Part
	// Ticks are where one unit ends and the next begins; nil when they would be too near.
	Ticks []string
	// Marks are lines across it.
	Marks []Mark
	// Label says in a sentence what it shows.
	Label string
}

// A Part is a stretch of a bar.
type Part struct {
	// What is Used, Free, Coming or Asked.
	What  string
	X, W  string
	Units int
}

// A Mark is a line across a bar: Slack or Limit.
type Mark struct{ What, X string }

// What parts and marks of a bar are.
const (
	Used   = "Used"
	Free   = "Free"
	Coming = "Coming"
	Asked  = "Asked"
	Slack  = "Slack"
	Limit  = "Limit"
)

// mostTicks is how many units of a bar can be told apart on a phone.
const mostTicks = 40

// barOf draws parts on a scale that has all of them and at least so many units.
func barOf(least int, parts ...Part) Bar {
	total := 0
	for _, p := range parts {
		total += max(0, p.Units)
	}
	scale := max(total, least, 1)
	var b Bar
	at := 0
	for _, p := range parts {
		if p.Units <= 0 {
			continue
		}
		p.X, p.W = percent(at, scale), percent(p.Units, scale)
		b.Parts = append(b.Parts, p)
		at += p.Units
	}
	if scale <= mostTicks {
		for n := 1; n < scale; n++ {
			b.Ticks = append(b.Ticks, percent(n, scale))
		}
	}
	return b
}

func percent(n, of int) string {
	return strconv.FormatFloat(100*float64(max(0, n))/float64(of), 'f', -1, 32) + "%"
}

// typeBar draws what a region has of a type: what is used, what is free now, what comes
// with data planes on their way, and what is asked for and has no place.
func typeBar(t outlook.Type, coming int) Bar {
	coming = min(coming, t.FreeUnits)
	there := t.UsedUnits + t.FreeUnits
	scale := there + t.PendingUnits
	marked := t.Limit != nil && *t.Limit <= 2*max(scale, t.BiggestUnits, 1) // a far limit would leave a dot of all else
	if marked {
		scale = max(scale, *t.Limit)
	}
	b := barOf(scale,
		Part{What: Used, Units: t.UsedUnits}, Part{What: Free, Units: t.FreeUnits - coming},
		Part{What: Coming, Units: coming}, Part{What: Asked, Units: t.PendingUnits})
	if t.SlackUnits > 0 && there > 0 {
		b.Marks = append(b.Marks, Mark{Slack, percent(there-t.SlackUnits, scale)})
	}
	if marked {
		b.Marks = append(b.Marks, Mark{Limit, percent(*t.Limit, scale)})
	}
	b.Label = sentence(t, coming)
	return b
}

// sentence is the bar for who does not see it.
func sentence(t outlook.Type, coming int) string {
	words := []string{prose.Count(t.UsedUnits, "unit") + " used", fmt.Sprintf("%d free", t.FreeUnits-coming)}
	if coming > 0 {
		words = append(words, fmt.Sprintf("%d coming", coming))
	}
	if t.PendingUnits > 0 {
		words = append(words, fmt.Sprintf("%d asked for without a place", t.PendingUnits))
	}
	words = append(words, fmt.Sprintf("slack %d", t.SlackUnits))
	if t.Limit != nil {
		words = append(words, fmt.Sprintf("limit %d", *t.Limit))
	}
	return t.Name + ": " + strings.Join(words, ", ") + "."
}

// roomBar draws what a data plane has of a type.
func roomBar(r outlook.Room) Bar {
	b := barOf(0, Part{What: Used, Units: r.UsedUnits}, Part{What: Free, Units: r.MaxUnits - r.UsedUnits})
	b.Label = fmt.Sprintf("%s: %d of %s used.", r.Type, r.UsedUnits, prose.Count(r.MaxUnits, "unit"))
	return b
}
