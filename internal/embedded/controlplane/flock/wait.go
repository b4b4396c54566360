package flock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Wait acquires the lock like Acquire, but waits while another process holds it. If the context ends
// first, it returns the error of the context.
func Wait(ctx context.Context, path string) (*Lock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	locked := make(chan error, 1)
	go func() { locked <- waitForFile(f) }()
	select {
	case err = <-locked:
	case <-ctx.Done():
		// The wait cannot be interrupted: the lock is released as soon as it is acquired.
		go func() { _ = errors.Join(<-locked, f.Close()) }() // nobody waits for it any more
		return nil, fmt.Errorf("waiting for the lock %s: %w", path, ctx.Err())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s: %w", path, err), f.Close())
	}
	return &Lock{file: f}, nil
}

func waitForFile(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		return writePID(f, os.Getpid())
	}
}
