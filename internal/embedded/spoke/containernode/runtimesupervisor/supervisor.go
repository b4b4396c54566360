// Package runtimesupervisor runs the container runtime of a node. It starts the runtime again when it has ended, after a
// delay that grows, and reports why it ended: to its caller, and in a condition of the node.
package runtimesupervisor

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// Limits of the supervision.
const (
	// minDelay is the delay before the first restart, which doubles with each further one up to maxDelay.
	minDelay = time.Second
	maxDelay = 30 * time.Second
	// settledAfter is how long the runtime must run until it counts as one that works.
	settledAfter = 10 * time.Second
	// outputDelay is how long the output of an ended runtime is read: another process may have inherited it.
	outputDelay = time.Second
)

// A Supervisor runs a container runtime.
type Supervisor struct {
	// Name is the name of the runtime in problems.
	Name string
	// Command returns the command that runs it, without its output.
	Command func() *exec.Cmd
	// Output receives what it prints.
	Output io.Writer
	// Report is called with why the runtime ended, as a clause, each time that it has ended, and with "" when it has
	// run for settledAfter since.
	Report func(problem string)
	Clock  clock.Clock
}

// Run runs the runtime until ctx ends. It starts the runtime again when it has ended: containers do not end with it. When
// ctx ends, Run leaves the runtime running: containers are stopped by it, and it ends with this process. The error is
// that of a runtime that cannot be started the first time: later, this computer may lack processes for a moment, and the
// containers live on.
func (s Supervisor) Run(ctx context.Context) error {
	delay, started := minDelay, false
	for ctx.Err() == nil {
		problem, settled, err := s.runOnce(ctx)
		if ctx.Err() != nil || err != nil && !started {
			return err
		}
		if err != nil {
			problem = err.Error()
		}
		started = true
		if settled {
			delay = minDelay
		}
		klog.FromContext(ctx).Info("will start the container runtime again", "after", delay, "problem", problem)
		s.Report(problem)
		select {
		case <-ctx.Done():
		case <-s.Clock.After(delay):
		}
		delay = min(2*delay, maxDelay)
	}
	return nil
}

// runOnce returns why the runtime ended, and whether it had settled. It returns "" when ctx ends first.
func (s Supervisor) runOnce(ctx context.Context) (problem string, settled bool, err error) {
	output := &lastLine{to: s.Output}
	cmd := s.Command()
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = outputDelay
	if err := cmd.Start(); err != nil {
		return "", false, fmt.Errorf("starting %s: %w", s.Name, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	settling := s.Clock.NewTimer(settledAfter)
	defer settling.Stop()
	for {
		select {
		case <-ctx.Done():
			return "", settled, nil
		case <-settling.C():
			settled = true
			s.Report("")
		case <-ended: //nolint:errcheck // cmd.ProcessState says how it ended
			return fmt.Sprintf("%s ended (%v): %s", s.Name, cmd.ProcessState, output), settled, nil
		}
	}
}
