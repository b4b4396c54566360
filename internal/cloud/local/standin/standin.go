// Package standin is a machine that does nothing, for tests: a small process in
// place of a control plane or a node. It keeps the contract of package machine:
// it takes the lock of its folder, and stops at SIGTERM and at the end of its
// standard input.
//
// A test binary plays it by calling Main first in its TestMain.
package standin

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"hotspare.io/hotspare/internal/controlplane/flock"
	"hotspare.io/hotspare/internal/machine"
)

// An Injection is a fault that a stand-in's machine has on purpose.
type Injection string

const (
	// ExitAtOnce makes it print Fatal and exit at once.
	ExitAtOnce Injection = "fatal: the disk is on fire"
	// IgnoreStop makes it ignore SIGTERM and the end of its standard input.
	IgnoreStop Injection = "deaf"
)

// Inject gives the machine in dir a fault for its next start.
func Inject(t *testing.T, dir string, f Injection) {
	t.Helper()
	if err := os.WriteFile(injectionPath(dir), []byte(f), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Command returns how this test binary is started as a machine.
func Command(t *testing.T) []string {
	t.Helper()
	t.Setenv("GORACE", "atexit_sleep_ms=0") // else each machine takes a second to exit
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{exe}
}

// Main returns if this process is a test. If it was started as a machine, Main
// plays it and exits; with work, if not nil, done meanwhile.
func Main(work func(ctx context.Context, dir string) error) {
	i := slices.Index(os.Args, "--dir")
	if i != 3 || len(os.Args) != 5 || os.Args[1] != "machine" || os.Args[2] != "run" {
		return
	}
	if err := runMachine(os.Args[4], work); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func runMachine(dir string, work func(context.Context, string) error) error {
	lock, err := flock.Acquire(machine.LockPath(dir))
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	switch f := ReadInjection(dir); f {
	case ExitAtOnce:
		return fmt.Errorf("%s", f)
	case IgnoreStop:
		ctx = context.WithoutCancel(ctx)
	default:
		ctx = contextUntilEOF(ctx)
	}
	fmt.Println("standing in")
	if work != nil {
		if err := work(ctx, dir); err != nil {
			return err
		}
	}
	if ctx.Done() == nil {
		select {}
	}
	<-ctx.Done()
	return lock.Release()
}

// contextUntilEOF ends ctx when standard input ends, if the parent says that it holds it.
func contextUntilEOF(ctx context.Context) context.Context {
	if os.Getenv("HOTSPARE_PARENT_PIPE") != "1" {
		return ctx
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, os.Stdin) // an error ends it as well
	}()
	return ctx
}

func injectionPath(dir string) string { return filepath.Join(dir, "fault") }

// ReadInjection returns the fault of the machine in dir, "" if it is well.
func ReadInjection(dir string) Injection {
	raw, err := os.ReadFile(injectionPath(dir))
	if err != nil {
		return ""
	}
	return Injection(raw)
}
