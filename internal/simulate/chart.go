package simulate

import (
	"fmt"
	"html"
	"io"
	"strings"
	"time"
)

// A Chart is drawn as SVG: running clusters without a claim as an area, the wanted count as a line, and
// claims as bars below.
type Chart struct {
	Title, Description string
	Samples            []Sample
}

// The size of the chart and of its parts.
const (
	chartWidth, chartHeight = 960, 360
	chartLeft, chartRight   = 50, 950
	countTop, countBottom   = 50, 230
	claimTop, claimBottom   = 260, 320
)

const chartStyle = `
:root { color-scheme: light dark }
text { font: 12px system-ui, sans-serif; fill: #1f2328 }
.title { font-size: 15px; font-weight: 600 }
.back { fill: #ffffff }
.grid { stroke: #d1d9e0 }
.idle { fill: #54aeff; fill-opacity: 0.45 }
.wanted { fill: none; stroke: #0550ae; stroke-width: 1.5 }
.claims { fill: #57606a }
.waiting { fill: #cf222e }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc }
.back { fill: #0d1117 }
.grid { stroke: #3d444d }
.idle { fill: #1f6feb; fill-opacity: 0.55 }
.wanted { stroke: #a5d6ff }
.claims { fill: #9198a1 }
.waiting { fill: #ff7b72 }
}`

// WriteTo writes the chart. It needs at least two samples.
func (c Chart) WriteTo(w io.Writer) (int64, error) {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-labelledby="title desc">`+"\n", chartWidth, chartHeight)
	fmt.Fprintf(&b, "<title id=\"title\">%s</title>\n<desc id=\"desc\">%s</desc>\n<style>%s\n</style>\n", html.EscapeString(c.Title), html.EscapeString(c.Description), chartStyle)
	fmt.Fprintf(&b, `<rect class="back" width="%d" height="%d"/><text class="title" x="%d" y="24">%s</text>`+"\n", chartWidth, chartHeight, chartLeft, html.EscapeString(c.Title))
	if len(c.Samples) > 1 {
		c.drawCounts(&b)
		c.drawClaims(&b)
		c.drawTimes(&b)
	}
	b.WriteString("</svg>\n")
	n, err := io.WriteString(w, b.String())
	if err != nil {
		return int64(n), fmt.Errorf("writing the chart: %w", err)
	}
	return int64(n), nil
}

func (c Chart) x(i int) float64 {
	return chartLeft + (chartRight-chartLeft)*float64(i)/float64(len(c.Samples)-1)
}

// scale returns y for a value, between bottom at 0 and top at most.
func scale(value, most, top, bottom int) float64 {
	return float64(bottom) - float64(bottom-top)*float64(value)/float64(max(most, 1))
}

func (c Chart) drawCounts(b *strings.Builder) {
	most := 1
	for _, s := range c.Samples {
		most = max(most, s.Running, s.Wanted)
	}
	for _, v := range []int{0, (most + 1) / 2, most} {
		y := scale(v, most, countTop, countBottom)
		fmt.Fprintf(b, `<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/>`, chartLeft, chartRight, y, y)
		fmt.Fprintf(b, `<text x="%d" y="%.1f" text-anchor="end">%d</text>`+"\n", chartLeft-6, y+4, v)
	}
	fmt.Fprintf(b, `<path class="idle" d="M%d %d`, chartLeft, countBottom)
	c.drawSteps(b, func(s Sample) float64 { return scale(s.Running, most, countTop, countBottom) })
	fmt.Fprintf(b, "V%dZ\"/>\n<path class=\"wanted\" d=\"M%d %.1f", countBottom, chartLeft, scale(c.Samples[0].Wanted, most, countTop, countBottom))
	c.drawSteps(b, func(s Sample) float64 { return scale(s.Wanted, most, countTop, countBottom) })
	fmt.Fprintf(b, "\"/>\n<text x=\"%d\" y=\"44\">clusters running without a claim (area), and wanted (line)</text>\n", chartLeft)
}

// drawSteps continues a path with horizontal and vertical lines.
func (c Chart) drawSteps(b *strings.Builder, y func(Sample) float64) {
	last := -1.0
	for i, s := range c.Samples {
		if v := y(s); v != last {
			fmt.Fprintf(b, "H%.1fV%.1f", c.x(i), v)
			last = v
		}
	}
	fmt.Fprintf(b, "H%d", chartRight)
}

func (c Chart) drawClaims(b *strings.Builder) {
	most := 1
	for _, s := range c.Samples {
		most = max(most, s.Claims)
	}
	width := max(0.6*(chartRight-chartLeft)/float64(len(c.Samples)), 0.5)
	for i, s := range c.Samples {
		if s.Claims == 0 {
			continue
		}
		class := "claims"
		if s.Waiting > 0 {
			class = "waiting"
		}
		y := scale(s.Claims, most, claimTop, claimBottom)
		fmt.Fprintf(b, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`+"\n", class, c.x(i)-width, y, width, claimBottom-y)
	}
	fmt.Fprintf(b, `<text x="%d" y="%d">claims (red: claims wait)</text><text x="%d" y="%d" text-anchor="end">%d</text>`+"\n", chartLeft, claimTop-8, chartLeft-6, claimTop+8, most)
}

func (c Chart) drawTimes(b *strings.Builder) {
	format := time.DateOnly
	if c.Samples[len(c.Samples)-1].At.Sub(c.Samples[0].At) < 3*24*time.Hour {
		format = "01-02 15:04"
	}
	for n := range 5 {
		i := n * (len(c.Samples) - 1) / 4
		anchor := []string{"start", "middle", "middle", "middle", "end"}[n]
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="%s">%s</text>`+"\n", c.x(i), claimBottom+18, anchor, c.Samples[i].At.Format(format))
	}
}
