package plot

import (
	"fmt"
	"html"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// SVG returns the chart as an SVG file that follows the theme of its reader, light or dark.
func (c Chart) SVG() []byte {
	b := &svgCanvas{}
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %s %s" role="img" aria-labelledby="title desc">`+"\n", number(fileWidth), number(c.height()))
	fmt.Fprintf(b, "<title id=\"title\">%s</title>\n<desc id=\"desc\">%s</desc>\n<style>%s</style>\n", html.EscapeString(c.Title), html.EscapeString(c.Description), style())
	c.draw(b)
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

// style returns the colors of both themes.
func style() string {
	var b strings.Builder
	b.WriteString(":root { color-scheme: light dark }\ntext { font-family: system-ui, sans-serif }\npath { stroke: none }\npath.line { fill: none }\n")
	for _, theme := range []struct {
		begin, end string
		colors     map[Color]rgb
	}{{"", "", light}, {"@media (prefers-color-scheme: dark) {\n", "}\n", dark}} {
		b.WriteString(theme.begin)
		for _, c := range slices.Sorted(maps.Keys(theme.colors)) {
			fmt.Fprintf(&b, ".%s { fill: %s }\n.line.%s { stroke: %s; fill: none }\n", c, theme.colors[c], c, theme.colors[c])
		}
		b.WriteString(theme.end)
	}
	return b.String()
}

// svgCanvas writes elements.
type svgCanvas struct{ strings.Builder }

func (s *svgCanvas) polygons(c Color, parts [][]Point) {
	fmt.Fprintf(s, `<path class="%s" d="%s"/>`+"\n", c, PathData(parts, true))
}

func (s *svgCanvas) line(c Color, points []Point, width float64, dashed bool) {
	dash := ""
	if dashed {
		dash = ` stroke-dasharray="6 4"`
	}
	fmt.Fprintf(s, `<path class="line %s" stroke-width="%s"%s d="%s"/>`+"\n", c, number(width), dash, PathData([][]Point{points}, false))
}

func (s *svgCanvas) text(at Point, a anchor, size float64, bold bool, text string) {
	weight := ""
	if bold {
		weight = ` font-weight="600"`
	}
	fmt.Fprintf(s, `<text class="%s" x="%s" y="%s" font-size="%s" text-anchor="%s"%s>%s</text>`+"\n",
		words, number(at.X), number(at.Y), number(size), []string{"start", "middle", "end"}[a], weight, html.EscapeString(text))
}

// PathData returns the d of an SVG path.
func PathData(parts [][]Point, closed bool) string {
	var b strings.Builder
	for _, part := range parts {
		for i, p := range part {
			switch {
			case i == 0:
				b.WriteString("M" + number(p.X) + " " + number(p.Y))
			case p.Y == part[i-1].Y:
				b.WriteString("H" + number(p.X))
			case p.X == part[i-1].X:
				b.WriteString("V" + number(p.Y))
			default:
				b.WriteString("L" + number(p.X) + " " + number(p.Y))
			}
		}
		if closed {
			b.WriteString("Z")
		}
	}
	return b.String()
}

// number writes a coordinate with at most two digits after the point.
func number(v float64) string {
	text := strconv.FormatFloat(v, 'f', 2, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}
