package spoke

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/net/netutil"
	"golang.org/x/sync/errgroup"

	"hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/embedded/podnetwork"
)

// maxAPIConnections is how many connections of workers and pods to the API may exist: each takes two file descriptors of the
// process that serves the API, and that may have 20,000. Further ones wait until another has ended.
const maxAPIConnections = 4000

// podNetwork is the network of the pods of a cluster whose workers run containers.
type podNetwork struct {
	*podnetwork.Network
	nodes net.Listener // where workers connect to the network
	api   net.Listener // the API at the gateway's address
}

// newPodNetwork creates the network, which Run connects to the workers and the API.
func newPodNetwork(ctx context.Context, dir string) (*podNetwork, error) {
	n, err := podnetwork.New(ctx)
	if err != nil {
		return nil, err
	}
	p := &podNetwork{Network: n}
	if p.nodes, err = listenForNodes(machine.NetworkSocketPath(dir)); err != nil {
		n.Close()
		return nil, err
	}
	if p.api, err = n.Listen(machine.GatewayAPIPort); err != nil {
		n.Close()
		return nil, errors.Join(err, p.nodes.Close())
	}
	return p, nil
}

// listenForNodes listens on a Unix socket whose path may be too long for a socket's address.
func listenForNodes(path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("creating the network of pods: %w", err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("creating the network of pods: removing a socket of an earlier run: %w", err)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("creating the network of pods: %w", err)
	}
	defer dir.Close() //nolint:errcheck // it was only read
	short := fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path))
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: short, Net: "unixpacket"})
	if err != nil {
		return nil, fmt.Errorf("creating the network of pods: %w", err)
	}
	l.SetUnlinkOnClose(false) // the short path is not valid any more
	return l, nil
}

// run connects the workers and serves the API, which listens on a loopback port, at the gateway
// until ctx ends.
func (p *podNetwork) run(ctx context.Context, apiPort int) error {
	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() error { return p.Serve(ctx, p.nodes) })
	work.Go(func() error { return forwardConnections(ctx, netutil.LimitListener(p.api, maxAPIConnections), apiPort) })
	err := work.Wait()
	p.Close()
	return err
}

// dialCluster connects the API server to a node, a pod or another endpoint of a Service. The nodes
// without containers are on this computer's loopback interface.
func (p *podNetwork) dialCluster(ctx context.Context, network, address string) (net.Conn, error) {
	if to, err := netip.ParseAddrPort(address); err == nil && machine.PodNetwork.Contains(to.Addr()) {
		return p.DialContext(ctx, network, address)
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

// forwardConnections connects each connection of the listener to a loopback port, until ctx ends.
func forwardConnections(ctx context.Context, from net.Listener, port int) error {
	var connections sync.WaitGroup
	defer connections.Wait()
	stop := context.AfterFunc(ctx, func() { _ = from.Close() }) // ends Accept
	defer stop()
	for {
		conn, err := from.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("accepting a connection to the API: %w", err)
		}
		connections.Go(func() { forwardConnection(ctx, conn, port) })
	}
}

func forwardConnection(ctx context.Context, from net.Conn, port int) {
	defer from.Close() //nolint:errcheck // both copies have ended
	to, err := net.DialTCP("tcp4", nil, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
	if err != nil {
		return // the API server has ended: the client sees a closed connection
	}
	defer to.Close() //nolint:errcheck // both copies have ended
	stop := context.AfterFunc(ctx, func() { _, _ = from.Close(), to.Close() })
	defer stop()
	var copies sync.WaitGroup
	copies.Go(func() {
		_, _ = io.Copy(to, from) // an error ends the other direction too
		_ = to.CloseWrite()
	})
	copies.Go(func() {
		_, _ = io.Copy(from, to)
		_ = from.Close()
	})
	copies.Wait()
}
