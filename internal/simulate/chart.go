package simulate

import (
	"time"

	"hotspare.io/hotspare/internal/chart"
)

// NewChart returns a chart of the state of a pool that was played: running clusters without a claim as an
// area, the wanted count as a line, and claims as bars.
func NewChart(samples []Sample) chart.Chart {
	n := len(samples)
	running := chart.Layer{Name: "running without a claim", Kind: chart.Stack, Color: chart.Running, Values: make([]float64, n)}
	wanted := chart.Layer{Name: "wanted", Kind: chart.Line, Color: chart.Wanted, Values: make([]float64, n)}
	claims := chart.Layer{Name: "claims", Kind: chart.Bars, Color: chart.Claims, Values: make([]float64, n)}
	waiting := chart.Layer{Name: "claims while others wait", Kind: chart.Bars, Color: chart.Waiting, Values: make([]float64, n)}
	for i, s := range samples {
		running.Values[i], wanted.Values[i], claims.Values[i] = float64(s.Running), float64(s.Wanted), float64(s.Claims)
		if s.Waiting > 0 {
			waiting.Values[i] = float64(s.Claims)
		}
	}
	out := chart.Chart{Panels: []chart.Panel{
		{Title: "Clusters", Layers: []chart.Layer{running, wanted}},
		{Title: "Claims", Layers: []chart.Layer{claims, waiting}},
	}}
	if n > 1 {
		out.Axis = chart.Axis{Begin: samples[0].At, Step: samples[1].At.Sub(samples[0].At), Steps: n}
	} else {
		out.Axis = chart.Axis{Step: time.Second, Steps: n}
	}
	return out
}
