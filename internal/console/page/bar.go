package page

import (
	"fmt"
	"strconv"
	"strings"

	"hotspare.io/hotspare/internal/explain/fleetplan"
	"hotspare.io/hotspare/internal/explain/humanize"
)

// A Bar draws units. Positions and widths are percentages of its width.
type Bar struct {
	Segments []UnitSegment
	// Ticks are the borders between units; nil if they would be too close.
	Ticks []string
	// Marks are lines across the bar.
	Marks []Mark
	// Label describes the bar in a sentence.
	Label string
}

// A UnitSegment is a segment of a bar.
type UnitSegment struct {
	// The kind of the units: Used, Free, InFlight or Pending.
	What  string
	X, W  string
	Units int
}

// A Mark is a line across a bar: Slack or Limit.
type Mark struct{ What, X string }

// The kinds of segments and marks. Lower case, they are CSS classes.
const (
	Used     = "Used"
	Free     = "Free"
	InFlight = "InFlight"
	Pending  = "Pending"
	Slack    = "Slack"
	Limit    = "Limit"
)

// maxTicks is how many units of a bar a phone can show separately.
const maxTicks = 40

// newBar draws segments on a scale that has room for all of them and for at least `least` units.
func newBar(least int, segments ...UnitSegment) Bar {
	total := 0
	for _, p := range segments {
		total += max(0, p.Units)
	}
	scale := max(total, least, 1)
	var b Bar
	at := 0
	for _, p := range segments {
		if p.Units <= 0 {
			continue
		}
		p.X, p.W = formatPercent(at, scale), formatPercent(p.Units, scale)
		b.Segments = append(b.Segments, p)
		at += p.Units
	}
	if scale <= maxTicks {
		for n := 1; n < scale; n++ {
			b.Ticks = append(b.Ticks, formatPercent(n, scale))
		}
	}
	return b
}

func formatPercent(n, of int) string {
	return strconv.FormatFloat(100*float64(max(0, n))/float64(of), 'f', -1, 32) + "%"
}

// newTypeBar draws the units of a type in a region: used, free, in flight with data planes that are
// not ready yet, and pending for instances without a data plane.
func newTypeBar(t fleetplan.Type, coming int) Bar {
	coming = min(coming, t.FreeUnits)
	there := t.UsedUnits + t.FreeUnits
	scale := there + t.PendingUnits
	marked := t.Limit != nil && *t.Limit <= 2*max(scale, t.BiggestUnits, 1) // a much larger limit would shrink the rest to a dot
	if marked {
		scale = max(scale, *t.Limit)
	}
	b := newBar(scale,
		UnitSegment{What: Used, Units: t.UsedUnits}, UnitSegment{What: Free, Units: t.FreeUnits - coming},
		UnitSegment{What: InFlight, Units: coming}, UnitSegment{What: Pending, Units: t.PendingUnits})
	if t.SlackUnits > 0 && there > 0 {
		b.Marks = append(b.Marks, Mark{Slack, formatPercent(there-t.SlackUnits, scale)})
	}
	if marked {
		b.Marks = append(b.Marks, Mark{Limit, formatPercent(*t.Limit, scale)})
	}
	b.Label = describeTypeBar(t, coming)
	return b
}

// describeTypeBar describes the bar for screen readers.
func describeTypeBar(t fleetplan.Type, coming int) string {
	words := []string{humanize.FormatCount(t.UsedUnits, "unit") + " used", fmt.Sprintf("%d free", t.FreeUnits-coming)}
	if coming > 0 {
		words = append(words, fmt.Sprintf("%d in flight", coming))
	}
	if t.PendingUnits > 0 {
		words = append(words, fmt.Sprintf("%d pending", t.PendingUnits))
	}
	words = append(words, fmt.Sprintf("slack %d", t.SlackUnits))
	if t.Limit != nil {
		words = append(words, fmt.Sprintf("limit %d", *t.Limit))
	}
	return t.Name + ": " + strings.Join(words, ", ") + "."
}

// newRoomBar draws the units of a type on a data plane.
func newRoomBar(r fleetplan.Room) Bar {
	b := newBar(0, UnitSegment{What: Used, Units: r.UsedUnits}, UnitSegment{What: Free, Units: r.MaxUnits - r.UsedUnits})
	b.Label = fmt.Sprintf("%s: %d of %s used.", r.Type, r.UsedUnits, humanize.FormatCount(r.MaxUnits, "unit"))
	return b
}
