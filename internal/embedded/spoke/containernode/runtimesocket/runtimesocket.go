// Package runtimesocket is the socket through which the kubelet reaches the container runtime. Closing it separates the
// two: loops of the kubelet, such as those that restart containers, go on after the kubelet was stopped.
package runtimesocket

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"

	"hotspare.io/hotspare/internal/embedded/podnetwork"
)

// A Socket forwards connections to the socket of a container runtime.
type Socket struct {
	listener *net.UnixListener
	runtime  string
}

// Listen creates the socket at path, which only its owner can use. runtime is the path of the runtime's socket, which may
// be created later. Serve must follow.
func Listen(path, runtime string) (*Socket, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("creating the socket %s: %w", path, err)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: path})
	if err != nil {
		return nil, fmt.Errorf("creating the socket %s: %w", path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, fmt.Errorf("creating the socket %s: %w", path, errors.Join(err, listener.Close()))
	}
	return &Socket{listener: listener, runtime: runtime}, nil
}

// Serve forwards connections until ctx ends. When it returns, the socket and all of its connections are closed.
func (s *Socket) Serve(ctx context.Context) error {
	var connections sync.WaitGroup
	defer connections.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	context.AfterFunc(ctx, func() { _ = s.listener.Close() }) // ends Accept
	for {
		client, err := s.listener.AcceptUnix()
		if err != nil && ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("accepting a connection to the container runtime: %w", err)
		}
		connections.Go(func() { s.forwardConnection(ctx, client) })
	}
}

// forwardConnection closes the connection if the runtime does not listen: the client connects again.
func (s *Socket) forwardConnection(ctx context.Context, client *net.UnixConn) {
	runtime, err := new(net.Dialer).DialContext(ctx, "unix", s.runtime)
	if err != nil {
		_ = client.Close() // nothing was written
		return
	}
	podnetwork.CopyBoth(ctx, client, runtime.(*net.UnixConn))
}
