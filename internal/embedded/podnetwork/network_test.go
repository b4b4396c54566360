package podnetwork

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/channel"
	"gvisor.dev/gvisor/pkg/tcpip/link/ethernet"
	"gvisor.dev/gvisor/pkg/tcpip/network/arp"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"

	"hotspare.io/hotspare/internal/embedded/machine"
)

// testNode is a node in this process: a TCP/IP stack at the other end of a node's socket.
type testNode struct {
	stack   *stack.Stack
	address netip.Addr
	conn    net.Conn
}

// newTestNetwork returns a network whose nodes connect to a socket.
func newTestNetwork(t *testing.T) (*Network, string) {
	t.Helper()
	n, err := New(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	dir, err := os.MkdirTemp("", "net") //nolint:usetesting // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	l, err := net.Listen("unixpacket", path)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- n.Serve(t.Context(), l) }()
	t.Cleanup(func() {
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return n, path
}

// connectNode connects a node with an address in machine.PodNetwork.
func connectNode(t *testing.T, path, address string) *testNode {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "unixpacket", path)
	if err != nil {
		t.Fatal(err)
	}
	own := netip.MustParseAddr(address)
	hardware := append([]byte{0x0a, 0x58}, own.AsSlice()...)
	link := channel.New(64, maxFrame, tcpip.LinkAddress(hardware))
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol, arp.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol, udp.NewProtocol},
	})
	if err := s.CreateNIC(nic, ethernet.New(link)); err != nil {
		t.Fatal(err)
	}
	with := tcpip.AddressWithPrefix{Address: toStackAddress(own), PrefixLen: machine.PodNetwork.Bits()}
	if err := s.AddProtocolAddress(nic, tcpip.ProtocolAddress{Protocol: ipv4.ProtocolNumber, AddressWithPrefix: with}, stack.AddressProperties{}); err != nil {
		t.Fatal(err)
	}
	s.SetRouteTable([]tcpip.Route{
		{Destination: with.Subnet(), NIC: nic},
		{Destination: tcpip.AddressWithPrefix{Address: tcpip.AddrFrom4([4]byte{}), PrefixLen: 0}.Subnet(), Gateway: toStackAddress(machine.Gateway), NIC: nic},
	})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		for {
			packet := link.ReadContext(ctx)
			if packet == nil {
				return
			}
			view := packet.ToView()
			_, _ = conn.Write(view.AsSlice())
			view.Release()
			packet.DecRef()
		}
	}()
	go func() {
		frame := make([]byte, maxFrame)
		for {
			size, err := conn.Read(frame)
			if err != nil {
				return
			}
			packet := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(bytes.Clone(frame[:size]))})
			link.InjectInbound(0, packet)
			packet.DecRef()
		}
	}()
	t.Cleanup(func() {
		cancel()
		_ = conn.Close()
		s.Close()
	})
	return &testNode{stack: s, address: own, conn: conn}
}

// serveEcho answers each connection with what it receives.
func (n *testNode) serveEcho(t *testing.T, port uint16) {
	t.Helper()
	l, err := gonet.ListenTCP(n.stack, toFullAddress(netip.AddrPortFrom(n.address, port)), ipv4.ProtocolNumber)
	if err != nil {
		t.Fatal(err)
	}
	go echo(l)
}

func echo(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			_, _ = io.Copy(conn, conn)
			_ = conn.Close()
		}()
	}
}

func (n *testNode) dial(t *testing.T, to string) (net.Conn, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	return gonet.DialContextTCP(ctx, n.stack, toFullAddress(netip.MustParseAddrPort(to)), ipv4.ProtocolNumber)
}

// checkEcho sends size bytes and expects them back.
func checkEcho(t *testing.T, conn net.Conn, size int) {
	t.Helper()
	sent := bytes.Repeat([]byte("0123456789abcdef"), size/16)
	go func() {
		_, _ = conn.Write(sent)
		_ = conn.(HalfCloser).CloseWrite()
	}()
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	got, err := io.ReadAll(conn)
	if err != nil || !bytes.Equal(got, sent) {
		t.Errorf("received %d bytes of %d: %v", len(got), len(sent), err)
	}
	_ = conn.Close()
}

func TestTheGatewayAndNodesReachEachOther(t *testing.T) {
	n, path := newTestNetwork(t)
	a, b := connectNode(t, path, "10.128.0.2"), connectNode(t, path, "10.128.0.3")
	a.serveEcho(t, 80)
	conn, err := n.DialContext(t.Context(), "tcp", "10.128.0.2:80")
	if err != nil {
		t.Fatal(err)
	}
	checkEcho(t, conn, 1<<20)
	if conn, err = b.dial(t, "10.128.0.2:80"); err != nil {
		t.Fatal(err)
	}
	checkEcho(t, conn, 1<<20)
	l, err := n.Listen(6443)
	if err != nil {
		t.Fatal(err)
	}
	go echo(l)
	defer l.Close()
	if conn, err = b.dial(t, "10.128.0.1:6443"); err != nil {
		t.Fatal(err)
	}
	checkEcho(t, conn, 1<<16)
}

func TestANodeThatConnectsAgainIsReached(t *testing.T) {
	n, path := newTestNetwork(t)
	first := connectNode(t, path, "10.128.0.2")
	if _, err := first.dial(t, "10.128.0.1:9"); err == nil { // the switch learns its address
		t.Fatal("nothing listens there")
	}
	_ = first.conn.Close()
	second := connectNode(t, path, "10.128.0.2")
	second.serveEcho(t, 80)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	conn, err := n.DialContext(ctx, "tcp", "10.128.0.2:80")
	if err != nil {
		t.Fatal(err)
	}
	checkEcho(t, conn, 1<<16)
}

func TestPodsReachOtherNetworksButNotThisComputer(t *testing.T) {
	_, path := newTestNetwork(t)
	node := connectNode(t, path, "10.128.0.2")
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go echo(l)
	port := l.Addr().(*net.TCPAddr).Port
	for _, host := range []string{"127.0.0.1", "169.254.169.254", "10.128.0.1", "10.129.3.4", "172.30.0.99"} {
		if _, err := node.dial(t, fmt.Sprintf("%s:%d", host, port)); err == nil {
			t.Errorf("a pod reaches %s", host)
		}
	}
}

func TestWhatIsOutside(t *testing.T) {
	for address, want := range map[string]bool{
		"8.8.8.8":         true,
		"192.168.1.10":    true,
		"10.0.0.1":        true,
		"172.16.0.1":      true,
		"127.0.0.1":       false,
		"127.8.9.1":       false,
		"0.0.0.0":         false,
		"0.1.2.3":         false,
		"169.254.169.254": false,
		"224.0.0.1":       false,
		"255.255.255.255": false,
		"240.0.0.1":       false,
		"10.128.0.1":      false,
		"10.131.255.255":  false,
		"172.30.0.1":      false,
		"100.100.100.200": false,
		"168.63.129.16":   false,
		"168.63.129.17":   true,
	} {
		if got := isOutside(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s is outside: %t", address, got)
		}
	}
}

// A registry in the cluster is not asked by this computer, which would reach another host, or none, at its address.
func TestImagesArePulledFromOutside(t *testing.T) {
	for address, want := range map[string]bool{
		"8.8.8.8": true, "10.128.0.5": false, "172.30.0.1": false, "127.0.0.1": false, "169.254.169.254": false, "::ffff:100.100.100.200": false,
	} {
		if got := IsOutside(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: %t", address, got)
		}
	}
}

// A ping of an address that nobody has is not answered, whoever waits for that address.
func TestTheGatewayAnswersPingsOfItsOwnAddressOnly(t *testing.T) {
	frame := func(to string, protocol tcpip.TransportProtocolNumber, message ...byte) []byte {
		f := make([]byte, headerSize+header.IPv4MinimumSize, maxFrame)
		copy(f, gatewayHardwareAddress[:])
		f[12] = 0x08 // IPv4
		header.IPv4(f[headerSize:]).Encode(&header.IPv4Fields{
			TotalLength: uint16(header.IPv4MinimumSize + len(message)), TTL: 64, Protocol: uint8(protocol),
			SrcAddr: toStackAddress(netip.MustParseAddr("10.128.0.2")), DstAddr: toStackAddress(netip.MustParseAddr(to)),
		})
		return append(f, message...)
	}
	ping, unreachable := byte(header.ICMPv4Echo), byte(header.ICMPv4DstUnreachable)
	for name, tc := range map[string]struct {
		frame []byte
		want  bool
	}{
		"a ping of the gateway":           {frame("10.128.0.1", header.ICMPv4ProtocolNumber, ping, 0, 0, 0, 0, 0, 0, 0), true},
		"a ping of another address":       {frame("203.0.113.7", header.ICMPv4ProtocolNumber, ping, 0, 0, 0, 0, 0, 0, 0), false},
		"an answer to another address":    {frame("203.0.113.7", header.ICMPv4ProtocolNumber, unreachable, 3, 0, 0), true},
		"a connection to another address": {frame("203.0.113.7", header.TCPProtocolNumber, ping), true},
		"half a packet":                   {frame("203.0.113.7", header.TCPProtocolNumber)[:headerSize+10], false},
		"a ping without a message":        {frame("203.0.113.7", header.ICMPv4ProtocolNumber), true},
	} {
		if got := isForGateway(tc.frame); got != tc.want {
			t.Errorf("%s is for the gateway: %t", name, got)
		}
	}
}

// otherNetwork is an address in another network.
const otherNetwork = "203.0.113.7:80"

// forwardTo makes a server on this computer stand for otherNetwork.
func forwardTo(t *testing.T, n *Network, server net.Addr) *forwarder {
	t.Helper()
	f := &forwarder{
		stack: n.gateway.stack, ctx: t.Context(), allowed: isOutside, keepAlive: podKeepAlive,
		dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			if address != otherNetwork {
				return nil, fmt.Errorf("dialed %s", address)
			}
			return new(net.Dialer).DialContext(ctx, network, server.String())
		},
	}
	f.install()
	return f
}

func TestAConnectionIsForwardedToAnotherNetwork(t *testing.T) {
	n, path := newTestNetwork(t)
	node := connectNode(t, path, "10.128.0.2")
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go echo(l)
	forwardTo(t, n, l.Addr())
	conn, err := node.dial(t, otherNetwork)
	if err != nil {
		t.Fatal(err)
	}
	checkEcho(t, conn, 1<<20)
}

func TestTheNumberOfConnectionsToOtherNetworksIsLimited(t *testing.T) {
	n, path := newTestNetwork(t)
	node := connectNode(t, path, "10.128.0.2")
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go echo(l)
	f := forwardTo(t, n, l.Addr())
	f.connections = maxConnections - 1
	last, err := node.dial(t, otherNetwork)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := node.dial(t, otherNetwork); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("one connection too many: %v", err)
	}
	checkEcho(t, last, 1<<16)                             // closes it
	for deadline := time.Now().Add(20 * time.Second); ; { // until its end is noticed
		conn, err := node.dial(t, otherNetwork)
		if err == nil {
			checkEcho(t, conn, 1<<16)
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("a connection that ended counts: %v", err)
		}
	}
}

func TestConnectionsOfAKilledWorkerEnd(t *testing.T) {
	n, path := newTestNetwork(t)
	node := connectNode(t, path, "10.128.0.2")
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	forwardTo(t, n, l.Addr()).keepAlive = keepAlive{idle: 20 * time.Millisecond, interval: 20 * time.Millisecond, count: 2}
	if _, err := node.dial(t, otherNetwork); err != nil {
		t.Fatal(err)
	}
	outside, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer outside.Close()
	_ = node.conn.Close()
	_ = outside.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := outside.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("it is open: %v", err)
	}
}

func TestPacketsAreForwardedToAnotherNetworkAndBack(t *testing.T) {
	n, path := newTestNetwork(t)
	node := connectNode(t, path, "10.128.0.2")
	server, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		packet := make([]byte, 1500)
		for {
			size, from, err := server.ReadFrom(packet)
			if err != nil {
				return
			}
			_, _ = server.WriteTo(packet[:size], from)
		}
	}()
	forwardTo(t, n, server.LocalAddr())
	to := toFullAddress(netip.MustParseAddrPort(otherNetwork))
	conn, err := gonet.DialUDP(node.stack, nil, &to, ipv4.ProtocolNumber)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for i := range 3 {
		checkAnswer(t, conn, fmt.Sprintf("packet %d", i))
	}
}

// checkAnswer sends a packet until it comes back: packets may be lost.
func checkAnswer(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	answer := make([]byte, 1500)
	for range 20 {
		if _, err := conn.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(time.Second))
		if size, err := conn.Read(answer); err == nil {
			if string(answer[:size]) == text {
				return
			}
			t.Logf("got %q: it came late", answer[:size])
		}
	}
	t.Fatal("no answer")
}

func TestOnlyAddressesOfTheNetworkCanBeDialed(t *testing.T) {
	n, _ := newTestNetwork(t)
	for _, address := range []string{"127.0.0.1:80", "10.132.0.1:80", "example.com:80", "10.128.0.2", ""} {
		if _, err := n.DialContext(t.Context(), "tcp", address); err == nil {
			t.Errorf("%q was dialed", address)
		}
	}
	if _, err := n.DialContext(t.Context(), "udp", "10.128.0.2:80"); err == nil {
		t.Error("udp was dialed")
	}
}

func TestAnEndpointIsDialedByTCPAndUDP(t *testing.T) {
	n, path := newTestNetwork(t)
	node := connectNode(t, path, "10.128.0.2")
	node.serveEcho(t, 80)
	local := toFullAddress(netip.MustParseAddrPort("10.128.0.2:53"))
	server, err := gonet.DialUDP(node.stack, &local, nil, ipv4.ProtocolNumber)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		packet := make([]byte, 1500)
		for {
			size, from, err := server.ReadFrom(packet)
			if err != nil {
				return
			}
			_, _ = server.WriteTo(packet[:size], from)
		}
	}()
	conn, err := n.DialEndpoint(t.Context(), "tcp", netip.MustParseAddrPort("10.128.0.2:80"))
	if err != nil {
		t.Fatal(err)
	}
	checkEcho(t, conn, 1<<16)
	if conn, err = n.DialEndpoint(t.Context(), "udp", netip.MustParseAddrPort("10.128.0.2:53")); err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	checkAnswer(t, conn, "packet")
}

// TestNoEndpointLeadsToThisComputer tests that whoever writes an EndpointSlice gets no further than a pod.
func TestNoEndpointLeadsToThisComputer(t *testing.T) {
	n, _ := newTestNetwork(t)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).AddrPort().Port()
	for _, host := range []string{"127.0.0.1", "127.130.1.2", "::ffff:127.0.0.1", "::ffff:10.128.0.2", "::1", "2001:db8::1", "0.0.0.0", "169.254.169.254", "10.128.0.1", "172.30.0.1"} {
		for _, network := range []string{"tcp", "udp"} {
			if _, err := n.DialEndpoint(t.Context(), network, netip.AddrPortFrom(netip.MustParseAddr(host), port)); err == nil {
				t.Errorf("%s of %s was dialed", network, host)
			}
		}
	}
	if _, err := n.DialEndpoint(t.Context(), "unix", netip.MustParseAddrPort("10.128.0.2:80")); err == nil {
		t.Error("another network was dialed")
	}
}
