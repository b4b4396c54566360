// Package sims runs third-party programs alongside a test: cloud simulators from Debian, and
// foreign clients. packages.txt lists them, test/install installs them.
//
// No test waits for one of them forever: each wait has a deadline, and a test that times out
// reports what it waited for and the end of the program's output.
package sims

import (
	"bufio"
	"bytes"
	"context"
	"embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	// clientTimeout is how long a foreign client may take: awscli alone needs a second on an idle
	// computer.
	clientTimeout = 90 * time.Second
	// tailLength is how much of the end of each log is reported.
	tailLength = 4000
)

// Program is a process that reads commands, one per line, and answers in lines. It ends when its
// input is closed.
type Program struct {
	// Lines receives the lines that the program prints; it is closed with the program's output. Direct
	// readers need their own deadline.
	Lines chan string

	name  string
	logs  string
	in    io.WriteCloser
	group int
	ended chan struct{}
	err   error // how it ended, once it has ended
	// stopTimeout is how long the program may take to end after its input is closed.
	stopTimeout time.Duration

	mu     sync.Mutex
	stderr bytes.Buffer // its standard error
}

//go:embed *.py
var scripts embed.FS

// StartScript starts one of the scripts in this package for a test, with Debian's own Python, whose
// packages the script needs, and stops it with the test. logs is a folder for the script's logs, or
// "".
func StartScript(tb testing.TB, logs, script string, args ...string) *Program {
	tb.Helper()
	source, err := scripts.ReadFile(script)
	if err != nil {
		tb.Fatal(err)
	}
	path := filepath.Join(tb.TempDir(), script)
	if err := os.WriteFile(path, source, 0o600); err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command("/usr/bin/python3", append([]string{"-W", "ignore", path}, args...)...) //nolint:noctx // it ends with its input or its process group
	cmd.Env = append(cmd.Environ(), "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1")
	return startProgram(tb, logs, script, cmd)
}

func startProgram(tb testing.TB, logs, name string, cmd *exec.Cmd) *Program {
	tb.Helper()
	p := &Program{Lines: make(chan string, 1000), name: name, logs: logs, ended: make(chan struct{}), stopTimeout: 20 * time.Second}
	cmd.Stderr = p
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second // a child that inherited its standard error must not block the test
	var err error
	if p.in, err = cmd.StdinPipe(); err != nil {
		tb.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatalf("starting %s: %v", name, err)
	}
	p.group = cmd.Process.Pid
	go p.readOutput(cmd, out)
	tb.Cleanup(func() { p.stopAndCheck(tb) })
	return p
}

// readOutput reads the program's output until it ends.
func (p *Program) readOutput(cmd *exec.Cmd, out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		p.Lines <- lines.Text()
	}
	close(p.Lines)
	p.err = cmd.Wait()
	close(p.ended)
}

// Write records the program's standard error.
func (p *Program) Write(part []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.Write(part)
}

// ReadStderr returns what the program has written to its standard error.
func (p *Program) ReadStderr() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.String()
}

// SendCommand sends the program a command.
func (p *Program) SendCommand(tb testing.TB, line string) {
	tb.Helper()
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		tb.Fatalf("telling %s %s: %v\n%s", p.name, line, err, p.OutputTail())
	}
}

// WaitForLine returns the next line of the program. If there is none in time, it fails the test and
// reports what it waited for.
func (p *Program) WaitForLine(tb testing.TB, within time.Duration, what string) string {
	tb.Helper()
	select {
	case line, more := <-p.Lines:
		if !more {
			select {
			case <-p.ended: // now its output is complete
			case <-time.After(p.stopTimeout):
			}
			tb.Fatalf("%s has ended, and it was waited until %s\n%s", p.name, what, p.OutputTail())
		}
		return line
	case <-time.After(within):
		tb.Fatalf("waited for %s, and in vain, until %s\n%s", within, what, p.OutputTail())
	}
	return ""
}

// OutputTail returns the end of the program's output and of its logs.
func (p *Program) OutputTail() string {
	var b strings.Builder
	tell := func(name, text string) {
		if len(text) > tailLength {
			text = "…" + strings.ToValidUTF8(text[len(text)-tailLength:], "")
		}
		if text = strings.TrimSpace(text); text != "" {
			fmt.Fprintf(&b, "--- the end of %s:\n%s\n", name, text)
		}
	}
	tell("what "+p.name+" said", p.ReadStderr())
	if p.logs == "" {
		return b.String()
	}
	files, _ := filepath.Glob(filepath.Join(p.logs, "*.log")) // the pattern is valid
	for _, file := range files {
		if raw, err := os.ReadFile(file); err == nil {
			tell(filepath.Base(file), string(raw))
		}
	}
	return b.String()
}

// stopAndCheck stops the program, and if it does not end, kills its process group.
func (p *Program) stopAndCheck(tb testing.TB) {
	tb.Helper()
	_ = p.in.Close() // it may have ended
	lines, late := p.Lines, time.After(p.stopTimeout)
	for {
		select {
		case _, more := <-lines: // nothing else reads them any more
			if more {
				continue
			}
			lines = nil
		case <-late:
			_ = syscall.Kill(-p.group, syscall.SIGKILL) // it may have just ended
			tb.Errorf("%s did not end when its input did, and was killed after %s\n%s", p.name, p.stopTimeout, p.OutputTail())
			late = nil
		case <-p.ended:
			if p.err != nil {
				tb.Errorf("%s ended with %v", p.name, p.err)
			}
			_ = syscall.Kill(-p.group, syscall.SIGKILL) // a child that it has left running
			if tb.Failed() {
				tb.Log(p.OutputTail())
			}
			return
		}
	}
}

// RunClient runs a foreign client to its end, and returns its output, and whether it succeeded. A
// client that is not installed fails the test.
//
// env is its environment; nil uses the environment of the test.
func RunClient(tb testing.TB, env []string, program string, args ...string) (said string, content bool) {
	tb.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		tb.Fatalf("%s is not installed: make test-sims does that, by test/install", program)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), clientTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env, cmd.WaitDelay = env, time.Second
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		tb.Fatalf("%s was not done after %s; it has said:\n%s", program, clientTimeout, out)
	}
	return string(out), err == nil
}
