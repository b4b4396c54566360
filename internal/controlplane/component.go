package controlplane

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A component is one of the programs of a control plane, in a goroutine.
type component struct {
	name   string
	cancel context.CancelFunc
	done   chan struct{} // closed when it has returned
	err    error         // what it returned; to be read after done
}

// errNoReason stands for the reason that a component did not give.
var errNoReason = errors.New("no reason given")

// startComponent runs f until stop. It outlives ctx, so that components can be stopped in
// order, not all at once.
func startComponent(ctx context.Context, name string, f func(context.Context) error) *component {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c := &component{name: name, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.err = f(ctx)
	}()
	return c
}

// stopWithin returns when the component has returned, or after limit: one that is starting, or
// that waits for a component that is gone, may not listen.
func (c *component) stopWithin(limit time.Duration) {
	c.cancel()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-c.done:
	case <-timer.C:
	}
}

// unexpectedExitError says why the component returned although nobody had stopped it.
func (c *component) unexpectedExitError() error {
	if c.err == nil {
		c.err = errNoReason
	}
	return fmt.Errorf("%s ended by itself: %w", c.name, c.err)
}
