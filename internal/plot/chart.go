// Package plot draws numbers over time, as SVG or PNG. The console draws the shapes itself, so that
// they fit its pages. It is pure: a chart is a value, and the same chart gives the same bytes.
package plot

import (
	"math"
	"slices"
	"time"
)

// A Kind is how a layer is drawn.
type Kind int

// The kinds of layers.
const (
	// Stack is an area on top of the stacks before it.
	Stack Kind = iota
	// Line is a line of steps, Dashed a dashed one.
	Line
	Dashed
	// Bars are drawn from 0, in front of each other.
	Bars
	// Band is the area between two values.
	Band
)

// A Color is what a layer is about: each theme has a color for it.
type Color string

// The colors of layers.
const (
	Running     Color = "running"
	Resuming    Color = "resuming"
	Hibernating Color = "hibernating"
	Installing  Color = "installing"
	Claimed     Color = "claimed"
	Other       Color = "other"
	Wanted      Color = "wanted"
	Claims      Color = "claims"
	Waiting     Color = "waiting"
	Expected    Color = "expected"
	Range       Color = "range"
)

// A Layer is one row of numbers, one for each step of time.
type Layer struct {
	Name  string
	Kind  Kind
	Color Color
	// Values are NaN where nothing is known. Those of a Band are its upper limits, and Low are the lower ones.
	Values, Low []float64
}

// A Panel has layers with the same unit.
type Panel struct {
	Title  string
	Layers []Layer
}

// Axis is the times of all panels of a chart.
type Axis struct {
	Begin time.Time
	Step  time.Duration
	Steps int
	// Zone is the time zone of the labels; nil means UTC.
	Zone *time.Location
}

// A Chart has panels below each other that share the times.
type Chart struct {
	Title string
	// Description says in a sentence what the chart shows, for those who do not see it.
	Description string
	Axis
	Panels []Panel
}

// maxSteps limits the work of drawing. Later steps are left out.
const maxSteps = 2000

// A Point has its origin at the top left.
type Point struct{ X, Y float64 }

// A Shape is a layer as polygons, or as lines if its kind is Line or Dashed.
type Shape struct {
	Kind  Kind
	Color Color
	Parts [][]Point
}

// HasBars reports whether a panel has bars. Lines of times would be taken for bars there.
func (p Panel) HasBars() bool {
	return slices.ContainsFunc(p.Layers, func(l Layer) bool { return l.Kind == Bars })
}

// most returns the largest value of a panel: stacks count together.
func (p Panel) most() float64 {
	most := 0.0
	stacked := p.stacks()
	for k, l := range p.Layers {
		for i, v := range l.Values {
			if l.Kind == Stack {
				v = stacked[k][i]
			}
			if v > most && !math.IsInf(v, 0) {
				most = v
			}
		}
	}
	return most
}

// stacks returns the upper limits of the stacked layers; nil for the others.
func (p Panel) stacks() [][]float64 {
	out := make([][]float64, len(p.Layers))
	var below []float64
	for k, l := range p.Layers {
		if l.Kind != Stack {
			continue
		}
		out[k] = make([]float64, len(l.Values))
		for i, v := range l.Values {
			out[k][i] = v
			if i < len(below) {
				out[k][i] += below[i]
			}
		}
		below = out[k]
	}
	return out
}

// Scale returns the values that the axis of a panel labels, the last of which is its upper end.
func (p Panel) Scale() []float64 {
	most := p.most()
	unit := math.Pow(10, math.Floor(math.Log10(math.Max(most, 1))))
	step := unit
	for _, s := range []float64{0.5, 1, 2, 5} {
		if step = s * unit; (step >= 1) && most <= 4*step {
			break
		}
	}
	step = math.Max(step, 1)
	out := []float64{0}
	for v := step; ; v += step {
		if out = append(out, v); v >= most || len(out) > 5 {
			return out
		}
	}
}

// Shapes returns the layers of a panel as shapes in a box.
func (p Panel) Shapes(width, height float64, steps int) []Shape {
	scale := p.Scale()
	d := drawing{width / float64(max(steps, 1)), height, scale[len(scale)-1], min(steps, maxSteps)}
	stacked := p.stacks()
	var below []float64
	var out []Shape
	for k, l := range p.Layers {
		s := Shape{Kind: l.Kind, Color: l.Color}
		switch l.Kind {
		case Stack:
			s.Parts = d.areas(stacked[k], below)
			below = stacked[k]
		case Band:
			s.Parts = d.areas(l.Values, l.Low)
		case Bars:
			s.Parts = d.bars(l.Values)
		default:
			s.Parts = d.lines(l.Values)
		}
		out = append(out, s)
	}
	return out
}

// drawing converts values to points.
type drawing struct {
	step, height, most float64
	steps              int
}

func (d drawing) x(i int) float64 { return float64(i) * d.step }

func (d drawing) y(v float64) float64 {
	return d.height * (1 - math.Min(math.Max(v/d.most, 0), 1))
}

// valueAt returns a value, and whether it is known; missing ones of a lower limit are 0.
func valueAt(values []float64, i int) float64 {
	if i < len(values) {
		return values[i]
	}
	return math.NaN()
}

// runs calls f for each stretch of steps whose values are known.
func (d drawing) runs(values []float64, f func(from, to int)) {
	for i := 0; i < d.steps; {
		if math.IsNaN(valueAt(values, i)) {
			i++
			continue
		}
		from := i
		for i < d.steps && !math.IsNaN(valueAt(values, i)) {
			i++
		}
		f(from, i)
	}
}

// path appends the steps of values from one step to another, without points on a straight line.
func (d drawing) path(out []Point, values []float64, from, to int) []Point {
	for i := from; i < to; i++ {
		y := d.height
		if v := valueAt(values, i); !math.IsNaN(v) {
			y = d.y(v)
		}
		if i == from || out[len(out)-1].Y != y {
			out = append(out, Point{d.x(i), y}, Point{d.x(i + 1), y})
			continue
		}
		out[len(out)-1].X = d.x(i + 1)
	}
	return out
}

func (d drawing) lines(values []float64) (out [][]Point) {
	d.runs(values, func(from, to int) { out = append(out, d.path(nil, values, from, to)) })
	return out
}

func (d drawing) areas(upper, lower []float64) (out [][]Point) {
	d.runs(upper, func(from, to int) {
		points := d.path(nil, upper, from, to)
		back := d.path(nil, lower, from, to)
		for i := len(back) - 1; i >= 0; i-- {
			points = append(points, back[i])
		}
		if hasArea(points) {
			out = append(out, points)
		}
	})
	return out
}

// hasArea reports whether a polygon has points at different heights.
func hasArea(points []Point) bool {
	for _, p := range points {
		if p.Y != points[0].Y {
			return true
		}
	}
	return false
}

func (d drawing) bars(values []float64) (out [][]Point) {
	const gap = 0.1 // of a step, on each side
	for i := range d.steps {
		v := valueAt(values, i)
		if !(v > 0) {
			continue
		}
		left, right := d.x(i)+gap*d.step, d.x(i+1)-gap*d.step
		out = append(out, []Point{{left, d.height}, {left, d.y(v)}, {right, d.y(v)}, {right, d.height}})
	}
	return out
}

// A Tick is a labeled time, at a share of the width.
type Tick struct {
	X    float64
	Text string
}

// Ticks returns labels of the axis, at most as many as given, at full hours, days or weeks.
func (a Axis) Ticks(most int) []Tick {
	zone := a.Zone
	if zone == nil {
		zone = time.UTC
	}
	span := a.Step * time.Duration(a.Steps)
	if span <= 0 || most < 1 {
		return nil
	}
	for _, c := range tickSteps {
		if int(span/c.every) <= most {
			return a.ticksEvery(c.every, c.format, zone)
		}
	}
	var out []Tick
	for n := range most {
		x := float64(n) / float64(most)
		out = append(out, Tick{x, a.Begin.Add(time.Duration(x * float64(span))).In(zone).Format("2 Jan 2006")})
	}
	return out
}

const day = 24 * time.Hour

var tickSteps = []struct {
	every  time.Duration
	format string
}{
	{time.Hour, "15:04"},
	{3 * time.Hour, "15:04"},
	{6 * time.Hour, "15:04"},
	{12 * time.Hour, "15:04"},
	{day, "Mon 2"},
	{2 * day, "Mon 2"},
	{7 * day, "2 Jan"},
	{14 * day, "2 Jan"},
}

const noonHour = 12

// ticksEvery returns the times at which a clock in the zone shows a multiple of a duration since midnight, or
// a multiple of days. A time that the clock skips has no tick, and midnight has one at the first time of the day.
func (a Axis) ticksEvery(every time.Duration, format string, zone *time.Location) []Tick {
	var out []Tick
	span := a.Step * time.Duration(a.Steps)
	local := a.Begin.In(zone)
	days, hours := max(int(every/day), 1), int(every/time.Hour)
	for n := 0; n <= int(span/day)+days; n += days {
		for h := 0; h < int(day/time.Hour); h += hours {
			at := time.Date(local.Year(), local.Month(), local.Day()+n, h, 0, 0, 0, zone)
			switch {
			case at.Hour() == h:
			case h > 0:
				continue
			case at.Hour() > noonHour: // the last hour of the day before
				at = at.Add(time.Hour)
			}
			if x := float64(at.Sub(a.Begin)) / float64(span); x >= 0 && x < 1 {
				out = append(out, Tick{x, at.Format(format)})
			}
		}
	}
	return out
}
