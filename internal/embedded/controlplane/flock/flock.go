// Package flock locks a folder for one process at a time.
//
// The kernel releases the lock when its holder ends, for whatever reason: there is no stale lock to
// clean up after a kill -9.
package flock

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// held keeps a reference to each lock that is held. The garbage collector closes a file that nothing
// refers to, which would release the lock of a caller that keeps it until the process ends.
var held sync.Map

// A Lock is held from Acquire to Release, or until the process ends.
type Lock struct {
	file *os.File
}

// A LockedError reports that another process holds the lock.
type LockedError struct {
	Path string
	// PID is the process ID of the holder; 0 if the holder has not written it yet.
	PID int
}

func (e *LockedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("%s is locked by another process", e.Path)
	}
	return fmt.Sprintf("%s is locked by process %d", e.Path, e.PID)
}

// Acquire acquires the lock of the file at path, which it creates if needed, and writes the ID of
// this process into it. It does not wait: the error is a *LockedError if another process holds the
// lock.
func Acquire(path string) (*Lock, error) { return AcquireAs(path, os.Getpid()) }

// AcquireAs is Acquire for a process in a namespace of processes, whose ID is pid for those that read
// the lock.
func AcquireAs(path string, pid int) (*Lock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	if err := lockFile(f, pid); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	l := &Lock{file: f}
	held.Store(l, nil)
	return l, nil
}

// Release releases the lock. It does not delete the file: otherwise one process could lock the
// deleted file while another locks its successor.
func (l *Lock) Release() error {
	held.Delete(l)
	if err := l.file.Close(); err != nil {
		return fmt.Errorf("unlocking %s: %w", l.file.Name(), err)
	}
	return nil
}

func lockFile(f *os.File, pid int) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return &LockedError{Path: f.Name(), PID: ReadHolder(f.Name())}
	}
	if err != nil {
		return fmt.Errorf("locking %s: %w", f.Name(), err)
	}
	if err := writePID(f, pid); err != nil {
		return fmt.Errorf("writing %s: %w", f.Name(), err)
	}
	return nil
}

func writePID(f *os.File, pid int) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(pid)+"\n"), 0)
	return err
}

// ReadHolder returns the pid that was last written into the lock at path, or 0. Only Acquire can
// determine whether that process still holds the lock.
func ReadHolder(path string) int {
	raw, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		return 0
	}
	return pid
}

// TryFile locks an open file until it is closed, without changing its content. It does not wait: it
// returns false if the lock is held through another open file, of this process or of another one.
func TryFile(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("locking %s: %w", f.Name(), err)
	}
	return true, nil
}
