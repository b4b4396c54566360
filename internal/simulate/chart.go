package simulate

import (
	"time"

	"hotspare.io/hotspare/internal/plot"
)

// NewChart returns a chart of the state of a pool that was replayed: running clusters without a claim as an
// area, the wanted count as a line, and claims as bars.
func NewChart(samples []Sample) plot.Chart {
	n := len(samples)
	running := plot.Layer{Name: "running without a claim", Kind: plot.Stack, Color: plot.Running, Values: make([]float64, n)}
	wanted := plot.Layer{Name: "wanted", Kind: plot.Line, Color: plot.Wanted, Values: make([]float64, n)}
	claims := plot.Layer{Name: "claims", Kind: plot.Bars, Color: plot.Claims, Values: make([]float64, n)}
	waiting := plot.Layer{Name: "that waited", Kind: plot.Bars, Color: plot.Waiting, Values: make([]float64, n)}
	for i, s := range samples {
		running.Values[i], wanted.Values[i] = float64(s.Running), float64(s.Wanted)
		claims.Values[i], waiting.Values[i] = float64(s.Claims), float64(s.Waited)
	}
	out := plot.Chart{Panels: []plot.Panel{
		{Title: "Clusters", Layers: []plot.Layer{running, wanted}},
		{Title: "Claims", Layers: []plot.Layer{claims, waiting}},
	}}
	if n > 1 {
		out.Axis = plot.Axis{Begin: samples[0].At, Step: samples[1].At.Sub(samples[0].At), Steps: n}
	} else {
		out.Axis = plot.Axis{Step: time.Second, Steps: n}
	}
	return out
}
