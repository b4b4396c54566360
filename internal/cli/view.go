package cli

import (
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/clock"
)

// progressView shows how waiting goes: on a terminal in one line that is kept up to date,
// elsewhere in a line for each change.
type progressView struct {
	w       io.Writer
	clock   clock.WithTicker
	subject string
	since   time.Time
	last    string
	// ticker runs on a terminal only; ticks are when to redraw.
	ticker clock.Ticker
	ticks  <-chan time.Time
}

// startProgressView begins a view of the subject. Close it.
func (a *app) startProgressView(subject string) *progressView {
	v := &progressView{w: a.Stderr, clock: a.Clock, subject: subject, since: a.Clock.Now()}
	if a.IsTerminal(a.Stderr) {
		v.ticker = a.Clock.NewTicker(time.Second)
		v.ticks = v.ticker.C()
	}
	return v
}

// showState says what is waited for now.
func (v *progressView) showState(state string) {
	if state == v.last {
		return
	}
	v.last = state
	if v.ticker == nil {
		fmt.Fprintf(v.w, "%s: %s\n", v.subject, state)
		return
	}
	v.redrawLine()
}

const eraseLine = "\r\x1b[K"

func (v *progressView) redrawLine() {
	fmt.Fprintf(v.w, "%s%s: %s, %s", eraseLine, v.subject, v.last, v.elapsedTime())
}

// elapsedTime is how long the view has been there.
func (v *progressView) elapsedTime() string { return duration.HumanDuration(v.clock.Since(v.since)) }

// close takes the line off the terminal.
func (v *progressView) close() {
	if v.ticker == nil {
		return
	}
	v.ticker.Stop()
	fmt.Fprint(v.w, eraseLine)
}
