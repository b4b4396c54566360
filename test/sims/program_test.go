package sims

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// listener is a test that may fail, and records its output.
type listener struct {
	testing.TB
	said  strings.Builder
	later []func()
}

func (l *listener) Helper()                      {}
func (l *listener) Cleanup(do func())            { l.later = append(l.later, do) }
func (l *listener) Failed() bool                 { return l.said.Len() > 0 }
func (l *listener) Log(args ...any)              { fmt.Fprintln(&l.said, args...) }
func (l *listener) Errorf(text string, a ...any) { fmt.Fprintf(&l.said, text+"\n", a...) }
func (l *listener) Fatalf(text string, a ...any) { l.Errorf(text, a...); runtime.Goexit() }
func (l *listener) try(do func(tb testing.TB)) string {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do(l)
	}()
	<-done
	return l.said.String()
}

func shell(script string) *exec.Cmd { return exec.Command("/bin/sh", "-c", script) }

func TestAProgramAnswersAndEndsWithItsTest(t *testing.T) {
	var p *Program
	t.Run("it runs", func(t *testing.T) {
		p = startProgram(t, "", "echo", shell("while read -r line; do echo \"heard $line\"; done"))
		p.SendCommand(t, "a")
		if got := p.WaitForLine(t, time.Minute, "it has heard"); got != "heard a" {
			t.Errorf("got %q", got)
		}
	})
	if err := syscall.Kill(-p.group, 0); err == nil {
		t.Error("it still runs")
	}
}

func TestWhoWaitsInVainIsToldForWhat(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		want   []string
	}{
		"it is silent": {"echo hm >&2; exec sleep 120", []string{"waited for 2s, and in vain, until it listens", "what odd said:\nhm", "the end of own.log:\nlast words"}},
		"it has ended": {"echo hm >&2; exit 3", []string{"odd has ended, and it was waited until it listens", "what odd said:\nhm"}},
	} {
		t.Run(name, func(t *testing.T) {
			logs := t.TempDir()
			if err := os.WriteFile(filepath.Join(logs, "own.log"), []byte("last words\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			l := &listener{TB: t}
			var p *Program
			said := l.try(func(tb testing.TB) {
				tb.Helper()
				p = startProgram(tb, logs, "odd", shell(c.script))
				p.stopTimeout = 100 * time.Millisecond
				p.WaitForLine(tb, 2*time.Second, "it listens")
			})
			for _, want := range c.want {
				if !strings.Contains(said, want) {
					t.Errorf("%q is not in\n%s", want, said)
				}
			}
			l.later[0]()
		})
	}
}

// A program that does not end on its own is killed with its children: a living child keeps its
// output open, so that reading it would never end.
func TestWhatDoesNotEndIsKilled(t *testing.T) {
	l := &listener{TB: t}
	var p *Program
	l.try(func(tb testing.TB) {
		tb.Helper()
		p = startProgram(tb, "", "stubborn", shell("trap '' TERM; sleep 120 & echo up; wait; sleep 120"))
		p.WaitForLine(tb, time.Minute, "it is up")
	})
	p.stopTimeout = 10 * time.Millisecond
	l.later[0]()
	if said := l.said.String(); !strings.Contains(said, "stubborn did not end when its input did, and was killed") {
		t.Errorf("it is told:\n%s", said)
	}
}
