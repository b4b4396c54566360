package faultinject

import (
	"context"
	"net"
	"sync"

	"hotspare.io/hotspare/internal/embedded/machine"
)

// WrapListener returns a listener that accepts the connections of l. While the fault api-silent is
// injected, nothing is read from these connections or written to them, including connections that
// were open before. When ctx ends, waiting reads and writes return as if the connection were
// closed, so that a silent machine stops as fast as others.
func (w *Watcher) WrapListener(ctx context.Context, l net.Listener) net.Listener {
	return listener{l, ctx, w}
}

type listener struct {
	net.Listener
	ctx   context.Context //nolint:containedctx // Accept has no context parameter
	watch *Watcher
}

// Accept implements net.Listener.
func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	open, end := context.WithCancel(l.ctx)
	return &conn{Conn: c, watch: l.watch, open: open, cancelWait: sync.OnceFunc(end)}, nil
}

type conn struct {
	net.Conn
	watch      *Watcher
	open       context.Context //nolint:containedctx // a connection that is closed waits for nothing
	cancelWait func()
}

// Read implements net.Conn. It delivers data that arrived before or during the fault after the
// fault is removed.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.watch.WaitForRemoval(c.open, machine.APISilent) != nil {
		return 0, net.ErrClosed
	}
	return n, err
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	if c.watch.WaitForRemoval(c.open, machine.APISilent) != nil {
		return 0, net.ErrClosed
	}
	return c.Conn.Write(p)
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.cancelWait()
	return c.Conn.Close()
}
