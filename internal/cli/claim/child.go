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

// runChildProcess runs a command to its end. Signals that are heard go to it, and SIGTERM
// when ctx ends for another reason. It returns an error with the command's exit
// code, or 128 and the number of the signal that ended it.
func (a commands) runChildProcess(ctx context.Context, command []string, heard <-chan os.Signal, env ...string) error {
	// The end of ctx must not kill the child, which may have something to clean up.
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

// relaySignals passes signals on until the child has ended.
func (a commands) relaySignals(ctx context.Context, p *os.Process, heard <-chan os.Signal, ended <-chan error) error {
	cancelled := ctx.Done()
	for {
		select {
		case s := <-heard:
			// Ctrl-C on a terminal has reached the child already, and to many programs
			// a second one means to give up at once.
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

// signalChild sends a signal to a child, which may have ended.
func (a commands) signalChild(p *os.Process, s os.Signal) {
	if err := p.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		fmt.Fprintf(a.Stderr, "warning: %v was not passed on to the command: %v\n", s, err)
	}
}

func processExitCode(s *os.ProcessState) int {
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return base.ExitSignal + int(w.Signal())
	}
	return s.ExitCode()
}
