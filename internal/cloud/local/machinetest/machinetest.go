// Package machinetest provides a machine that does nothing, for tests: a small process in place of a
// control plane or a node. It keeps the contract of package machine: it acquires the lock of its
// folder, and it stops on SIGTERM and at the end of its standard input.
//
// A test binary acts as a stand-in by calling Main first in its TestMain.
package machinetest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"hotspare.io/hotspare/internal/embedded/controlplane/flock"
	"hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/embedded/processtree"
)

// An Injection is a fault that is deliberately injected into a stand-in's machine.
type Injection string

const (
	// ExitAtOnce makes the machine print this text and exit immediately.
	ExitAtOnce Injection = "fatal: the disk is on fire"
	// IgnoreStop makes the machine ignore SIGTERM and the end of its standard input.
	IgnoreStop Injection = "deaf"
	// IgnoreFreeze makes a control plane ignore the command to come to rest.
	IgnoreFreeze Injection = "restless"
)

// Inject sets the fault that the machine in dir has from its next start.
func Inject(t *testing.T, dir string, f Injection) {
	t.Helper()
	if err := os.WriteFile(injectionPath(dir), []byte(f), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Command returns the command that starts this test binary as a machine.
func Command(t *testing.T) []string {
	t.Helper()
	t.Setenv("GORACE", "atexit_sleep_ms=0") // otherwise each machine takes a second to exit
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{exe}
}

// Main returns if this process is a test. If this process was started as a machine, Main runs the
// machine, calls work meanwhile if it is not nil, and exits when the machine ends.
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
		ctx = contextUntilEOF(ctx, dir)
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

// contextUntilEOF returns a context that ends when standard input ends, if the parent has declared
// that it holds the other end of the pipe. Meanwhile, it follows the parent's commands.
func contextUntilEOF(ctx context.Context, dir string) context.Context {
	if os.Getenv("HOTSPARE_PARENT_PIPE") != "1" {
		return ctx
	}
	if err := processtree.ContinueWhenParentDies(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel() // an error also ends it
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			if err := followCommand(dir, lines.Text()); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}
	}()
	return ctx
}

// followCommand does at once what a control plane does when its parts rest.
func followCommand(dir, command string) error {
	switch {
	case ReadInjection(dir) == IgnoreFreeze:
		return nil
	case command == machine.CommandFreeze:
		return os.WriteFile(machine.QuiescedPath(dir), nil, 0o600)
	default:
		return os.Remove(machine.QuiescedPath(dir))
	}
}

func injectionPath(dir string) string { return filepath.Join(dir, "fault") }

// ReadInjection returns the fault of the machine in dir, or "" if it has none.
func ReadInjection(dir string) Injection {
	raw, err := os.ReadFile(injectionPath(dir))
	if err != nil {
		return ""
	}
	return Injection(raw)
}
