package page

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/explain/humanize"
	"hotspare.io/hotspare/internal/explain/poolcharts"
	"hotspare.io/hotspare/internal/plot"
	"hotspare.io/hotspare/internal/sizing"
	"hotspare.io/hotspare/internal/sizing/record"
	"hotspare.io/hotspare/internal/sizing/report"
)

// A Span is the time that charts show.
type Span struct {
	// Word is in addresses, Label on the page.
	Word, Label string
	length      time.Duration
	step        time.Duration
	// Current is set on the span that the page shows.
	Current bool
}

// spans lists the spans. The first is the default.
var spans = []Span{
	{Word: "day", Label: "Last day", length: 24 * time.Hour, step: record.QuarterLength},
	{Word: "week", Label: "Last week", length: 7 * 24 * time.Hour, step: time.Hour},
}

// A History is what a pool has done, as figures and charts.
type History struct {
	// Note says why there is no history, and Remedy is a command that changes that; empty if there is one.
	Note, Remedy string
	Spans        []Span
	Figures      []Figure
	Charts       []ChartView
	// Zone is the time zone of the charts, Until when the record was saved last.
	Zone  string
	Until Moment
}

// A Figure is a number with its label.
type Figure struct{ Label, N, Small, Sub string }

// HistoryOptions are what a history depends on besides the record.
type HistoryOptions struct {
	// Word selects the span; anything but a word of one selects the default.
	Word   string
	Prices sizing.Prices
	// Estimate is what hotspare has estimated for a policy without prices; nil for one that has some. If it has prices,
	// they are Prices.
	Estimate *v1alpha1.EstimatedPrices
	Promised float64
	Zone     *time.Location
}

// NewHistory describes what a record says about the last day or week.
func NewHistory(r *record.Record, o HistoryOptions, now time.Time) History {
	span := spans[0]
	for _, s := range spans {
		if s.Word == o.Word {
			span = s
		}
	}
	out := History{Zone: o.Zone.String(), Until: PastMoment(r.Until, now)}
	for _, s := range spans {
		s.Current = s.Word == span.Word
		out.Spans = append(out.Spans, s)
	}
	// The last step ends with the record, so that no chart ends with a gap. The figures are of the same time.
	to := r.Until
	from := to.Add(-span.length).Truncate(span.step)
	out.Figures = historyFigures(r, report.New(r, report.Options{From: from, To: to, Prices: o.Prices, Promised: o.Promised}), o, now)
	points := report.NewPoints(r, from, to, span.step, o.Zone)
	axis := plot.Axis{Step: span.step, Steps: len(points), Zone: o.Zone}
	if len(points) > 0 {
		axis.Begin = points[0].At
	}
	for _, c := range poolcharts.New(points, o.Zone) {
		out.Charts = append(out.Charts, newChartView(c, axis))
	}
	return out
}

// historyFigures returns the numbers above the charts.
func historyFigures(r *record.Record, rep report.Report, o HistoryOptions, now time.Time) []Figure {
	c := rep.Claims
	served := Figure{Label: "Served at once", N: "–", Sub: humanize.FormatCount(c.Total, "claim")}
	if c.Served+c.Unserved > 0 {
		served.N = poolcharts.FormatShare(c.AtOnceShare)
		served.Sub += fmt.Sprintf(", waits: median %s, p90 %s, p99 %s", poolcharts.FormatWait(c.P50), poolcharts.FormatWait(c.P90), poolcharts.FormatWait(c.P99))
	}
	idle := Figure{Label: "Ran idle", N: formatHours(rep.Hours.RunningIdle), Small: "hours", Sub: formatHours(rep.Hours.Hibernating) + " hibernating"}
	out := []Figure{served, idle}
	return append(out, monthFigures(report.NewMonth(&r.Details, o.Prices, now), o.Estimate)...)
}

// monthFigures returns what a month has cost, and what was saved. If prices were estimated, each amount says so.
func monthFigures(m report.Month, estimate *v1alpha1.EstimatedPrices) []Figure {
	hours := fmt.Sprintf("%s running, %s hibernating cluster-hours", formatHours(m.RunningHours), formatHours(m.HibernatingHours))
	if m.Costs == nil {
		return []Figure{{
			Label: "This month", N: formatHours(m.RunningHours), Small: "running cluster-hours",
			Sub: formatHours(m.HibernatingHours) + " hibernating; " + describeNoPrices(estimate),
		}}
	}
	unit := ""
	if estimate != nil {
		unit = estimate.Currency + " (estimated)"
		hours += "; prices: " + estimate.Basis
	}
	out := []Figure{
		{Label: "Cost this month", N: poolcharts.FormatMoney(m.Costs.Total), Small: unit, Sub: hours},
		{Label: "Saved by hibernating", N: poolcharts.FormatMoney(m.Costs.SavedByHibernating), Small: unit, Sub: "this month, compared with running all clusters"},
	}
	if m.ComparedSince.IsZero() {
		return out
	}
	if saved := m.Costs.SavedByPolicy; math.Abs(saved) >= 0.005 {
		out = append(out, Figure{
			Label: "Saved by the policy", N: poolcharts.FormatMoney(saved), Small: unit, Sub: "this month, compared with the counts that a person has chosen",
		})
	}
	could := Figure{Label: "Recommended counts would save", N: poolcharts.FormatMoney(m.Costs.CouldSave), Small: unit, Sub: "this month, compared with the counts of the pool"}
	if m.Costs.CouldSave < -0.005 {
		could.Label, could.N, could.Small = "Recommended counts would cost", poolcharts.FormatMoney(-m.Costs.CouldSave), strings.TrimSpace(unit+" more")
	}
	return append(out, could)
}

// describeNoPrices says how to get costs, and why hotspare has not estimated prices if it has tried to.
func describeNoPrices(estimate *v1alpha1.EstimatedPrices) string {
	const text = "set spec.prices of the PoolPolicy to see costs"
	if estimate == nil {
		return text
	}
	return text + "; " + estimate.Basis
}

func formatHours(h float64) string {
	if h >= 10 {
		return strconv.FormatFloat(h, 'f', 0, 64)
	}
	return plot.FormatValue(h)
}

// A ChartView is a chart as the template draws it: shapes in a box that is as wide as the page, and texts that keep
// their size.
type ChartView struct {
	poolcharts.Chart
	// Shapes are in a box of BoxWidth × BoxHeight.
	Shapes []ShapeView
	Legend []LegendView
	// Lines are the values of the axis, with their height in the drawing.
	Lines []AxisLine
	Times []AxisTime
}

// The box of shapes, and where it is in the drawing. The template has the same numbers.
const (
	BoxWidth  = 1000
	BoxHeight = 140
	boxTop    = 14
	// maxTimes is how many times fit below a chart. On a phone the style sheet leaves out every second one.
	maxTimes = 8
)

// A ShapeView is a path with its class.
type ShapeView struct{ Class, Path string }

// A LegendView is the name of a layer with its class.
type LegendView struct {
	Name, Class string
	// Line is set if the layer is a line.
	Line bool
}

// An AxisLine is a value with its height in the drawing and in the box.
type AxisLine struct {
	Text     string
	Y, InBox float64
}

// An AxisTime is a time with its position in percent.
type AxisTime struct {
	Text, Anchor string
	X            float64
	// Odd is set on every second time: on a phone there is no room for it.
	Odd bool
	// InBox is the position in the box.
	InBox float64
}

func newChartView(c poolcharts.Chart, axis plot.Axis) ChartView {
	out := ChartView{Chart: c}
	for _, s := range c.Shapes(BoxWidth, BoxHeight, axis.Steps) {
		isLine := s.Kind == plot.Line || s.Kind == plot.Dashed
		out.Shapes = append(out.Shapes, ShapeView{layerClass(s.Kind, s.Color), plot.PathData(s.Parts, !isLine)})
	}
	for _, l := range c.Layers {
		out.Legend = append(out.Legend, LegendView{l.Name, layerClass(l.Kind, l.Color), l.Kind == plot.Line || l.Kind == plot.Dashed})
	}
	scale := c.Scale()
	for _, v := range scale {
		y := BoxHeight * (1 - v/scale[len(scale)-1])
		out.Lines = append(out.Lines, AxisLine{Text: plot.FormatValue(v), Y: boxTop + y - 3, InBox: y})
	}
	for i, t := range axis.Ticks(maxTimes) {
		one := AxisTime{Text: t.Text, Anchor: "middle", X: math.Round(1000*t.X) / 10, InBox: math.Round(BoxWidth * t.X), Odd: i%2 == 1}
		switch {
		case t.X < 0.03:
			one.Anchor = "start"
		case t.X > 0.97:
			one.Anchor = "end"
		}
		out.Times = append(out.Times, one)
	}
	return out
}

func layerClass(k plot.Kind, c plot.Color) string {
	switch k {
	case plot.Line:
		return "line " + string(c)
	case plot.Dashed:
		return "line dashed " + string(c)
	default:
		return string(c)
	}
}

// MonthOverview sums up what all pools with a policy have cost in this month. Amounts of several currencies are listed, not
// added.
type MonthOverview struct {
	// Pools is the number of pools with a policy, Priced how many of them have prices, and Estimated how many have
	// estimated ones.
	Pools, Priced, Estimated                   int
	Cost, SavedByHibernating, Saved, CouldSave string
	RunningHours, HibernatingHours             string
}

// amounts are sums of money by currency; the currency of prices that a person has set is not known, and empty.
type amounts map[string]float64

// String returns the amounts with their currencies, or without if there is only one.
func (a amounts) String() string {
	var words []string
	for _, currency := range slices.Sorted(maps.Keys(a)) {
		text := poolcharts.FormatMoney(a[currency])
		switch {
		case len(a) == 1:
		case currency == "":
			text += " by your own prices"
		default:
			text += " " + currency
		}
		words = append(words, text)
	}
	return strings.Join(words, ", ")
}

// formatIfAny returns the amounts as text; empty if none of them is a cent.
func (a amounts) formatIfAny() string {
	for _, n := range a {
		if n >= 0.005 {
			return a.String()
		}
	}
	return ""
}

// NewMonthOverview sums up the months in the status of policies; nil if there are none of this month.
func NewMonthOverview(policies []v1alpha1.PoolPolicy, now time.Time) *MonthOverview {
	out := &MonthOverview{}
	var running, asleep float64
	cost, hibernating, saved, couldSave := amounts{}, amounts{}, amounts{}, amounts{}
	for i := range policies {
		m := policies[i].Status.Month
		if m == nil || m.Month != now.UTC().Format("2006-01") {
			continue
		}
		out.Pools++
		running += parseAmount(m.RunningHours)
		asleep += parseAmount(m.HibernatingHours)
		if m.Cost == "" {
			continue
		}
		out.Priced++
		currency := ""
		if e := policies[i].Status.EstimatedPrices; e != nil {
			out.Estimated++
			currency = e.Currency
		}
		cost[currency] += parseAmount(m.Cost)
		hibernating[currency] += parseAmount(m.SavedByHibernating)
		saved[currency] += parseAmount(m.SavedByPolicy)
		couldSave[currency] += max(parseAmount(m.CouldSave), 0)
	}
	if out.Pools == 0 {
		return nil
	}
	out.Cost, out.SavedByHibernating = cost.String(), hibernating.String()
	out.RunningHours, out.HibernatingHours = formatHours(running), formatHours(asleep)
	out.Saved, out.CouldSave = saved.formatIfAny(), couldSave.formatIfAny()
	return out
}

// EstimateNote says which of the costs are estimated; empty if none are.
func (m MonthOverview) EstimateNote() string {
	switch m.Estimated {
	case 0:
		return ""
	case m.Priced:
		return "estimated"
	default:
		return fmt.Sprintf("estimated for %d of %s", m.Estimated, humanize.FormatCount(m.Priced, "pool"))
	}
}

// parseAmount returns a number of a status; 0 if it is none.
func parseAmount(text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}
