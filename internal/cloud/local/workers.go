package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/machine"
)

// retrySoon is when to look again at what ends or begins within seconds.
const retrySoon = time.Second

// AddWorker adds a worker to a cluster that is wanted to run, and has it run: c has
// its name, the infraID and what is its own; all else is as the control plane's. fill
// writes the disk of the machine, which is in dir, given the machine and the control
// plane. The machine is there as a whole, and switched on, or not at all. If there is
// one of that name already, nothing is done.
//
// The error is fault.Capacity if this computer has no memory left for it, fault.Wait
// while the cluster is not wanted to run or a machine of that name is still ending,
// and fault.Gone if there is no such cluster.
func (s *Store) AddWorker(c machine.Config, fill func(c, leader machine.Config, dir string) error) error {
	if err := errors.Join(checkDNSLabel("infraID", c.InfraID), checkDNSLabel("machine", c.Name)); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ms, err := s.observeMachines(c.InfraID)
	if err != nil {
		return err
	}
	if i := indexOfMachine(ms, c.Name); i >= 0 && !ms[i].gone {
		return nil
	} else if i >= 0 {
		return fault.NewWait(retrySoon, "a former machine %s is still ending", c.Name)
	}
	l := slices.IndexFunc(ms, func(m observedMachine) bool { return isControlPlane(m) && !m.gone })
	if l < 0 {
		return fault.New(fault.Gone, fmt.Errorf("cluster %s has no control plane", c.InfraID))
	}
	leader := ms[l]
	if !leader.wanted {
		return fault.NewWait(retrySoon, "cluster %s is not running", c.InfraID)
	}
	c = newWorkerConfig(c, leader.Config)
	if err := s.checkCapacity(c.InfraID, needOfStarting(ms).addNeed(needOfMachine(c))); err != nil {
		return err
	}
	// What a process wrote that had lost its machine is nobody's.
	if err := os.RemoveAll(s.MachineDir(c.InfraID, c.Name)); err != nil {
		return fmt.Errorf("adding machine %s: %w", c.Name, err)
	}
	err = s.createAtomically(c, func(dir string) error {
		if err := fill(c, leader.Config, dir); err != nil {
			return err
		}
		return switchOn(dir)
	})
	if err != nil {
		return fmt.Errorf("adding machine %s: %w", c.Name, err)
	}
	delete(s.lastExits, s.MachineDir(c.InfraID, c.Name))
	s.enqueueCluster(c.InfraID)
	return nil
}

// newWorkerConfig is a worker in the cluster of a control plane.
func newWorkerConfig(c, leader machine.Config) machine.Config {
	out := leader
	out.Name, out.Role, out.Taints = c.Name, machine.Worker, c.Taints
	return out
}

// needOfStarting is what those of ms need that are about to be started.
func needOfStarting(ms []observedMachine) need {
	return needOfStopped(slices.DeleteFunc(slices.Clone(ms), func(m observedMachine) bool { return !m.wanted || !m.lastExit.isEmpty() }))
}

func indexOfMachine(ms []observedMachine, name string) int {
	return slices.IndexFunc(ms, func(m observedMachine) bool { return m.Name == name })
}

// RemoveWorker takes a worker out of its cluster, stops it and removes its disk. It
// waits until that is done, or ctx ends; then the machine is out of the store, but its
// process may be ending still. That there is no such machine is success.
func (s *Store) RemoveWorker(ctx context.Context, infraID, name string) error {
	if err := checkDNSLabel("machine", name); err != nil {
		return err
	}
	trash, err := s.moveWorkerToTrash(infraID, name)
	if err != nil {
		return fmt.Errorf("removing machine %s: %w", name, err)
	}
	if err := s.waitForMachineExit(ctx, infraID, name); err != nil {
		return err
	}
	if trash == "" {
		return nil
	}
	// For a process that is left over from a former run of the store.
	if err := endLockHolder(machine.LockPath(filepath.Join(trash, name)), s.grace); err != nil {
		return err
	}
	return os.RemoveAll(trash)
}

// moveWorkerToTrash moves a worker out of the store and returns where it is now, or "" if there
// is none. A process that has lost its machine is stopped by Run. This comes before
// the stop: a machine that is in the store may be started again by anybody.
func (s *Store) moveWorkerToTrash(infraID, name string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ms, err := s.observeMachines(infraID)
	if err != nil {
		return "", err
	}
	i := indexOfMachine(ms, name)
	if i < 0 || ms[i].gone {
		return "", nil
	}
	if isControlPlane(ms[i]) {
		return "", fault.NewDenied("machine %s is a control plane: destroy the cluster instead", name)
	}
	trash, err := os.MkdirTemp(s.dir, trashPrefix)
	if err != nil {
		return "", err
	}
	if err := os.Rename(ms[i].dir, filepath.Join(trash, name)); err != nil {
		return "", errors.Join(err, os.Remove(trash))
	}
	delete(s.lastExits, ms[i].dir)
	s.enqueueCluster(infraID)
	return trash, nil
}

// waitForMachineExit waits until a machine has no process.
func (s *Store) waitForMachineExit(ctx context.Context, infraID, name string) error {
	for {
		s.mu.Lock()
		p, changed := s.procs[s.MachineDir(infraID, name)], s.changed
		s.mu.Unlock()
		if p == nil {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return interruptedError(ctx, "waiting for the end of", name)
		}
	}
}
