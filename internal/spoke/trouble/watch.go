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

// look is the time between two looks at the faults.
const look = 200 * time.Millisecond

// A Watch knows the faults of one machine.
type Watch struct {
	dir string
	// die ends the process on the spot; deafen lets it not hear SIGTERM any more.
	die, deafen func()

	mu      sync.Mutex
	faults  map[machine.Fault]bool
	changed chan struct{} // closed, and replaced, when faults have come or gone
}

// New looks at the faults of the machine in dir.
func New(dir string) *Watch {
	w := &Watch{dir: dir, die: kill, deafen: deafen, changed: make(chan struct{})}
	w.faults = w.read()
	return w
}

// kill is the end that a power cut makes: nothing is closed, nobody is told.
func kill() {
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGKILL); err != nil {
		klog.ErrorS(err, "surviving a crash")
	}
}

// deafen is for the second SIGTERM: by then nothing else catches it.
func deafen() { signal.Ignore(syscall.SIGTERM) }

// Run keeps looking until ctx ends. It is what ends the process if the machine
// crashes or loses its disk.
func (w *Watch) Run(ctx context.Context) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		w.crash()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			w.note(w.read())
		}
	}
}

func (w *Watch) read() map[machine.Fault]bool {
	faults := map[machine.Fault]bool{}
	for _, f := range machine.FaultsOf(w.dir) {
		faults[f] = true
	}
	return faults
}

// note tells those who wait what has come or gone.
func (w *Watch) note(faults map[machine.Fault]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	news := false
	for _, p := range machine.Profiles() {
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

// crash ends the process if it has to. A crash happens once: it is taken off the
// list before, or the machine would never start again.
func (w *Watch) crash() {
	crash, _ := w.Has(machine.MachineCrash)
	lost, _ := w.Has(machine.DiskLost)
	if crash {
		if err := machine.Heal(w.dir, machine.MachineCrash); err != nil {
			klog.ErrorS(err, "not crashing")
			return
		}
	}
	if crash || lost {
		w.die()
	}
}

// Has reports whether the machine has the fault, and when to ask again.
func (w *Watch) Has(f machine.Fault) (bool, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.faults[f], w.changed
}

// await waits until the machine has the fault, or until it does not. The error is
// that of ctx, if that ends before.
func (w *Watch) await(ctx context.Context, f machine.Fault, present bool) error {
	for {
		has, changed := w.Has(f)
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

// Healed waits until the machine does not have the fault. The error is that of ctx,
// if that ends before.
func (w *Watch) Healed(ctx context.Context, f machine.Fault) error { return w.await(ctx, f, false) }

// Spare returns what runs work for as long as the machine does not have the fault:
// when it comes, work's context ends; when it has gone, work is called again. It
// returns what work returns of its own accord, and nil when ctx ends.
func (w *Watch) Spare(f machine.Fault) func(ctx context.Context, work func(context.Context) error) error {
	return func(ctx context.Context, work func(context.Context) error) error {
		for w.Healed(ctx, f) == nil && ctx.Err() == nil {
			cut, err := w.until(ctx, f, work)
			if !cut || ctx.Err() != nil {
				return err
			}
		}
		return nil // it was told to stop
	}
}

// until runs work until the machine has the fault. cut says whether that was its end.
func (w *Watch) until(ctx context.Context, f machine.Fault, work func(context.Context) error) (cut bool, err error) {
	spell, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		if w.await(spell, f, true) == nil {
			cancel()
		}
	}()
	err = work(spell)
	return spell.Err() != nil, err
}

// Deaf returns a context that ends when ctx does, but not while the machine hangs
// on its stop.
func (w *Watch) Deaf(ctx context.Context) (context.Context, context.CancelFunc) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		select {
		case <-life.Done():
			return
		case <-ctx.Done():
		}
		w.note(w.read()) // it may have come since the last look
		if hangs, _ := w.Has(machine.HangOnStop); hangs {
			w.deafen()
		}
		if w.Healed(life, machine.HangOnStop) == nil {
			cancel()
		}
	}()
	return life, cancel
}
