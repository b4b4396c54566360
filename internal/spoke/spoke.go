// Package spoke is the program that runs in a local machine: the control plane of
// a cluster, or one of its nodes.
package spoke

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"hotspare.io/hotspare/internal/controlplane/flock"
	"hotspare.io/hotspare/internal/machine"
)

// ParentPipe is an environment variable. Set to 1 it says that standard input is a
// pipe whose other end the parent holds, so that its end is the parent's.
const ParentPipe = "HOTSPARE_PARENT_PIPE"

// Run runs the machine in dir until ctx ends, or its parent does, or it fails. The
// error is a *flock.HeldError if the machine runs already.
//
// A control plane and a node write their logs to standard error, which the store of
// machines has made the machine's log.
func Run(ctx context.Context, dir string) error {
	config, err := machine.Load(dir)
	if err != nil {
		return err
	}
	lock, err := flock.Acquire(machine.LockPath(dir))
	if err != nil {
		return fmt.Errorf("starting machine %s: %w", config.Name, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if os.Getenv(ParentPipe) == "1" {
		go cancelAtEnd(os.Stdin, cancel)
	}
	err = run(ctx, dir, config)
	if ctx.Err() != nil {
		err = nil // whatever was cut short
	}
	return errors.Join(err, lock.Release())
}

func run(ctx context.Context, dir string, config machine.Config) error {
	switch config.Role {
	case machine.ControlPlane:
		return runControlPlane(ctx, dir, config)
	case machine.Worker:
		return runWorker(ctx, dir, config)
	default:
		return fmt.Errorf("starting machine %s: no such role: %q", config.Name, config.Role)
	}
}

// cancelAtEnd cancels when the pipe ends or breaks. The read cannot be
// interrupted: the goroutine lives as long as the process.
func cancelAtEnd(pipe io.Reader, cancel context.CancelFunc) {
	_, _ = io.Copy(io.Discard, pipe) // how it ended makes no difference
	cancel()
}
