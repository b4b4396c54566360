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

// soon is when to look again at what ends or begins within seconds.
const soon = time.Second

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
	if err := errors.Join(checkName("infraID", c.InfraID), checkName("machine", c.Name)); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ms, err := s.look(c.InfraID)
	if err != nil {
		return err
	}
	if i := named(ms, c.Name); i >= 0 && !ms[i].gone {
		return nil
	} else if i >= 0 {
		return fault.Waiting(soon, "a former machine %s is still ending", c.Name)
	}
	l := slices.IndexFunc(ms, func(m seen) bool { return isControlPlane(m) && !m.gone })
	if l < 0 {
		return fault.New(fault.Gone, fmt.Errorf("cluster %s has no control plane", c.InfraID))
	}
	leader := ms[l]
	if !leader.wanted {
		return fault.Waiting(soon, "cluster %s is not running", c.InfraID)
	}
	c = member(c, leader.Config)
	if err := s.admit(c.InfraID, promised(ms).plus(needOfMachine(c))); err != nil {
		return err
	}
	// What a process wrote that had lost its machine is nobody's.
	if err := os.RemoveAll(s.Dir(c.InfraID, c.Name)); err != nil {
		return fmt.Errorf("adding machine %s: %w", c.Name, err)
	}
	err = s.create(c, func(dir string) error {
		if err := fill(c, leader.Config, dir); err != nil {
			return err
		}
		return switchOn(dir)
	})
	if err != nil {
		return fmt.Errorf("adding machine %s: %w", c.Name, err)
	}
	delete(s.endings, s.Dir(c.InfraID, c.Name))
	s.kick(c.InfraID)
	return nil
}

// member is a worker in the cluster of a control plane.
func member(c, leader machine.Config) machine.Config {
	out := leader
	out.Name, out.Role, out.Taints = c.Name, machine.Worker, c.Taints
	return out
}

// promised is what those of ms need that are about to be started.
func promised(ms []seen) need {
	return needOf(slices.DeleteFunc(slices.Clone(ms), func(m seen) bool { return !m.wanted || !m.ending.none() }))
}

func named(ms []seen, name string) int {
	return slices.IndexFunc(ms, func(m seen) bool { return m.Name == name })
}

// RemoveWorker takes a worker out of its cluster, stops it and removes its disk. It
// waits until that is done, or ctx ends; then the machine is out of the store, but its
// process may be ending still. That there is no such machine is success.
func (s *Store) RemoveWorker(ctx context.Context, infraID, name string) error {
	if err := checkName("machine", name); err != nil {
		return err
	}
	trash, err := s.takeOut(infraID, name)
	if err != nil {
		return fmt.Errorf("removing machine %s: %w", name, err)
	}
	if err := s.ended(ctx, infraID, name); err != nil {
		return err
	}
	if trash == "" {
		return nil
	}
	// For a process that is left over from a former run of the store.
	if err := evict(machine.LockPath(filepath.Join(trash, name)), s.grace); err != nil {
		return err
	}
	return os.RemoveAll(trash)
}

// takeOut moves a worker out of the store and returns where it is now, or "" if there
// is none. A process that has lost its machine is stopped by Run. This comes before
// the stop: a machine that is in the store may be started again by anybody.
func (s *Store) takeOut(infraID, name string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ms, err := s.look(infraID)
	if err != nil {
		return "", err
	}
	i := named(ms, name)
	if i < 0 || ms[i].gone {
		return "", nil
	}
	if isControlPlane(ms[i]) {
		return "", fault.Denying("machine %s is a control plane: destroy the cluster instead", name)
	}
	trash, err := os.MkdirTemp(s.dir, trashPrefix)
	if err != nil {
		return "", err
	}
	if err := os.Rename(ms[i].dir, filepath.Join(trash, name)); err != nil {
		return "", errors.Join(err, os.Remove(trash))
	}
	delete(s.endings, ms[i].dir)
	s.kick(infraID)
	return trash, nil
}

// ended waits until a machine has no process.
func (s *Store) ended(ctx context.Context, infraID, name string) error {
	for {
		s.mu.Lock()
		p, changed := s.procs[s.Dir(infraID, name)], s.changed
		s.mu.Unlock()
		if p == nil {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return interrupted(ctx, "waiting for the end of", name)
		}
	}
}
