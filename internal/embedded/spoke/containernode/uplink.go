//go:build linux

package containernode

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
)

// uplink is the current connection to the control plane; it loses frames while there is none.
type uplink struct {
	mu   sync.Mutex
	conn net.Conn
}

func (u *uplink) set(conn net.Conn) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.conn = conn
}

func (u *uplink) send(frame []byte) {
	u.mu.Lock()
	conn := u.conn
	u.mu.Unlock()
	if conn != nil {
		_, _ = conn.Write(frame) // a broken connection is replaced where it is read
	}
}

// heartbeatGate lets heartbeats pass while it is open.
type heartbeatGate struct {
	mu   sync.Mutex
	open int
}

// openUntilDone opens the gate until ctx ends.
func (g *heartbeatGate) openUntilDone(ctx context.Context) error {
	g.add(1)
	defer g.add(-1)
	<-ctx.Done()
	return nil
}

func (g *heartbeatGate) add(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open += n
}

func (g *heartbeatGate) isOpen() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open > 0
}

// errGateClosed is the error of a heartbeat while the gate is closed.
var errGateClosed = errors.New("the fault node-never-ready is injected: the node sends no heartbeats")

// wrap returns a transport that fails while the gate is closed.
func (g *heartbeatGate) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if !g.isOpen() {
			return nil, errGateClosed
		}
		return next.RoundTrip(r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (t roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }
