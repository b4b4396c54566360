// Package quiesce lets the parts of a process rest while the process is frozen.
//
// Some parts must not be frozen in the middle of their work: kube-controller-manager takes nodes for lost if
// it wakes up before their heartbeats, a download holds a lock for which other processes wait, and a
// socket that listens makes clients hang. Such a part runs in a Gate, which ends its context before the
// freeze, and runs it again after the thaw.
package quiesce

import (
	"context"
	"fmt"
	"sync"
)

// A Gate runs parts of a process while it is open. Its zero value is open.
type Gate struct {
	mu     sync.Mutex
	closed bool
	// running is how many parts run.
	running int
	// changed is closed and replaced when closed or running has changed.
	changed chan struct{}
}

// stateChange returns a channel that is closed when the gate changes. The caller must hold g.mu.
func (g *Gate) stateChange() <-chan struct{} {
	if g.changed == nil {
		g.changed = make(chan struct{})
	}
	return g.changed
}

// broadcastChange wakes all that wait. The caller must hold g.mu.
func (g *Gate) broadcastChange() {
	if g.changed != nil {
		close(g.changed)
		g.changed = nil
	}
}

// Run runs part while the gate is open: when the gate closes, the context of part ends; when it opens, part is
// called again. It returns the result of part if part returns on its own, and nil when ctx ends.
func (g *Gate) Run(ctx context.Context, part func(context.Context) error) error {
	for g.enter(ctx) {
		isInterrupted, err := g.runUntilClosed(ctx, part)
		if !isInterrupted || ctx.Err() != nil {
			return err
		}
	}
	return nil // ctx has ended
}

// enter waits until the gate is open and counts a part as running. It returns false if ctx ends first.
func (g *Gate) enter(ctx context.Context) bool {
	for {
		g.mu.Lock()
		if !g.closed {
			g.running++
			g.mu.Unlock()
			return ctx.Err() == nil || g.leave()
		}
		changed := g.stateChange()
		g.mu.Unlock()
		select {
		case <-ctx.Done():
			return false
		case <-changed:
		}
	}
}

// leave counts a part as not running any more. It returns false.
func (g *Gate) leave() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
	g.broadcastChange()
	return false
}

// runUntilClosed runs part until it returns. isInterrupted reports whether the gate was closed before.
func (g *Gate) runUntilClosed(ctx context.Context, part func(context.Context) error) (isInterrupted bool, err error) {
	defer g.leave()
	spell, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		if g.waitUntil(spell, func() bool { return g.closed }) == nil {
			cancel()
		}
	}()
	err = part(spell)
	return spell.Err() != nil, err
}

// waitUntil waits until the gate satisfies holds, which is called with g.mu held.
func (g *Gate) waitUntil(ctx context.Context, holds func() bool) error {
	for {
		g.mu.Lock()
		held, changed := holds(), g.stateChange()
		g.mu.Unlock()
		if held {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		}
	}
}

// Close ends the parts, and returns when none runs any more. If ctx ends first, it returns an error, and the gate stays
// closed.
func (g *Gate) Close(ctx context.Context) error {
	g.setClosed(true)
	if err := g.waitUntil(ctx, func() bool { return g.running == 0 }); err != nil {
		return fmt.Errorf("waiting for the parts that cannot be frozen: %w", err)
	}
	return nil
}

// Open lets the parts run again.
func (g *Gate) Open() { g.setClosed(false) }

func (g *Gate) setClosed(closed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = closed
	g.broadcastChange()
}

// TryRun calls f and returns true if the gate is open; otherwise, it returns false at once. Close waits for f,
// which must end soon when the parts of the gate end.
func (g *Gate) TryRun(f func()) bool {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return false
	}
	g.running++
	g.mu.Unlock()
	defer g.leave()
	f()
	return true
}
