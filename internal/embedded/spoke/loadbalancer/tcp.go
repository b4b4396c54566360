package loadbalancer

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"hotspare.io/hotspare/internal/embedded/podnetwork"
)

const (
	// maxConnections is how many connections the Services of a cluster can have together: each takes a
	// file descriptor of the process that also serves the cluster's API.
	maxConnections = 2000
	// socketRetryDelay is the delay after an error of a socket, such as one for lack of file descriptors.
	socketRetryDelay = time.Second
)

// slots limits how many things exist at the same time.
type slots chan struct{}

func (s slots) acquire() bool {
	select {
	case s <- struct{}{}:
		return true
	default:
		return false
	}
}

func (s slots) release() { <-s }

// tcpSocket listens on a TCP port.
type tcpSocket struct {
	*net.TCPListener
	connections slots
}

// serve forwards the connections of clients until ctx ends. It closes the socket and all connections.
func (s *tcpSocket) serve(ctx context.Context, b *balancer) {
	var connections sync.WaitGroup
	defer connections.Wait()
	stop := context.AfterFunc(ctx, func() { _ = s.Close() }) // ends Accept
	defer stop()
	for {
		client, err := s.AcceptTCP()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			pauseAfterError(ctx, s.Addr(), err)
		case !s.connections.acquire():
			resetConnection(client)
		default:
			connections.Go(func() {
				defer s.connections.release()
				forwardConnection(ctx, client, b)
			})
		}
	}
}

// pauseAfterError logs an error of a socket that listens, and waits before it is used again.
func pauseAfterError(ctx context.Context, address net.Addr, err error) {
	klog.FromContext(ctx).Error(err, "will retry", "address", address.String())
	select {
	case <-time.After(socketRetryDelay):
	case <-ctx.Done():
	}
}

// forwardConnection connects a client to an endpoint until both have finished or ctx ends. It closes the
// connection: at once if no endpoint accepts it.
func forwardConnection(ctx context.Context, client *net.TCPConn, b *balancer) {
	from := client.RemoteAddr().(*net.TCPAddr).AddrPort().Addr()
	endpoint, err := b.connect(ctx, "tcp", from)
	if err != nil {
		klog.FromContext(ctx).V(1).Info("closed a connection", "address", client.LocalAddr().String(), "reason", err.Error())
		resetConnection(client)
		return
	}
	podnetwork.CopyBoth(ctx, client, endpoint.Conn.(podnetwork.HalfCloser))
}

// resetConnection closes a connection so that the client sees an error, not the end of a response.
func resetConnection(c *net.TCPConn) {
	_ = c.SetLinger(0) // without it, the connection is only closed
	_ = c.Close()
}

// openTCP listens on a TCP port.
func openTCP(address netip.AddrPort, connections slots) (*tcpSocket, error) {
	l, err := net.ListenTCP("tcp4", net.TCPAddrFromAddrPort(address))
	if err != nil {
		return nil, err
	}
	return &tcpSocket{l, connections}, nil
}
