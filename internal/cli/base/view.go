package base

import (
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/clock"
)

// RedrawInterval is how often a screen is drawn anew though nothing changed: ages grow.
const RedrawInterval = time.Second

// ProgressView shows how waiting goes: on a terminal in one line that is kept up to date,
// elsewhere in a line for each change.
type ProgressView struct {
	W       io.Writer
	Clock   clock.WithTicker
	subject string
	since   time.Time
	last    string
	// ticker runs on a terminal only; ticks are when to redraw.
	ticker clock.Ticker
	ticks  <-chan time.Time
}

// StartProgressView begins a view of the subject. Close it.
func (a *App) StartProgressView(subject string) *ProgressView {
	v := &ProgressView{W: a.Stderr, Clock: a.Clock, subject: subject, since: a.Clock.Now()}
	if a.IsTerminal(a.Stderr) {
		v.ticker = a.Clock.NewTicker(time.Second)
		v.ticks = v.ticker.C()
	}
	return v
}

// ShowState says what is waited for now.
func (v *ProgressView) ShowState(state string) {
	if state == v.last {
		return
	}
	v.last = state
	if v.ticker == nil {
		fmt.Fprintf(v.W, "%s: %s\n", v.subject, state)
		return
	}
	v.redrawLine()
}

const EraseLine = "\r\x1b[K"

func (v *ProgressView) redrawLine() {
	fmt.Fprintf(v.W, "%s%s: %s, %s", EraseLine, v.subject, v.last, v.ElapsedTime())
}

// ElapsedTime is how long the view has been there.
func (v *ProgressView) ElapsedTime() string { return duration.HumanDuration(v.Clock.Since(v.since)) }

// Close takes the line off the terminal.
func (v *ProgressView) Close() {
	if v.ticker == nil {
		return
	}
	v.ticker.Stop()
	fmt.Fprint(v.W, EraseLine)
}
