package claim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"hotspare.io/hotspare/internal/cli/base"
)

// runChildProcess runs a command until it exits. It forwards received signals to it, and sends
// SIGTERM if ctx ends for another reason. It returns an error with the command's exit code, or
// with 128 plus the number of the signal that ended it.
func (a commands) runChildProcess(ctx context.Context, command []string, heard <-chan os.Signal, env ...string) error {
	// The end of ctx must not kill the child, which may have to clean up.
	child := exec.CommandContext(context.WithoutCancel(ctx), command[0], command[1:]...)
	child.Stdin, child.Stdout, child.Stderr = a.Stdin, a.Stdout, a.Stderr
	child.Env = append(os.Environ(), env...)
	child.SysProcAttr = withParent()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := child.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", command[0], err)
	}
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()
	err := a.relaySignals(ctx, child.Process, heard, ended)
	var failed *exec.ExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &failed):
		return &base.ExitError{Code: processExitCode(failed.ProcessState)}
	default:
		return fmt.Errorf("running %s: %w", command[0], err)
	}
}

// relaySignals forwards signals until the child exits.
func (a commands) relaySignals(ctx context.Context, p *os.Process, heard <-chan os.Signal, ended <-chan error) error {
	cancelled := ctx.Done()
	for {
		select {
		case s := <-heard:
			// On a terminal, the child receives Ctrl-C itself. Many programs abort without
			// cleanup on a second one.
			if s != syscall.SIGINT || !a.IsTerminal(a.Stdin) {
				a.signalChild(p, s)
			}
		case <-cancelled:
			cancelled = nil
			if by := (base.InterruptError{}); !errors.As(context.Cause(ctx), &by) {
				a.signalChild(p, syscall.SIGTERM)
			}
		case err := <-ended:
			return err
		}
	}
}

// signalChild sends a signal to a child, which may have exited.
func (a commands) signalChild(p *os.Process, s os.Signal) {
	if err := p.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		fmt.Fprintf(a.Stderr, "warning: forwarding %v to the command failed: %v\n", s, err)
	}
}

func processExitCode(s *os.ProcessState) int {
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return base.ExitSignal + int(w.Signal())
	}
	return s.ExitCode()
}
