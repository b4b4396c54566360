package flock

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// Two open files of one process exclude each other like those of two processes.
func TestAcquire(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "lock")
	first, err := Acquire(path)
	if err != nil {
		t.Fatal(err)
	}
	var held *LockedError
	if _, err := Acquire(path); !errors.As(err, &held) || held.PID != os.Getpid() || held.Path != path {
		t.Errorf("a second holder gets %v", err)
	}
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	second, err := Acquire(path)
	if err != nil {
		t.Fatalf("after its release: %v", err)
	}
	if err := second.Release(); err != nil {
		t.Error(err)
	}
}

func TestAcquireWhereNothingCanBeMade(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var held *LockedError
	if _, err := Acquire(filepath.Join(file, "lock")); err == nil || errors.As(err, &held) {
		t.Errorf("below a file: %v", err)
	}
}
