package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"hotspare.io/hotspare/internal/embedded/controlplane/flock"
	"hotspare.io/hotspare/internal/embedded/machine"
)

// killPatience is how long a killed process may take to release its lock: on a busy computer, longer than a short grace period.
const killPatience = 10 * time.Second

// endLockHolder returns when no process holds the lock at path. A process that still holds it is
// left over from a program that was killed: it stops when its standard input ends. endLockHolder
// also sends it SIGTERM, in case it was started by hand, continues it, in case it is frozen, and kills it
// after the grace period. A held lock proves that the recorded pid has not been reused by another process.
func endLockHolder(path string, grace time.Duration) error {
	patience := time.Now().Add(grace)
	asked := false
	for {
		held, err := findLockHolder(path)
		if held == nil {
			return err
		}
		switch now := time.Now(); {
		case now.After(patience.Add(killPatience)):
			return fmt.Errorf("ending a leftover process: %w", held)
		case now.After(patience):
			err = signalProcess(held.PID, syscall.SIGKILL)
		case !asked && held.PID != 0:
			asked = true
			err = errors.Join(signalProcess(held.PID, syscall.SIGTERM), signalProcess(held.PID, syscall.SIGCONT))
		}
		if err != nil {
			return fmt.Errorf("ending a leftover process: %w", errors.Join(held, err))
		}
		time.Sleep(lockPollInterval) //nolint:forbidigo // there is no notification when another process releases a lock
	}
}

// endRemovedMachines ends what is left of the machines in a folder that moveWorkerToTrash or moveClusterToTrash has
// filled: their processes, which may be left over from an earlier run of the store, and their cgroups.
func (s *Store) endRemovedMachines(ctx context.Context, trash string) error {
	for _, pattern := range []string{"*/machine.json", "*/*/machine.json"} { // a worker, and the machines of a cluster
		found, err := fs.Glob(os.DirFS(trash), pattern)
		if err != nil {
			return err
		}
		for _, config := range found {
			if err := s.endRemovedMachine(ctx, filepath.Dir(filepath.Join(trash, config))); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Store) endRemovedMachine(ctx context.Context, dir string) error {
	if err := endLockHolder(machine.LockPath(dir), s.grace); err != nil {
		return err
	}
	c, err := machine.LoadConfig(dir)
	if err != nil {
		return nil //nolint:nilerr // a machine whose description is damaged never started
	}
	return s.removeCgroupsWhenEmpty(ctx, c, s.removeCgroupsUnlessReplaced)
}

// removeCgroupsWhenEmpty calls remove, which removes the cgroups of a machine whose process has ended. It waits for the
// processes in them, which the kernel ends after that of the machine, for the grace period at most and until ctx ends.
func (s *Store) removeCgroupsWhenEmpty(ctx context.Context, c machine.Config, remove func(machine.Config) error) error {
	if !c.RunsContainers() {
		return nil
	}
	for patience := s.clock.Now().Add(s.grace); ; {
		err := remove(c)
		if !errors.Is(err, syscall.EBUSY) || s.clock.Now().After(patience) {
			return err
		}
		select {
		case <-s.clock.After(lockPollInterval): // there is no notification when the last process of a cgroup ends
		case <-ctx.Done():
			return err
		}
	}
}

// removeCgroupsOf removes the cgroups of a machine.
func (s *Store) removeCgroupsOf(c machine.Config) error { return s.removeCgroups(c.Name) }

// removeCgroupsUnlessReplaced removes the cgroups of a machine that was removed, unless there is a machine with its name
// again. The start of that one removes them.
func (s *Store) removeCgroupsUnlessReplaced(c machine.Config) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	dir := s.MachineDir(c.InfraID, c.Name)
	if _, err := os.Stat(machine.ConfigPath(dir)); err == nil || s.procs[dir] != nil {
		return nil
	}
	return s.removeCgroups(c.Name)
}

// findLockHolder returns the holder of the lock at path, or nil if the lock is free or the machine
// does not exist.
func findLockHolder(path string) (*flock.LockedError, error) {
	if _, err := os.Stat(filepath.Dir(path)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	// A child forked while this process holds the lock inherits it until the child calls exec: do
	// not let the start of another machine interleave.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	lock, err := flock.Acquire(path)
	var held *flock.LockedError
	if errors.As(err, &held) {
		return held, nil
	}
	if err != nil {
		return nil, err
	}
	return nil, lock.Release()
}

// signalProcess sends sig to a process. A process that has already ended and an unknown pid are not
// errors.
func signalProcess(pid int, sig syscall.Signal) error {
	if pid <= 0 || pid == os.Getpid() {
		return nil
	}
	if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}

// hasLeftoverProcess reports whether a machine may have a process that this store did not start.
func hasLeftoverProcess(m observedMachine) bool {
	held, err := findLockHolder(machine.LockPath(m.dir))
	return held != nil || err != nil
}
