package flock

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
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

func TestALockThatNothingRefersToIsHeld(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	if _, err := Acquire(path); err != nil {
		t.Fatal(err)
	}
	for range 3 { // what is unreachable in one collection is closed at the latest after the next one
		collected := make(chan struct{})
		runtime.AddCleanup(new([64]byte), func(c chan struct{}) { close(c) }, collected)
		runtime.GC()
		<-collected
	}
	var held *LockedError
	if _, err := Acquire(path); !errors.As(err, &held) {
		t.Errorf("after garbage collections, the lock can be acquired again: %v", err)
	}
}

func TestTryFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	open := func() *os.File {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() }) // it may be closed already
		return f
	}
	first, second := open(), open()
	for _, c := range []struct {
		file *os.File
		want bool
	}{{first, true}, {second, false}, {first, true}} {
		if got, err := TryFile(c.file); got != c.want || err != nil {
			t.Errorf("got %v, %v; want %v", got, err, c.want)
		}
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := TryFile(second); !got || err != nil {
		t.Errorf("after the first was closed: %v, %v", got, err)
	}
	if raw, err := os.ReadFile(path); err != nil || string(raw) != "content" {
		t.Errorf("the content is %q, %v", raw, err)
	}
	if got, err := TryFile(first); got || err == nil {
		t.Errorf("a closed file: %v, %v", got, err)
	}
}
