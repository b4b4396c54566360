package podnetwork

import (
	"context"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
	"gvisor.dev/gvisor/pkg/waiter"
	"k8s.io/klog/v2"

	"hotspare.io/hotspare/internal/embedded/machine"
)

// Limits of connections to other networks.
const (
	connectTimeout = 10 * time.Second
	// maxConnecting is how many connections may be in the making.
	maxConnecting = 512
	// maxConnections is how many TCP connections may exist: each takes a file descriptor of the process that also serves
	// the cluster's API.
	maxConnections = 2000
	// maxConversations is how many UDP conversations may exist.
	maxConversations = 512
	// conversationTimeout is how long a UDP conversation lasts after its last packet.
	conversationTimeout = 60 * time.Second
)

// keepAlive is how connections are ended whose pods do not answer: the worker may have been killed.
type keepAlive struct {
	// idle is the time after which a connection without traffic is probed, and interval is the time between probes. After
	// count probes without an answer, the connection ends.
	idle, interval time.Duration
	count          int
}

// podKeepAlive ends a connection after about three minutes, in which a cluster that was frozen has continued.
var podKeepAlive = keepAlive{idle: time.Minute, interval: 15 * time.Second, count: 9}

func (k keepAlive) configure(endpoint tcpip.Endpoint) tcpip.Error {
	endpoint.SocketOptions().SetKeepAlive(true)
	idle, interval := tcpip.KeepaliveIdleOption(k.idle), tcpip.KeepaliveIntervalOption(k.interval)
	if err := endpoint.SetSockOpt(&idle); err != nil {
		return err
	}
	if err := endpoint.SetSockOpt(&interval); err != nil {
		return err
	}
	return endpoint.SetSockOptInt(tcpip.KeepaliveCountOption, k.count)
}

// forwarder makes the connections of pods to other networks from this computer.
type forwarder struct {
	stack *stack.Stack
	// ctx ends with the gateway.
	ctx context.Context //nolint:containedctx // the stack calls the handlers without one
	// allowed reports whether pods may connect to an address.
	allowed func(netip.Addr) bool
	// dial connects to another network.
	dial func(ctx context.Context, network, address string) (net.Conn, error)

	keepAlive keepAlive

	mu            sync.Mutex
	connections   int
	conversations int
}

// install makes the stack pass the connections that nothing in it accepts to the forwarder.
func (f *forwarder) install() {
	f.stack.SetTransportProtocolHandler(tcp.ProtocolNumber, tcp.NewForwarder(f.stack, 0, maxConnecting, f.forwardTCP).HandlePacket)
	handlePacket := udp.NewForwarder(f.stack, f.forwardUDP).HandlePacket
	f.stack.SetTransportProtocolHandler(udp.ProtocolNumber, func(id stack.TransportEndpointID, packet *stack.PacketBuffer) bool {
		// A packet that is not handled is answered by "port unreachable".
		return f.allowed(toAddress(id.LocalAddress)) && f.beginConversation() && handlePacket(id, packet)
	})
}

// IsOutside reports whether pods may connect to an address outside of the cluster. Images are pulled from such addresses only: a
// registry in the cluster has an address of the cluster, where this computer reaches nothing.
func IsOutside(a netip.Addr) bool { return isOutside(a.Unmap()) }

// isOutside reports whether a pod may connect to an address outside of the cluster. It may not
// connect to this computer's loopback interface, where other clusters serve their APIs, nor to
// link-local and other addresses where clouds serve the credentials of their machines. Addresses of the
// cluster that the gateway is asked for do not exist.
func isOutside(a netip.Addr) bool {
	return a.IsGlobalUnicast() && !a.IsLoopback() && !machine.PodNetwork.Contains(a) && !serviceNetwork.Contains(a) && !reserved.Contains(a) &&
		!thisNetwork.Contains(a) && a != alibabaMetadata && a != azureWireServer
}

// Addresses at which clouds serve the credentials of their machines, and that are not link-local.
var (
	alibabaMetadata = netip.MustParseAddr("100.100.100.200")
	azureWireServer = netip.MustParseAddr("168.63.129.16")
)

var (
	// serviceNetwork contains the addresses of Services, as in package controlplane.
	serviceNetwork = netip.MustParsePrefix("172.30.0.0/16")
	// reserved and thisNetwork contain addresses that are not hosts (RFC 6890).
	reserved    = netip.MustParsePrefix("240.0.0.0/4")
	thisNetwork = netip.MustParsePrefix("0.0.0.0/8")
)

func (f *forwarder) forwardTCP(r *tcp.ForwarderRequest) {
	to := netip.AddrPortFrom(toAddress(r.ID().LocalAddress), r.ID().LocalPort)
	if !f.allowed(to.Addr()) || !f.beginConnection() {
		r.Complete(true) // resets it
		return
	}
	defer f.endConnection()
	outside, err := f.dial(f.ctx, "tcp4", to.String())
	if err != nil {
		r.Complete(true)
		return
	}
	defer outside.Close() //nolint:errcheck // CopyBoth has closed what was written
	var queue waiter.Queue
	endpoint, failed := r.CreateEndpoint(&queue)
	r.Complete(false)
	if failed != nil {
		return
	}
	if err := f.keepAlive.configure(endpoint); err != nil {
		klog.FromContext(f.ctx).Info("a connection of a pod is not probed", "to", to.String(), "reason", err.String())
	}
	CopyBoth(f.ctx, gonet.NewTCPConn(&queue, endpoint), outside.(*net.TCPConn))
}

// HalfCloser is a connection of which one direction can be closed.
type HalfCloser interface {
	net.Conn
	CloseWrite() error
}

// CopyBoth copies both directions of a connection until both have ended or ctx ends. It closes both
// connections.
func CopyBoth(ctx context.Context, a, b HalfCloser) {
	stop := context.AfterFunc(ctx, func() { _, _ = a.Close(), b.Close() })
	defer stop()
	var copies sync.WaitGroup
	one := func(to, from HalfCloser) {
		if _, err := io.Copy(to, from); err != nil {
			_, _ = to.Close(), from.Close() // an aborted connection aborts the other one
		}
		_ = to.CloseWrite() // it may be closed already
	}
	copies.Go(func() { one(a, b) })
	copies.Go(func() { one(b, a) })
	copies.Wait()
	_, _ = a.Close(), b.Close()
}

// beginConnection counts a TCP connection. It returns false if there are too many.
func (f *forwarder) beginConnection() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.connections >= maxConnections {
		return false
	}
	f.connections++
	return true
}

func (f *forwarder) endConnection() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.connections--
}

// beginConversation counts a UDP conversation. It returns false if there are too many.
func (f *forwarder) beginConversation() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.conversations >= maxConversations {
		return false
	}
	f.conversations++
	return true
}

func (f *forwarder) endConversation() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.conversations--
}

// forwardUDP is called with the first packet of a conversation.
func (f *forwarder) forwardUDP(r *udp.ForwarderRequest) {
	to := netip.AddrPortFrom(toAddress(r.ID().LocalAddress), r.ID().LocalPort)
	var queue waiter.Queue
	endpoint, failed := r.CreateEndpoint(&queue)
	if failed != nil {
		f.endConversation()
		return
	}
	inside := gonet.NewUDPConn(&queue, endpoint)
	outside, err := f.dial(f.ctx, "udp4", to.String())
	if err != nil {
		f.endConversation()
		_ = inside.Close() // nothing was sent
		return
	}
	go func() {
		defer f.endConversation()
		relay(f.ctx, inside, outside)
	}()
}

// relay relays packets in both directions until none has come for a while or ctx ends. It closes
// both connections.
func relay(ctx context.Context, a, b net.Conn) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	context.AfterFunc(ctx, func() { _, _ = a.Close(), b.Close() })
	idle := time.AfterFunc(conversationTimeout, cancel)
	defer idle.Stop()
	one := func(to, from net.Conn) {
		defer cancel()
		packet := make([]byte, 65535)
		for {
			size, err := from.Read(packet)
			if err != nil {
				return
			}
			idle.Reset(conversationTimeout)
			if _, err := to.Write(packet[:size]); err != nil {
				return
			}
		}
	}
	var relays sync.WaitGroup
	relays.Go(func() { one(a, b) })
	relays.Go(func() { one(b, a) })
	relays.Wait()
}

func toAddress(a tcpip.Address) netip.Addr { return netip.AddrFrom4(a.As4()) }
