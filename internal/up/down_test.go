package up

import (
	"os"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/embedded/controlplane/flock"
)

func TestReadyIsTheOneThatHasTheFolderNow(t *testing.T) {
	dir, me := t.TempDir(), os.Getpid()
	is := func(pid int, want bool, when string) {
		t.Helper()
		if got := IsReady(dir, pid); got != want {
			t.Errorf("%s: ready is %v", when, got)
		}
	}
	is(me, false, "in an empty folder")
	touch(t, readyPath(dir), time.Now().Add(-time.Hour))
	is(me, false, "with nobody there")
	lock, err := flock.Acquire(LockPath(dir))
	if err != nil {
		t.Fatal(err)
	}
	is(me, false, "with what the one before has left")
	touch(t, readyPath(dir), time.Now().Add(time.Second))
	is(me, true, "when it says so")
	is(me+1, false, "of somebody else")
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
}

// A process that checks whether another one is ready must not be mistaken for the one that has the
// lock.
func TestToAskWhetherOneIsReadyTakesNoLock(t *testing.T) {
	dir, stop, asked := t.TempDir(), make(chan struct{}), make(chan struct{})
	touch(t, readyPath(dir), time.Now().Add(-time.Hour))
	touch(t, LockPath(dir), time.Now().Add(-time.Hour))
	go func() {
		defer close(asked)
		for {
			select {
			case <-stop:
				return
			default:
				IsReady(dir, 1)
			}
		}
	}()
	for range 300 {
		lock, err := flock.Acquire(LockPath(dir))
		if err != nil {
			t.Fatal(err)
		}
		if err := lock.Release(); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	<-asked
}

func touch(t *testing.T, path string, at time.Time) {
	t.Helper()
	if err := os.WriteFile(path, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}
