// Package spoke is the program that runs in a local machine: the control plane of
// a cluster, or one of its nodes.
package spoke

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"hotspare.io/hotspare/internal/controlplane/flock"
	"hotspare.io/hotspare/internal/machine"
	"hotspare.io/hotspare/internal/spoke/node"
	"hotspare.io/hotspare/internal/spoke/trouble"
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
	faults := trouble.New(dir)
	ctx, cancel := faults.Deaf(ctx)
	defer cancel()
	if os.Getenv(ParentPipe) == "1" {
		go cancelAtEnd(os.Stdin, cancel)
	}
	go faults.Run(ctx)
	err = run(ctx, &self{dir: dir, Config: config, faults: faults})
	if ctx.Err() != nil {
		err = nil // whatever was cut short
	}
	return errors.Join(err, lock.Release())
}

// self is the machine that runs.
type self struct {
	machine.Config
	dir    string
	faults *trouble.Watch
}

func run(ctx context.Context, m *self) error {
	if err := m.faults.Healed(ctx, machine.HangOnStart); err != nil {
		return err
	}
	if err := m.outdate(); err != nil {
		return err
	}
	if err := m.checkIdentity(); err != nil {
		return err
	}
	switch m.Role {
	case machine.ControlPlane:
		return runControlPlane(ctx, m)
	case machine.Worker:
		return runWorker(ctx, m)
	default:
		return fmt.Errorf("starting machine %s: no such role: %q", m.Name, m.Role)
	}
}

// outdate lets the node's certificates have expired, if that is the machine's fault.
func (m *self) outdate() error {
	if has, _ := m.faults.Has(machine.CertificatesExpired); !has {
		return nil
	}
	if err := node.Outdate(machine.PKIPath(m.dir), time.Now()); err != nil {
		return err
	}
	return machine.Heal(m.dir, machine.CertificatesExpired)
}

// cancelAtEnd cancels when the pipe ends or breaks. The read cannot be
// interrupted: the goroutine lives as long as the process.
func cancelAtEnd(pipe io.Reader, cancel context.CancelFunc) {
	_, _ = io.Copy(io.Discard, pipe) // how it ended makes no difference
	cancel()
}
