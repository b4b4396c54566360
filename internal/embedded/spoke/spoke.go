// Package spoke is the program that runs in a local machine: the control plane of a cluster, or one
// of its nodes.
package spoke

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"hotspare.io/hotspare/internal/embedded/controlplane/flock"
	"hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/embedded/spoke/faultinject"
	"hotspare.io/hotspare/internal/embedded/spoke/node"
	"hotspare.io/hotspare/internal/embedded/usernamespace"
)

// ParentPipe is an environment variable. The value 1 means that standard input is a pipe whose
// other end the parent keeps open, so that the pipe closes when the parent ends.
const ParentPipe = "HOTSPARE_PARENT_PIPE"

// Run runs the machine in dir until ctx ends, its parent ends, or it fails. The error is a
// *flock.HeldError if the machine is already running.
//
// A control plane and a node write their logs to standard error, which the store of machines
// redirects to the machine's log.
func Run(ctx context.Context, dir string) error {
	config, err := machine.LoadConfig(dir)
	if err != nil {
		return err
	}
	if config.RunsContainers() {
		if err := usernamespace.Enter(); err != nil {
			return fmt.Errorf("starting machine %s: %w", config.Name, err)
		}
		if err := enterContainerNode(dir, config); err != nil {
			return err
		}
	}
	lock, err := flock.AcquireAs(machine.LockPath(dir), processID())
	if err != nil {
		return fmt.Errorf("starting machine %s: %w", config.Name, err)
	}
	faults := faultinject.New(dir)
	ctx, cancel := faults.WithHangOnStop(ctx)
	defer cancel()
	if os.Getenv(ParentPipe) == "1" {
		go cancelOnEOF(os.Stdin, cancel)
	}
	go faults.Run(ctx)
	err = runMachine(ctx, &runningMachine{dir: dir, Config: config, faults: faults})
	if ctx.Err() != nil {
		err = nil // ignore the errors that the cancellation caused
	}
	return errors.Join(err, lock.Release())
}

// runningMachine is a machine while it runs.
type runningMachine struct {
	machine.Config
	dir    string
	faults *faultinject.Watcher
}

// simulationCause returns why the pods of the machine are not containers; "" if that was requested.
func (m *runningMachine) simulationCause() string {
	if m.Containers {
		return "only workers run containers"
	}
	return m.ContainersObstacle
}

func runMachine(ctx context.Context, m *runningMachine) error {
	if err := m.faults.WaitForRemoval(ctx, machine.HangOnStart); err != nil {
		return err
	}
	if err := m.injectExpiredCertificates(); err != nil {
		return err
	}
	if err := m.checkIdentity(); err != nil {
		return err
	}
	switch m.Role {
	case machine.ControlPlane:
		return runControlPlane(ctx, m)
	case machine.Worker:
		if m.RunsContainers() {
			return runContainerWorker(ctx, m)
		}
		return runWorker(ctx, m)
	default:
		return fmt.Errorf("starting machine %s: no such role: %q", m.Name, m.Role)
	}
}

// injectExpiredCertificates makes the node's certificates expire if that fault is injected.
func (m *runningMachine) injectExpiredCertificates() error {
	if has, _ := m.faults.IsInjected(machine.CertificatesExpired); !has {
		return nil
	}
	if err := node.ExpireCertificates(machine.PKIPath(m.dir), time.Now()); err != nil {
		return err
	}
	return machine.RemoveInjection(m.dir, machine.CertificatesExpired)
}

// cancelOnEOF cancels when the pipe ends or breaks. The read cannot be interrupted: the goroutine
// lives as long as the process.
func cancelOnEOF(pipe io.Reader, cancel context.CancelFunc) {
	_, _ = io.Copy(io.Discard, pipe) // EOF and an error have the same effect
	cancel()
}
