package simulate

import (
	"fmt"
	"time"

	"hotspare.io/hotspare/internal/cli/base"
)

const (
	// progressDelay is how long a simulation runs before it shows its progress.
	progressDelay = 3 * time.Second
	// progressInterval is the number of simulated minutes between two looks at the clock.
	progressInterval = 1000
)

// progress shows how far a simulation is that takes long. Its zero value must not be used.
type progress struct {
	app     *base.App
	since   time.Time
	step    string
	minutes int
	// view is nil until the simulation takes long.
	view *base.ProgressView
}

func newProgress(app *base.App) *progress { return &progress{app: app, since: app.Clock.Now()} }

// beginStep begins a step, such as the replay of a policy.
func (p *progress) beginStep(step string) {
	p.step = step
	if p.view != nil {
		p.view.ShowState(step)
	}
}

// noteTime records that a replay has come to a time of the trace. Only a terminal shows the time.
func (p *progress) noteTime(at time.Time) {
	if p.minutes++; p.minutes%progressInterval != 0 || p.app.Clock.Since(p.since) < progressDelay {
		return
	}
	if p.view == nil {
		p.view = p.app.StartProgressView("simulating")
	}
	if p.app.IsTerminal(p.app.Stderr) {
		p.view.ShowState(fmt.Sprintf("%s, %s", p.step, at.Format(time.DateOnly)))
		return
	}
	p.view.ShowState(p.step)
}

// closeView removes the progress from the terminal.
func (p *progress) closeView() {
	if p.view != nil {
		p.view.Close()
	}
}
