// Package sims runs programs that are not ours beside a test: simulators of clouds
// that Debian has, and foreign clients. packages.txt lists them, test/install installs them.
//
// No test can wait for one for ever: each wait has a deadline, and a test that has
// waited in vain tells for what, and the end of what the program has said.
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
	// clientTimeout is how long a foreign client may take: awscli alone needs a second on a
	// computer with nothing else to do.
	clientTimeout = 90 * time.Second
	// tailLength is how much of the end of each log is told.
	tailLength = 4000
)

// Program is a process that reads commands, a line each, and answers in lines. It
// ends when its input does.
type Program struct {
	// Lines are those that it prints; closed with its output. Whoever reads them here
	// needs a deadline of their own.
	Lines chan string

	name  string
	logs  string
	in    io.WriteCloser
	group int
	ended chan struct{}
	err   error // how it ended, once it has
	// stopTimeout is how long it may take to end when its input has.
	stopTimeout time.Duration

	mu     sync.Mutex
	stderr bytes.Buffer // on its standard error
}

//go:embed *.py
var scripts embed.FS

// StartScript starts one of the scripts here for a test, with Debian's own Python, whose
// packages it needs, and ends it with the test. logs is a folder in which it leaves
// logs, or "".
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
	cmd := exec.Command("/usr/bin/python3", append([]string{"-W", "ignore", path}, args...)...) //nolint:noctx // it ends with its input, or with its group
	cmd.Env = append(cmd.Environ(), "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1")
	return startProgram(tb, logs, script, cmd)
}

func startProgram(tb testing.TB, logs, name string, cmd *exec.Cmd) *Program {
	tb.Helper()
	p := &Program{Lines: make(chan string, 1000), name: name, logs: logs, ended: make(chan struct{}), stopTimeout: 20 * time.Second}
	cmd.Stderr = p
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second // a child that has its standard error must not hold us up
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

// readOutput takes what the program prints until it has ended.
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

// Write takes what the program says on its standard error.
func (p *Program) Write(part []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.Write(part)
}

// ReadStderr are what the program has said on its standard error.
func (p *Program) ReadStderr() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.String()
}

// SendCommand gives the program a command.
func (p *Program) SendCommand(tb testing.TB, line string) {
	tb.Helper()
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		tb.Fatalf("telling %s %s: %v\n%s", p.name, line, err, p.OutputTail())
	}
}

// WaitForLine is the next line of the program. The test ends if there is none in time, and
// tells what was waited for.
func (p *Program) WaitForLine(tb testing.TB, within time.Duration, what string) string {
	tb.Helper()
	select {
	case line, more := <-p.Lines:
		if !more {
			select {
			case <-p.ended: // now it has said all
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

// OutputTail is the end of all that the program has said, and of its logs.
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
	files, _ := filepath.Glob(filepath.Join(p.logs, "*.log")) // the pattern is a good one
	for _, file := range files {
		if raw, err := os.ReadFile(file); err == nil {
			tell(filepath.Base(file), string(raw))
		}
	}
	return b.String()
}

// stopAndCheck ends the program, and if it does not listen, all of its group.
func (p *Program) stopAndCheck(tb testing.TB) {
	tb.Helper()
	_ = p.in.Close() // it may have ended
	lines, late := p.Lines, time.After(p.stopTimeout)
	for {
		select {
		case _, more := <-lines: // nobody else reads them any more
			if more {
				continue
			}
			lines = nil
		case <-late:
			_ = syscall.Kill(-p.group, syscall.SIGKILL) // it may end just now
			tb.Errorf("%s did not end when its input did, and was killed after %s\n%s", p.name, p.stopTimeout, p.OutputTail())
			late = nil
		case <-p.ended:
			if p.err != nil {
				tb.Errorf("%s ended with %v", p.name, p.err)
			}
			_ = syscall.Kill(-p.group, syscall.SIGKILL) // a child that it has left behind
			if tb.Failed() {
				tb.Log(p.OutputTail())
			}
			return
		}
	}
}

// RunClient runs a foreign client to its end, and returns what it says, and whether it was
// content. One that is not installed fails the test.
//
// env is its environment, nil for that of the test.
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
