// Package trouble makes the faults of package machine real, in the program that
// runs in a machine.
package trouble

import (
	"context"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"k8s.io/klog/v2"

	"hotspare.io/hotspare/internal/machine"
)

// pollInterval is the time between two looks at the faults.
const pollInterval = 200 * time.Millisecond

// A Watcher reads the injected faults of one machine.
type Watcher struct {
	dir string
	// killProcess ends the process on the spot; deafen lets it not hear SIGTERM any more.
	killProcess, ignoreStopSignal func()

	mu      sync.Mutex
	faults  map[machine.Injection]bool
	changed chan struct{} // closed, and replaced, when faults have come or gone
}

// New looks at the faults of the machine in dir.
func New(dir string) *Watcher {
	w := &Watcher{dir: dir, killProcess: killOwnProcess, ignoreStopSignal: ignoreSIGTERM, changed: make(chan struct{})}
	w.faults = w.readInjections()
	return w
}

// killOwnProcess is the end that a power cut makes: nothing is closed, nobody is told.
func killOwnProcess() {
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGKILL); err != nil {
		klog.ErrorS(err, "surviving a crash")
	}
}

// ignoreSIGTERM is for the second SIGTERM: by then nothing else catches it.
func ignoreSIGTERM() { signal.Ignore(syscall.SIGTERM) }

// Run keeps looking until ctx ends. It is what ends the process if the machine
// crashes or loses its disk.
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

// updateInjections tells those who wait what has come or gone.
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

// crashIfInjected ends the process if it has to. A crash happens once: it is taken off the
// list before, or the machine would never start again.
func (w *Watcher) crashIfInjected() {
	crash, _ := w.IsInjected(machine.MachineCrash)
	lost, _ := w.IsInjected(machine.DiskLost)
	if crash {
		if err := machine.RemoveInjection(w.dir, machine.MachineCrash); err != nil {
			klog.ErrorS(err, "not crashing")
			return
		}
	}
	if crash || lost {
		w.killProcess()
	}
}

// IsInjected reports whether the machine has the fault, and when to ask again.
func (w *Watcher) IsInjected(f machine.Injection) (bool, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.faults[f], w.changed
}

// waitForInjection waits until the machine has the fault, or until it does not. The error is
// that of ctx, if that ends before.
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

// WaitForRemoval waits until the machine does not have the fault. The error is that of ctx,
// if that ends before.
func (w *Watcher) WaitForRemoval(ctx context.Context, f machine.Injection) error {
	return w.waitForInjection(ctx, f, false)
}

// SuspendWhileInjected returns what runs work for as long as the machine does not have the fault:
// when it comes, work's context ends; when it has gone, work is called again. It
// returns what work returns of its own accord, and nil when ctx ends.
func (w *Watcher) SuspendWhileInjected(f machine.Injection) func(ctx context.Context, work func(context.Context) error) error {
	return func(ctx context.Context, work func(context.Context) error) error {
		for w.WaitForRemoval(ctx, f) == nil && ctx.Err() == nil {
			cut, err := w.runUntilInjected(ctx, f, work)
			if !cut || ctx.Err() != nil {
				return err
			}
		}
		return nil // it was told to stop
	}
}

// runUntilInjected runs work until the machine has the fault. cut says whether that was its end.
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

// WithHangOnStop returns a context that ends when ctx does, but not while the machine hangs
// on its stop.
func (w *Watcher) WithHangOnStop(ctx context.Context) (context.Context, context.CancelFunc) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		select {
		case <-life.Done():
			return
		case <-ctx.Done():
		}
		w.updateInjections(w.readInjections()) // it may have come since the last look
		if hangs, _ := w.IsInjected(machine.HangOnStop); hangs {
			w.ignoreStopSignal()
		}
		if w.WaitForRemoval(life, machine.HangOnStop) == nil {
			cancel()
		}
	}()
	return life, cancel
}
