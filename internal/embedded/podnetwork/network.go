// Package podnetwork is the network of the pods of one local cluster, in this process.
//
// It is an Ethernet switch with a gateway. Each node of the cluster that runs containers is
// connected to the switch by a socket that carries Ethernet frames. The gateway has the first
// address of the network. Through it, this process reaches nodes and pods, serves them (the API,
// DNS), and gives them a way out: it accepts their connections to other networks and makes the same
// connections from this computer.
//
// The computer's own network has no interface, address, route or firewall rule of a cluster.
// Therefore nothing is left when the process ends, however it ends; clusters may use the same
// addresses; and no right of the computer's administrator is needed.
package podnetwork

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/sync/errgroup"

	"hotspare.io/hotspare/internal/embedded/machine"
)

// MTU is the largest size of an IP packet, in bytes.
const MTU = 9000

// A Network is the network of the pods of one cluster. Its methods are safe for concurrent use.
type Network struct {
	ethernet *ethernetSwitch
	gateway  *gateway
}

// New returns a network without nodes. Close releases its resources. When ctx ends, the connections to
// other networks end.
func New(ctx context.Context) (*Network, error) {
	s := newEthernetSwitch()
	g, err := newGateway(ctx, s.connect())
	if err != nil {
		return nil, fmt.Errorf("creating a network of pods: %w", err)
	}
	return &Network{ethernet: s, gateway: g}, nil
}

// Close ends all connections of the gateway.
func (n *Network) Close() { n.gateway.close() }

// Serve connects the nodes that connect to the listener, whose connections preserve the boundaries
// of messages (unixpacket), until ctx ends. It closes the listener.
func (n *Network) Serve(ctx context.Context, listener net.Listener) error {
	nodes, ctx := errgroup.WithContext(ctx)
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() }) // ends Accept
	defer stop()
	for {
		conn, err := listener.Accept()
		if err != nil {
			_ = listener.Close() // closed already, if ctx has ended
			waited := nodes.Wait()
			if errors.Is(err, net.ErrClosed) {
				return waited
			}
			return errors.Join(fmt.Errorf("accepting a node's connection to the network of pods: %w", err), waited)
		}
		nodes.Go(func() error {
			n.ServeNode(ctx, conn)
			return nil
		})
	}
}

// ServeNode connects a node until its connection breaks or ctx ends. It closes the connection.
func (n *Network) ServeNode(ctx context.Context, conn net.Conn) {
	p := n.ethernet.connect()
	defer p.disconnect()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	context.AfterFunc(ctx, func() { _ = conn.Close() }) // ends both loops
	go func() {
		defer cancel()
		for frame := range p.received(ctx) {
			if _, err := conn.Write(frame); err != nil && !isDropped(err) {
				return
			}
		}
	}()
	buffer := make([]byte, maxFrame)
	for {
		size, err := conn.Read(buffer)
		if err != nil {
			return
		}
		p.send(buffer[:size])
	}
}

// DialContext connects from the gateway to a TCP port of a node or pod. The address is an IP
// address of machine.PodNetwork and a port.
func (n *Network) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if network != "tcp" && network != "tcp4" {
		return nil, &net.OpError{Op: "dial", Net: network, Err: net.UnknownNetworkError(network)}
	}
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, fmt.Errorf("connecting to the network of pods: %q is not an IP address and a port: %w", address, err)
	}
	if !machine.PodNetwork.Contains(to.Addr()) {
		return nil, fmt.Errorf("connecting to the network of pods: %s is not an address in %s", to.Addr(), machine.PodNetwork)
	}
	return n.gateway.dial(ctx, to)
}

// DialEndpoint connects to an endpoint of a Service, by "tcp" or "udp": from the gateway to a node or
// pod, and from this computer to an address in another network, if pods may connect to it. A TCP
// connection is a HalfCloser. The gateway's own address is no endpoint.
func (n *Network) DialEndpoint(ctx context.Context, network string, to netip.AddrPort) (net.Conn, error) {
	inside := machine.PodNetwork.Contains(to.Addr())
	switch {
	case network != "tcp" && network != "udp":
		return nil, &net.OpError{Op: "dial", Net: network, Err: net.UnknownNetworkError(network)}
	case !to.Addr().Is4() || to.Addr() == machine.Gateway || !inside && !isOutside(to.Addr()):
		return nil, fmt.Errorf("connecting to an endpoint: pods may not connect to %s", to.Addr())
	case !inside:
		return (&net.Dialer{Timeout: connectTimeout}).DialContext(ctx, network, to.String())
	case network == "udp":
		return n.gateway.dialUDP(to)
	default:
		return n.gateway.dial(ctx, to)
	}
}

// Listen listens on a TCP port of the gateway.
func (n *Network) Listen(port uint16) (net.Listener, error) { return n.gateway.listen(port) }

// ListenPacket listens on a UDP port of the gateway.
func (n *Network) ListenPacket(port uint16) (net.PacketConn, error) {
	return n.gateway.listenPacket(port)
}
