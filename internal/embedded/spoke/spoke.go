// Package spoke is the program that runs in a local machine: the control plane of a cluster, or one
// of its nodes.
package spoke

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"k8s.io/klog/v2"

	"hotspare.io/hotspare/internal/embedded/controlplane/flock"
	"hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/embedded/processtree"
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
	m := &runningMachine{dir: dir, Config: config, faults: faults, commands: make(chan string, 1), socket: takeAPISocket()}
	if os.Getenv(ParentPipe) == "1" {
		if err := processtree.ContinueWhenParentDies(); err != nil {
			return fmt.Errorf("starting machine %s: %w", config.Name, errors.Join(err, lock.Release()))
		}
		go m.followParent(ctx, os.Stdin, cancel)
	}
	go faults.Run(ctx)
	err = runMachine(ctx, m)
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
	// commands receives the last command that was not taken yet.
	commands chan string
	// socket is the socket of the API that the parent has passed; nil if it has passed none.
	socket *os.File
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
	if err := node.InjectExpiredCertificates(machine.PKIPath(m.dir), time.Now()); err != nil {
		return err
	}
	return machine.RemoveInjection(m.dir, machine.CertificatesExpired)
}

// followParent reads the commands of the parent from the pipe, and cancels when the pipe ends or breaks. The read
// cannot be interrupted: the goroutine lives as long as the process.
func (m *runningMachine) followParent(ctx context.Context, pipe io.Reader, cancel context.CancelFunc) {
	defer cancel() // EOF and an error have the same effect
	for lines := bufio.NewScanner(pipe); lines.Scan(); {
		select {
		case <-m.commands: // the new command replaces it
		default:
		}
		m.commands <- lines.Text()
	}
	// If this machine was frozen when its parent died, the kernel has continued this process, but no other.
	if err := processtree.ContinueDescendants(); err != nil {
		klog.FromContext(ctx).Error(err, "processes of the machine may be frozen until they are killed")
	}
}
