package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"hotspare.io/hotspare/internal/controlplane/flock"
	"hotspare.io/hotspare/internal/machine"
)

// endLockHolder returns when no process holds the lock at path. A holder is left over
// from a program that was killed: the end of its standard input stops it. It is
// asked as well, in case somebody started it by hand, and killed after the
// grace. That the lock is held proves that the pid in it is not another's.
func endLockHolder(path string, grace time.Duration) error {
	patience := time.Now().Add(grace)
	asked := false
	for {
		held, err := findLockHolder(path)
		if held == nil {
			return err
		}
		switch now := time.Now(); {
		case now.After(patience.Add(grace)):
			return fmt.Errorf("ending a leftover process: %w", held)
		case now.After(patience):
			err = signalProcess(held.PID, syscall.SIGKILL)
		case !asked && held.PID != 0:
			asked = true
			err = signalProcess(held.PID, syscall.SIGTERM)
		}
		if err != nil {
			return fmt.Errorf("ending a leftover process: %w", errors.Join(held, err))
		}
		time.Sleep(lockPollInterval) //nolint:forbidigo // nobody tells us when another process lets go of a lock
	}
}

// findLockHolder returns who holds the lock at path, or nil if nobody does, or if there is
// no machine there.
func findLockHolder(path string) (*flock.HeldError, error) {
	if _, err := os.Stat(filepath.Dir(path)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	// A child that is forked while we have the lock has it, too, until it has
	// executed its program: another machine's start must not come in between.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	lock, err := flock.Acquire(path)
	var held *flock.HeldError
	if errors.As(err, &held) {
		return held, nil
	}
	if err != nil {
		return nil, err
	}
	return nil, lock.Release()
}

// signalProcess signals a process that may have ended, and may not be known.
func signalProcess(pid int, sig syscall.Signal) error {
	if pid <= 0 || pid == os.Getpid() {
		return nil
	}
	if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}

// hasLeftoverProcess reports whether a machine may have a process that is not ours.
func hasLeftoverProcess(m observedMachine) bool {
	held, err := findLockHolder(machine.LockPath(m.dir))
	return held != nil || err != nil
}
