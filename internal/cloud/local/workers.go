package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/fault"
)

// retrySoon is the delay before a retry if the awaited change takes only seconds.
const retrySoon = time.Second

// AddWorker adds a worker to a cluster that should run, and starts it. c contains the worker's
// name, the infraID and the worker's own settings; everything else is copied from the control
// plane. fill writes the disk of the machine in dir, given the configs of the machine and of the
// control plane. The machine is created completely and switched on, or not at all. If a machine
// with that name already exists, AddWorker does nothing.
//
// The error is fault.Capacity if this computer has no memory left for the worker, fault.Wait if the
// cluster should not run or a machine with that name is still ending, and fault.Gone if there is no
// such cluster.
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
		return fault.NewWait(retrySoon, "an earlier machine %s is still stopping", c.Name)
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
	if c.Index, err = lowestFreeIndex(ms); err != nil {
		return err
	}
	if err := s.checkCapacity(c.InfraID, needOfStarting(ms).addNeed(needOfMachine(c))); err != nil {
		return err
	}
	if err := s.removeRemains(s.MachineDir(c.InfraID, c.Name)); err != nil {
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

// removeRemains removes what a process wrote after its machine was removed.
func (s *Store) removeRemains(dir string) error {
	if err := s.checkNoMounts(dir); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// newWorkerConfig returns the config of a worker in the cluster of the control plane leader.
func newWorkerConfig(c, leader machine.Config) machine.Config {
	out := leader
	out.Name, out.Role, out.Taints = c.Name, machine.Worker, c.Taints
	return out
}

// lowestFreeIndex returns the lowest index that no worker in ms has.
func lowestFreeIndex(ms []observedMachine) (int, error) {
	for index := range machine.MaxIndex + 1 {
		if !slices.ContainsFunc(ms, func(m observedMachine) bool { return !isControlPlane(m) && m.Index == index }) {
			return index, nil
		}
	}
	return 0, fault.NewDenied("the cluster has %d workers, which is the maximum: remove one", machine.MaxIndex+1)
}

// needOfStarting returns what the machines in ms that are about to be started need.
func needOfStarting(ms []observedMachine) need {
	return neededToStart(slices.DeleteFunc(slices.Clone(ms), func(m observedMachine) bool { return !m.wanted || !m.lastExit.isEmpty() }))
}

func indexOfMachine(ms []observedMachine, name string) int {
	return slices.IndexFunc(ms, func(m observedMachine) bool { return m.Name == name })
}

// RemoveWorker removes a worker from its cluster, stops it and deletes its disk. It waits until
// that is done or ctx ends; if ctx ends first, the machine is already out of the store, but its
// process may still be ending. A missing machine is success.
func (s *Store) RemoveWorker(ctx context.Context, infraID, name string) error {
	if err := checkDNSLabel("machine", name); err != nil {
		return err
	}
	if err := s.checkNoMounts(s.MachineDir(infraID, name)); err != nil {
		return fmt.Errorf("removing machine %s: %w", name, err)
	}
	if _, err := s.moveWorkerToTrash(infraID, name); err != nil {
		return fmt.Errorf("removing machine %s: %w", name, err)
	}
	if err := s.waitForMachineExit(ctx, infraID, name); err != nil {
		return err
	}
	return s.removeTrash(ctx, name)
}

// moveWorkerToTrash moves a worker out of the store and returns its new folder, or "" if the worker
// does not exist. Run stops a process whose machine was removed. The move comes before the stop,
// because another caller may start a machine that is still in the store.
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
