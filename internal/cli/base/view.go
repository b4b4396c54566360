package base

import (
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/clock"
)

// RedrawInterval is the time between redraws of an unchanged screen, which update the ages.
const RedrawInterval = time.Second

// ProgressView shows the progress of a wait: on a terminal as one line that it updates, elsewhere
// as one line for each change.
type ProgressView struct {
	W       io.Writer
	Clock   clock.WithTicker
	subject string
	since   time.Time
	last    string
	// ticker is set on a terminal only. Each tick redraws the line.
	ticker clock.Ticker
	ticks  <-chan time.Time
}

// StartProgressView starts a view of the subject. The caller must close it.
func (a *App) StartProgressView(subject string) *ProgressView {
	v := &ProgressView{W: a.Stderr, Clock: a.Clock, subject: subject, since: a.Clock.Now()}
	if a.IsTerminal(a.Stderr) {
		v.ticker = a.Clock.NewTicker(time.Second)
		v.ticks = v.ticker.C()
	}
	return v
}

// ShowState shows the current state of the subject.
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

// EraseLine is the terminal sequence that erases the current line.
const EraseLine = "\r\x1b[K"

func (v *ProgressView) redrawLine() {
	fmt.Fprintf(v.W, "%s%s: %s, %s", EraseLine, v.subject, v.last, v.ElapsedTime())
}

// ElapsedTime returns the time since the view was started.
func (v *ProgressView) ElapsedTime() string { return duration.HumanDuration(v.Clock.Since(v.since)) }

// Close erases the line from the terminal.
func (v *ProgressView) Close() {
	if v.ticker == nil {
		return
	}
	v.ticker.Stop()
	fmt.Fprint(v.W, EraseLine)
}
