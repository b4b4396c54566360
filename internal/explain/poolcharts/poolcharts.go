// Package poolcharts turns the points of a pool's report into charts, with a table of the same numbers. The
// command line and the console show the same. It is pure.
package poolcharts

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"hotspare.io/hotspare/internal/explain/humanize"
	"hotspare.io/hotspare/internal/plot"
	"hotspare.io/hotspare/internal/sizing/record"
	"hotspare.io/hotspare/internal/sizing/report"
)

// A Chart is one panel with what it says in words, and as a table.
type Chart struct {
	plot.Panel
	// ID is a word that is unique among the charts of a pool.
	ID string
	// Summary says in a sentence what the chart shows.
	Summary string
	Table   Table
}

// A Table has a row for each time that the chart shows, but at most maxRows.
type Table struct {
	Head []string
	Rows [][]string
}

// maxRows limits the rows of a table: several points are then one row.
const maxRows = 24

// New returns the charts of a pool. Times of tables are in a zone.
func New(points []report.Point, zone *time.Location) []Chart {
	out := []Chart{newClusterChart(points), newClaimChart(points)}
	if c, isShown := newWaitChart(points); isShown {
		out = append(out, c)
	}
	if c, isShown := newForecastChart(points); isShown {
		out = append(out, c)
	}
	for i := range out {
		out[i].Table = newTable(out[i].Panel, points, zone)
	}
	return out
}

// stateColors has the states that a chart of unclaimed clusters shows, from the bottom.
var stateColors = []struct {
	state record.State
	name  string
	color plot.Color
}{
	{record.Running, "running idle", plot.Running},
	{record.Resuming, "resuming", plot.Resuming},
	{record.Hibernating, "hibernating", plot.Hibernating},
	{record.Installing, "installing", plot.Installing},
	{record.Other, "other", plot.Other},
}

func newClusterChart(points []report.Point) Chart {
	c := Chart{ID: "clusters", Panel: plot.Panel{Title: "Clusters without a claim, by state"}}
	idle, total, n := 0.0, 0.0, 0
	for _, s := range stateColors {
		l := plot.Layer{Name: s.name, Kind: plot.Stack, Color: s.color, Values: make([]float64, len(points))}
		occurs := false
		for i, p := range points {
			l.Values[i] = math.NaN()
			if p.Known {
				l.Values[i] = p.Clusters[s.state]
				occurs = occurs || p.Clusters[s.state] > 0
				total += p.Clusters[s.state]
			}
		}
		if occurs || s.state == record.Running || s.state == record.Hibernating {
			c.Layers = append(c.Layers, l)
		}
	}
	wanted := plot.Layer{Name: "recommended to run", Kind: plot.Dashed, Color: plot.Wanted, Values: make([]float64, len(points))}
	for i, p := range points {
		wanted.Values[i] = math.NaN()
		if p.Noted {
			wanted.Values[i] = float64(min(p.Recommended.Running, p.Recommended.Size))
		}
		if p.Known {
			idle += p.Clusters[record.Running]
			n++
		}
	}
	c.Layers = append(c.Layers, wanted)
	if n == 0 {
		c.Summary = "Nothing was recorded in this time."
		return c
	}
	c.Summary = fmt.Sprintf("On average %s clusters had no claim, and %s of them ran idle.", plot.FormatValue(total/float64(n)), plot.FormatValue(idle/float64(n)))
	return c
}

func newClaimChart(points []report.Point) Chart {
	c := Chart{ID: "claims", Panel: plot.Panel{Title: "Claims"}}
	all := plot.Layer{Name: "claims", Kind: plot.Bars, Color: plot.Claims, Values: make([]float64, len(points))}
	waited := plot.Layer{Name: "that waited", Kind: plot.Bars, Color: plot.Waiting, Values: make([]float64, len(points))}
	waiting := plot.Layer{Name: "waiting at the same time", Kind: plot.Line, Color: plot.Wanted, Values: make([]float64, len(points))}
	claims, known, late, most := 0, 0, 0, 0
	for i, p := range points {
		all.Values[i], waited.Values[i], waiting.Values[i] = float64(p.Claims), math.NaN(), math.NaN()
		claims += p.Claims
		if p.Known {
			waited.Values[i], waiting.Values[i] = float64(min(p.Waited, p.Claims)), float64(p.Waiting)
			known, late, most = known+min(p.Judged, p.Claims), late+p.Waited, max(most, p.Waiting)
		}
	}
	c.Layers = []plot.Layer{all, waited}
	c.Summary = humanize.FormatCount(claims, "claim")
	if known < claims {
		c.Summary += fmt.Sprintf(". The waits of %d are known", known)
	}
	c.Summary += fmt.Sprintf(", %d of them waited for a running cluster.", min(late, known))
	if most > 0 {
		c.Layers = append(c.Layers, waiting)
		c.Summary += fmt.Sprintf(" At most %d waited at the same time.", most)
	}
	return c
}

// newWaitChart is of the longest waits. It reports whether any claim has waited.
func newWaitChart(points []report.Point) (Chart, bool) {
	c := Chart{ID: "waits", Panel: plot.Panel{Title: "Longest wait, in minutes"}}
	l := plot.Layer{Name: "longest wait", Kind: plot.Bars, Color: plot.Waiting, Values: make([]float64, len(points))}
	longest := time.Duration(0)
	for i, p := range points {
		l.Values[i] = p.LongestWait.Minutes()
		longest = max(longest, p.LongestWait)
	}
	c.Layers = []plot.Layer{l}
	c.Summary = fmt.Sprintf("The longest wait of a claim that was served was %s.", FormatWait(longest.Seconds()))
	return c, longest > 0
}

// newForecastChart compares each forecast with what was seen. It reports whether there is any.
func newForecastChart(points []report.Point) (Chart, bool) {
	c := Chart{ID: "forecast", Panel: plot.Panel{Title: "Claims in the following hour"}}
	n := len(points)
	band := plot.Layer{Name: "expected in 9 of 10 hours", Kind: plot.Band, Color: plot.Range, Values: make([]float64, n), Low: make([]float64, n)}
	mean := plot.Layer{Name: "expected", Kind: plot.Line, Color: plot.Expected, Values: make([]float64, n)}
	seen := plot.Layer{Name: "seen", Kind: plot.Dashed, Color: plot.Wanted, Values: make([]float64, n)}
	forecasts, compared, within := 0, 0, 0
	for i, p := range points {
		band.Values[i], band.Low[i], mean.Values[i], seen.Values[i] = math.NaN(), math.NaN(), math.NaN(), math.NaN()
		if p.Compared {
			seen.Values[i] = float64(p.Seen)
		}
		if p.Forecast == nil {
			continue
		}
		forecasts++
		band.Values[i], band.Low[i], mean.Values[i] = float64(p.Forecast.High), float64(p.Forecast.Low), p.Forecast.Mean
		if p.Compared {
			compared++
			if p.Seen >= p.Forecast.Low && p.Seen <= p.Forecast.High {
				within++
			}
		}
	}
	c.Layers = []plot.Layer{band, mean, seen}
	if compared > 0 {
		c.Summary = fmt.Sprintf("%.0f%% of the hours had as many claims as the band of 90%% says.", 100*float64(within)/float64(compared))
	} else {
		c.Summary = "No hour that was forecast has ended yet."
	}
	return c, forecasts > 0
}

// newTable returns the numbers of a panel. If there are many points, a row has the average of some of them,
// and the sum or the largest one of bars.
func newTable(p plot.Panel, points []report.Point, zone *time.Location) Table {
	t := Table{Head: []string{"From"}}
	for _, l := range p.Layers {
		t.Head = append(t.Head, l.Name)
	}
	step := max((len(points)+maxRows-1)/maxRows, 1)
	for i := 0; i < len(points); i += step {
		row := []string{points[i].At.In(zone).Format("Mon 2 Jan 15:04")}
		until := min(i+step, len(points))
		for _, l := range p.Layers {
			switch {
			case l.Kind == plot.Band:
				row = append(row, formatBand(l, i, until))
			case l.Kind == plot.Bars && strings.HasPrefix(l.Name, "longest"):
				row = append(row, formatCell(largest(l.Values[i:until])))
			case l.Kind == plot.Bars:
				row = append(row, formatCell(sum(l.Values[i:until])))
			default:
				row = append(row, formatCell(average(l.Values[i:until])))
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// formatBand writes the average band of some points.
func formatBand(l plot.Layer, from, until int) string {
	high := average(l.Values[from:until])
	if math.IsNaN(high) {
		return "–"
	}
	return formatCell(average(l.Low[from:until])) + "–" + formatCell(high)
}

func formatCell(v float64) string {
	if math.IsNaN(v) {
		return "–"
	}
	return plot.FormatValue(v)
}

// sum returns the sum of the known values; NaN if there is none.
func sum(values []float64) float64 {
	total, known := 0.0, false
	for _, v := range values {
		if !math.IsNaN(v) {
			total, known = total+v, true
		}
	}
	if !known {
		return math.NaN()
	}
	return total
}

func largest(values []float64) float64 {
	most := 0.0
	for _, v := range values {
		most = math.Max(most, v)
	}
	return most
}

// average returns the average of the known values; NaN if there is none.
func average(values []float64) float64 {
	total, n := 0.0, 0
	for _, v := range values {
		if !math.IsNaN(v) {
			total += v
			n++
		}
	}
	return total / float64(n)
}

// FormatWait writes a wait in seconds, without the digits that say nothing: 4m40s, 2h5m.
func FormatWait(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second)).Round(time.Second)
	if d >= time.Hour {
		d = d.Round(time.Minute)
		return strings.TrimSuffix(d.String(), "0s")
	}
	return d.String()
}

// FormatMoney writes an amount in the currency of the prices.
func FormatMoney(v float64) string {
	if math.Abs(v) >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// FormatShare writes a share as a percentage, rounded down, so that it does not promise too much.
func FormatShare(share float64) string {
	return strconv.FormatFloat(math.Floor(share*1000+1e-9)/10, 'f', -1, 64) + "%"
}
