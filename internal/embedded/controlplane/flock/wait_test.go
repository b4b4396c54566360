package flock

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
)

func TestWaitReturnsWhenTheLockIsReleased(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "lock")
	first, err := Wait(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	second := make(chan error)
	go func() {
		lock, err := Wait(t.Context(), path)
		if err == nil {
			err = lock.Release()
		}
		second <- err
	}()
	var held *LockedError
	if _, err := Acquire(path); !errors.As(err, &held) {
		t.Errorf("a second holder gets %v", err)
	}
	select {
	case err := <-second:
		t.Fatalf("the second holder did not wait: %v", err)
	default:
	}
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	if err := <-second; err != nil {
		t.Error(err)
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := Wait(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Wait(ctx, path); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	// The abandoned wait must not keep the lock.
	next, err := Wait(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := next.Release(); err != nil {
		t.Error(err)
	}
}
