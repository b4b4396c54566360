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
	done   chan struct{} // closed when the component has returned
	err    error         // what the component returned; read it only after done is closed
}

// errNoReason is the error of a component that returned none.
var errNoReason = errors.New("no reason given")

// startComponent runs f until the component is stopped. The component does not end with ctx, so
// that components can be stopped in order, not all at once.
func startComponent(ctx context.Context, name string, f func(context.Context) error) *component {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c := &component{name: name, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.err = f(ctx)
	}()
	return c
}

// stopWithin stops the component and returns when it has returned, or after limit: a component that
// is starting, or that waits for a component that has ended, may ignore the cancellation.
func (c *component) stopWithin(limit time.Duration) {
	c.cancel()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-c.done:
	case <-timer.C:
	}
}

// unexpectedExitError returns the reason why the component returned without having been stopped.
func (c *component) unexpectedExitError() error {
	if c.err == nil {
		c.err = errNoReason
	}
	return fmt.Errorf("%s ended unexpectedly: %w", c.name, c.err)
}
