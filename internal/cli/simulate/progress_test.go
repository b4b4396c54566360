package simulate

import (
	"bytes"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"

	"hotspare.io/hotspare/internal/cli/base"
)

func TestASimulationThatTakesLongShowsItsProgress(t *testing.T) {
	now := testclock.NewFakeClock(time.Now())
	var out bytes.Buffer
	isTerminal := false
	a := base.NewApp(base.Options{Stderr: &out, Clock: now, IsTerminal: func(any) bool { return isTerminal }})
	replay := func(p *progress, day int) {
		for range progressInterval {
			p.noteTime(time.Date(2026, 3, day, 12, 0, 0, 0, time.UTC))
		}
	}
	p := newProgress(a)
	p.beginStep("auto")
	replay(p, 1)
	if out.Len() > 0 {
		t.Errorf("after no time, it prints %q", out.String())
	}
	now.Step(progressDelay)
	replay(p, 2)
	replay(p, 3)
	p.beginStep("static:3")
	replay(p, 1)
	p.closeView()
	if want := "simulating: auto\nsimulating: static:3\n"; out.String() != want {
		t.Errorf("it prints %q, want %q", out.String(), want)
	}
	out.Reset()
	isTerminal = true
	p = newProgress(a)
	p.beginStep("auto")
	now.Step(progressDelay)
	replay(p, 2)
	p.closeView()
	if want := base.EraseLine + "simulating: auto, 2026-03-02, 0s" + base.EraseLine; out.String() != want {
		t.Errorf("on a terminal, it prints %q, want %q", out.String(), want)
	}
}
