package podnetwork

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/channel"
	"gvisor.dev/gvisor/pkg/tcpip/link/ethernet"
	"gvisor.dev/gvisor/pkg/tcpip/network/arp"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/icmp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"

	"hotspare.io/hotspare/internal/embedded/machine"
)

// gatewayHardwareAddress is the gateway's Ethernet address: locally administered, the same in each
// cluster.
var gatewayHardwareAddress = hardwareAddress{0x0a, 0x58, 0x0a, 0x80, 0x00, 0x01}

const nic = 1

// gateway is a TCP/IP stack that is connected to the switch.
type gateway struct {
	stack   *stack.Stack
	channel *channel.Endpoint
	cancel  context.CancelFunc
}

func newGateway(ctx context.Context, p *port) (*gateway, error) {
	ctx, cancel := context.WithCancel(ctx)
	g := &gateway{
		stack: stack.New(stack.Options{
			NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol, arp.NewProtocol},
			TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol, udp.NewProtocol, icmp.NewProtocol4},
		}),
		channel: channel.New(queueLength, maxFrame, tcpip.LinkAddress(gatewayHardwareAddress[:])),
		cancel:  cancel,
	}
	if err := g.configure(); err != nil {
		g.close()
		return nil, err
	}
	f := &forwarder{stack: g.stack, ctx: ctx, allowed: isOutside, dial: (&net.Dialer{Timeout: connectTimeout}).DialContext, keepAlive: podKeepAlive}
	f.install()
	go func() {
		defer p.disconnect()
		for frame := range p.received(ctx) {
			g.receive(frame)
		}
	}()
	go g.transmit(ctx, p)
	return g, nil
}

func (g *gateway) configure() error {
	selective := tcpip.TCPSACKEnabled(true)
	g.stack.SetTransportProtocolOption(tcp.ProtocolNumber, &selective)
	if err := g.stack.CreateNIC(nic, ethernet.New(g.channel)); err != nil {
		return errors.New(err.String())
	}
	address := tcpip.ProtocolAddress{
		Protocol:          ipv4.ProtocolNumber,
		AddressWithPrefix: tcpip.AddressWithPrefix{Address: toStackAddress(machine.Gateway), PrefixLen: machine.PodNetwork.Bits()},
	}
	if err := g.stack.AddProtocolAddress(nic, address, stack.AddressProperties{}); err != nil {
		return errors.New(err.String())
	}
	g.stack.SetRouteTable([]tcpip.Route{{Destination: address.AddressWithPrefix.Subnet(), NIC: nic}})
	// It answers for every address to which a pod connects.
	if err := g.stack.SetPromiscuousMode(nic, true); err != nil {
		return errors.New(err.String())
	}
	if err := g.stack.SetSpoofing(nic, true); err != nil {
		return errors.New(err.String())
	}
	return nil
}

// receive passes a frame of the switch to the stack, if it is for the gateway.
func (g *gateway) receive(frame []byte) {
	if !isForGateway(frame) {
		return
	}
	packet := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(frame)})
	defer packet.DecRef()
	g.channel.InjectInbound(0, packet) // the endpoint reads the protocol from the frame
}

// isForGateway reports whether the gateway handles a frame. The stack, which answers for every
// address, would also answer requests for the Ethernet address of a node, and pings of addresses that nobody has.
func isForGateway(frame []byte) bool {
	destination := hardwareAddress(frame[0:6])
	if destination != gatewayHardwareAddress && !destination.isGroup() {
		return false
	}
	switch tcpip.NetworkProtocolNumber(binary.BigEndian.Uint16(frame[12:14])) {
	case header.ARPProtocolNumber:
		request := header.ARP(frame[headerSize:])
		return len(request) >= header.ARPSize &&
			(request.Op() != header.ARPRequest || [4]byte(request.ProtocolAddressTarget()) == machine.Gateway.As4())
	case header.IPv4ProtocolNumber:
		packet := header.IPv4(frame[headerSize:])
		return packet.IsValid(len(packet)) && (!isPing(packet) || packet.DestinationAddress() == toStackAddress(machine.Gateway))
	default:
		return true
	}
}

func isPing(packet header.IPv4) bool {
	message := packet.Payload()
	return packet.TransportProtocol() == header.ICMPv4ProtocolNumber && len(message) > 0 && header.ICMPv4Type(message[0]) == header.ICMPv4Echo
}

// transmit passes the stack's frames to the switch until ctx ends.
func (g *gateway) transmit(ctx context.Context, p *port) {
	for {
		packet := g.channel.ReadContext(ctx)
		if packet == nil {
			return
		}
		view := packet.ToView()
		p.send(view.AsSlice())
		view.Release()
		packet.DecRef()
	}
}

func (g *gateway) dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	conn, err := gonet.DialContextTCP(ctx, g.stack, toFullAddress(to), ipv4.ProtocolNumber)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s in the network of pods: %w", to, err)
	}
	return conn, nil
}

// dialUDP returns a connection that sends packets to an address. Nothing is sent yet.
func (g *gateway) dialUDP(to netip.AddrPort) (net.Conn, error) {
	remote := toFullAddress(to)
	conn, err := gonet.DialUDP(g.stack, nil, &remote, ipv4.ProtocolNumber)
	if err != nil {
		return nil, fmt.Errorf("connecting to UDP %s in the network of pods: %w", to, err)
	}
	return conn, nil
}

func (g *gateway) listen(port uint16) (net.Listener, error) {
	l, err := gonet.ListenTCP(g.stack, toFullAddress(netip.AddrPortFrom(machine.Gateway, port)), ipv4.ProtocolNumber)
	if err != nil {
		return nil, fmt.Errorf("listening on TCP port %d of the gateway: %w", port, err)
	}
	return l, nil
}

func (g *gateway) listenPacket(port uint16) (net.PacketConn, error) {
	local := toFullAddress(netip.AddrPortFrom(machine.Gateway, port))
	c, err := gonet.DialUDP(g.stack, &local, nil, ipv4.ProtocolNumber)
	if err != nil {
		return nil, fmt.Errorf("listening on UDP port %d of the gateway: %w", port, err)
	}
	return c, nil
}

func (g *gateway) close() {
	g.cancel()
	g.stack.Close()
	g.channel.Close()
}

func toStackAddress(a netip.Addr) tcpip.Address { return tcpip.AddrFrom4(a.As4()) }

func toFullAddress(a netip.AddrPort) tcpip.FullAddress {
	return tcpip.FullAddress{NIC: nic, Addr: toStackAddress(a.Addr()), Port: a.Port()}
}
