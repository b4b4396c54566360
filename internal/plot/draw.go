package plot

import (
	"strconv"
	"unicode/utf8"
)

// The layout of a file.
const (
	fileWidth   = 960.0
	titleHeight = 44.0
	headHeight  = 42.0
	plotHeight  = 170.0
	panelHeight = headHeight + plotHeight + 14
	axisHeight  = 30.0
	plotLeft    = 52.0
	plotRight   = 944.0
	plotWidth   = plotRight - plotLeft
	textSize    = 12.0
	titleSize   = 16.0
	// letterWidth is about the width of a letter, in text sizes.
	letterWidth = 0.53
	// tickHeight is how far the line of a time reaches below its panel.
	tickHeight = 4.0
	// maxTicks is how many times have labels.
	maxTicks = 9
)

// Colors of the frame.
const (
	background Color = "background"
	gridLine   Color = "grid"
	words      Color = "words"
)

// An anchor is which part of a text is at its point.
type anchor int

const (
	start anchor = iota
	middle
	end
)

// A canvas draws shapes: on SVG, or on pixels.
type canvas interface {
	polygons(c Color, parts [][]Point)
	// line draws horizontal and vertical lines.
	line(c Color, points []Point, width float64, dashed bool)
	text(at Point, a anchor, size float64, bold bool, text string)
}

func (c Chart) height() float64 {
	return titleHeight + float64(len(c.Panels))*panelHeight + axisHeight
}

// draw draws the chart.
func (c Chart) draw(on canvas) {
	on.polygons(background, box(0, 0, fileWidth, c.height()))
	on.text(Point{plotLeft, 28}, start, titleSize, true, c.Title)
	ticks := c.Ticks(maxTicks)
	for i, p := range c.Panels {
		c.drawPanel(on, p, titleHeight+float64(i)*panelHeight, ticks)
	}
	bottom := c.height() - axisHeight + 4
	for _, t := range ticks {
		at := Point{plotLeft + t.X*plotWidth, bottom}
		a := middle
		if t.X < 0.04 {
			a = start
		} else if t.X > 0.96 {
			a = end
		}
		on.text(at, a, textSize, false, t.Text)
	}
}

func (c Chart) drawPanel(on canvas, p Panel, top float64, ticks []Tick) {
	on.text(Point{plotLeft, top + 14}, start, textSize+1, true, p.Title)
	drawLegend(on, p, top+32)
	top += headHeight
	scale := p.Scale()
	for _, v := range scale {
		y := top + plotHeight*(1-v/scale[len(scale)-1])
		on.line(gridLine, []Point{{plotLeft, y}, {plotRight, y}}, 1, false)
		on.text(Point{plotLeft - 6, y + 4}, end, textSize, false, FormatValue(v))
	}
	for _, t := range ticks {
		x, from := plotLeft+t.X*plotWidth, top
		if p.HasBars() {
			from = top + plotHeight
		}
		on.line(gridLine, []Point{{x, from}, {x, top + plotHeight + tickHeight}}, 1, false)
	}
	for _, s := range p.Shapes(plotWidth, plotHeight, c.Steps) {
		parts := moveParts(s.Parts, plotLeft, top)
		if s.Kind != Line && s.Kind != Dashed {
			on.polygons(s.Color, parts)
			continue
		}
		for _, part := range parts {
			on.line(s.Color, part, 2, s.Kind == Dashed)
		}
	}
}

func moveParts(parts [][]Point, x, y float64) [][]Point {
	out := make([][]Point, len(parts))
	for i, part := range parts {
		for _, at := range part {
			out[i] = append(out[i], Point{at.X + x, at.Y + y})
		}
	}
	return out
}

// drawLegend draws the names of the layers in a row.
func drawLegend(on canvas, p Panel, y float64) {
	x := plotLeft
	for _, l := range p.Layers {
		if l.Kind == Line || l.Kind == Dashed {
			on.line(l.Color, []Point{{x, y - 4}, {x + 16, y - 4}}, 2, l.Kind == Dashed)
		} else {
			on.polygons(l.Color, box(x, y-10, 12, 12))
		}
		on.text(Point{x + 20, y}, start, textSize, false, l.Name)
		x += 20 + letterWidth*textSize*float64(utf8.RuneCountInString(l.Name)) + 22
	}
}

func box(x, y, width, height float64) [][]Point {
	return [][]Point{{{x, y}, {x + width, y}, {x + width, y + height}, {x, y + height}}}
}

// FormatValue writes a value of an axis or of a table: with one digit after the point, unless it is whole.
func FormatValue(v float64) string {
	text := strconv.FormatFloat(v, 'f', 1, 64)
	if n := len(text); n > 2 && text[n-2:] == ".0" {
		return text[:n-2]
	}
	return text
}
