package runtimesupervisor

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// rig is a supervisor of a shell script, whose clock the test steps.
type rig struct {
	t       *testing.T
	clock   *clocktesting.FakeClock
	started chan struct{}
	reports chan string
	printed strings.Builder
	stop    func() error
}

func newRig(t *testing.T, script string) *rig {
	t.Helper()
	r := &rig{t: t, clock: clocktesting.NewFakeClock(time.Unix(0, 0)), started: make(chan struct{}), reports: make(chan string)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	s := Supervisor{
		Name: "containerd",
		Command: func() *exec.Cmd {
			select {
			case r.started <- struct{}{}:
			case <-ctx.Done():
			}
			return exec.CommandContext(t.Context(), "sh", "-c", script)
		},
		Output: &r.printed,
		Report: func(problem string) {
			select {
			case r.reports <- problem:
			case <-ctx.Done():
			}
		},
		Clock: r.clock,
	}
	go func() { done <- s.Run(ctx) }()
	r.stop = func() error { cancel(); return <-done }
	return r
}

// awaitTimer waits until the supervisor waits for its clock.
func (r *rig) awaitTimer() {
	for !r.clock.HasWaiters() && r.t.Context().Err() == nil {
	}
}

func TestARuntimeThatEndsIsStartedAgainAfterADelayThatGrows(t *testing.T) {
	r := newRig(t, `echo 'time="2026-11-21T12:00:00Z" level=fatal msg="no such plugin"'; exit 3`)
	for _, delay := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		<-r.started
		if got, want := <-r.reports, `containerd ended (exit status 3): level=fatal msg="no such plugin"`; got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
		r.awaitTimer()
		r.clock.Step(delay*time.Second - time.Millisecond)
		if !r.clock.HasWaiters() {
			t.Fatalf("it starts again before %d s", delay)
		}
		r.clock.Step(time.Millisecond)
	}
	<-r.started
	<-r.reports
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	if got := strings.Count(r.printed.String(), "no such plugin"); got != 8 {
		t.Errorf("its output was passed on %d times, want 8", got)
	}
}

func TestARuntimeThatHasRunForAWhileHasNoProblem(t *testing.T) {
	r := newRig(t, "exit 1")
	<-r.started
	if problem := <-r.reports; problem != "containerd ended (exit status 1): it printed nothing" {
		t.Fatalf("the problem is %q", problem)
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}

	r = newRig(t, "exec sleep 600")
	<-r.started
	r.awaitTimer()
	r.clock.Step(settledAfter)
	if problem := <-r.reports; problem != "" {
		t.Errorf("the problem is %q", problem)
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
}

func TestAfterARuntimeHasRunForAWhileItsDelayIsShortAgain(t *testing.T) {
	ends := filepath.Join(t.TempDir(), "ends")
	r := newRig(t, "until test -e "+ends+"; do sleep 0.01; done; exit 1")
	write := func() {
		t.Helper()
		if err := os.WriteFile(ends, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write()
	for _, delay := range []time.Duration{1, 2, 4} {
		<-r.started
		<-r.reports
		r.awaitTimer()
		if delay == 4 {
			if err := os.Remove(ends); err != nil {
				t.Fatal(err)
			}
		}
		r.clock.Step(delay * time.Second)
	}
	<-r.started
	r.awaitTimer()
	r.clock.Step(settledAfter)
	if problem := <-r.reports; problem != "" {
		t.Fatalf("the problem is %q", problem)
	}
	write()
	<-r.reports
	r.awaitTimer()
	r.clock.Step(minDelay)
	<-r.started
	<-r.reports
	if err := r.stop(); err != nil {
		t.Error(err)
	}
}

func TestARuntimeThatCannotBeStartedIsAnError(t *testing.T) {
	err := Supervisor{
		Name: "containerd", Command: func() *exec.Cmd { return exec.CommandContext(t.Context(), "/no/such/program") },
		Output: &strings.Builder{}, Report: func(string) {}, Clock: clocktesting.NewFakeClock(time.Unix(0, 0)),
	}.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "starting containerd: ") {
		t.Errorf("got %v", err)
	}
}

func TestTheLastLine(t *testing.T) {
	for name, c := range map[string]struct {
		writes []string
		want   string
	}{
		"nothing":                 {nil, "it printed nothing"},
		"only blanks":             {[]string{"\n", " \n\n"}, "it printed nothing"},
		"in parts":                {[]string{"first\nsec", "ond\n"}, "second"},
		"without an end":          {[]string{"first\nsecond"}, "second"},
		"with control characters": {[]string{"\x1b[31mred\x00\n"}, " [31mred "},
		"a long one":              {[]string{strings.Repeat("a", 5000), strings.Repeat("b", 200), strings.Repeat("c", 100) + "\n"}, strings.Repeat("b", 200) + strings.Repeat("c", 100)},
		"a line of a log":         {[]string{"time=\"2026-11-21T12:00:00.5Z\" level=error msg=x\n"}, "level=error msg=x"},
		"half a character":        {[]string{strings.Repeat("é", 200) + "x"}, strings.Repeat("é", 149) + "x"},
	} {
		t.Run(name, func(t *testing.T) {
			var to strings.Builder
			l := &lastLine{to: &to}
			for _, text := range c.writes {
				if n, err := l.Write([]byte(text)); n != len(text) || err != nil {
					t.Errorf("%d, %v", n, err)
				}
			}
			if got := l.String(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if to.String() != strings.Join(c.writes, "") {
				t.Errorf("%q was passed on", to.String())
			}
		})
	}
}
