// Package faultinject applies the faults of package machine in the program that runs in a machine.
package faultinject

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"k8s.io/klog/v2"

	"hotspare.io/hotspare/internal/embedded/machine"
)

// pollInterval is the interval at which the injected faults are read.
const pollInterval = 200 * time.Millisecond

// A Watcher reads the injected faults of one machine.
type Watcher struct {
	dir string
	// killProcess kills the process immediately; ignoreStopSignal makes it ignore SIGTERM.
	killProcess, ignoreStopSignal func()

	mu      sync.Mutex
	faults  map[machine.Injection]bool
	changed chan struct{} // closed and replaced when faults were added or removed
}

// New returns a Watcher of the machine in dir and reads its faults.
func New(dir string) *Watcher {
	w := &Watcher{dir: dir, killProcess: killOwnProcess, ignoreStopSignal: ignoreSIGTERM, changed: make(chan struct{})}
	w.faults = w.readInjections()
	return w
}

// killOwnProcess ends the process as a power failure does: nothing is closed, and no peer is
// notified. The first process of a namespace of processes, such as a worker that runs containers, ignores the signal, and
// exits with the code that stands for it.
func killOwnProcess() {
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGKILL); err != nil {
		klog.ErrorS(err, "killing this process")
	}
	os.Exit(machine.CrashExitCode)
}

// ignoreSIGTERM makes the process ignore a second SIGTERM: by then, no handler catches it.
func ignoreSIGTERM() { signal.Ignore(syscall.SIGTERM) }

// Run reads the faults periodically until ctx ends. It kills the process if the machine crashes or
// loses its disk.
func (w *Watcher) Run(ctx context.Context) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		w.crashIfInjected()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			w.updateInjections(w.readInjections())
		}
	}
}

func (w *Watcher) readInjections() map[machine.Injection]bool {
	faults := map[machine.Injection]bool{}
	for _, f := range machine.ListInjections(w.dir) {
		faults[f] = true
	}
	return faults
}

// updateInjections records the current faults and wakes all goroutines that wait for a change.
func (w *Watcher) updateInjections(faults map[machine.Injection]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	news := false
	for _, p := range machine.InjectionProfiles() {
		if f := p.Fault; faults[f] != w.faults[f] {
			klog.InfoS("fault", "name", f, "present", faults[f])
			news = true
		}
	}
	if news {
		w.faults = faults
		close(w.changed)
		w.changed = make(chan struct{})
	}
}

// crashIfInjected kills the process if a fault requires it. A crash happens once: the fault is
// removed first, because otherwise the machine would never start again.
func (w *Watcher) crashIfInjected() {
	crash, _ := w.IsInjected(machine.MachineCrash)
	lost, _ := w.IsInjected(machine.DiskLost)
	if crash {
		if err := machine.RemoveInjection(w.dir, machine.MachineCrash); err != nil {
			klog.ErrorS(err, "removing the fault of a crash")
			return
		}
	}
	if crash || lost {
		w.killProcess()
	}
}

// IsInjected reports whether the machine has the fault, and returns a channel that is closed when
// that may have changed.
func (w *Watcher) IsInjected(f machine.Injection) (bool, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.faults[f], w.changed
}

// waitForInjection waits until the machine has the fault, or, if present is false, until it does
// not have it. It returns the error of ctx if ctx ends first.
func (w *Watcher) waitForInjection(ctx context.Context, f machine.Injection, present bool) error {
	for {
		has, changed := w.IsInjected(f)
		if has == present {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// WaitForRemoval waits until the machine does not have the fault. It returns the error of ctx if
// ctx ends first.
func (w *Watcher) WaitForRemoval(ctx context.Context, f machine.Injection) error {
	return w.waitForInjection(ctx, f, false)
}

// SuspendWhileInjected returns a function that runs work while the machine does not have the fault:
// when the fault is injected, the context of work ends; when it is removed, work is called again.
// The function returns the result of work if work returns on its own, and nil when ctx ends.
func (w *Watcher) SuspendWhileInjected(f machine.Injection) func(ctx context.Context, work func(context.Context) error) error {
	return func(ctx context.Context, work func(context.Context) error) error {
		for w.WaitForRemoval(ctx, f) == nil && ctx.Err() == nil {
			cut, err := w.runUntilInjected(ctx, f, work)
			if !cut || ctx.Err() != nil {
				return err
			}
		}
		return nil // ctx has ended
	}
}

// runUntilInjected runs work until the machine has the fault. cut reports whether the fault ended
// work.
func (w *Watcher) runUntilInjected(ctx context.Context, f machine.Injection, work func(context.Context) error) (cut bool, err error) {
	spell, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		if w.waitForInjection(spell, f, true) == nil {
			cancel()
		}
	}()
	err = work(spell)
	return spell.Err() != nil, err
}

// WithHangOnStop returns a context that ends when ctx ends, but not while the fault hang-on-stop is
// injected.
func (w *Watcher) WithHangOnStop(ctx context.Context) (context.Context, context.CancelFunc) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		select {
		case <-life.Done():
			return
		case <-ctx.Done():
		}
		w.updateInjections(w.readInjections()) // the fault may have been injected since the last read
		if hangs, _ := w.IsInjected(machine.HangOnStop); hangs {
			w.ignoreStopSignal()
		}
		if w.WaitForRemoval(life, machine.HangOnStop) == nil {
			cancel()
		}
	}()
	return life, cancel
}
