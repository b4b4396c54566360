package loadbalancer

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

const (
	// maxConversations is how many UDP conversations the Services of a cluster can have together.
	maxConversations    = 500
	conversationTimeout = 60 * time.Second
	// maxPacket is the largest size of the payload of a UDP packet, in bytes.
	maxPacket = 65507
)

// udpSocket listens on a UDP port. The packets of one client, which is an address and a port, are a
// conversation with one endpoint.
type udpSocket struct {
	*net.UDPConn
	slots   slots         // of all UDP sockets
	timeout time.Duration // how long a conversation lasts after its last packet

	mu            sync.Mutex
	conversations map[netip.AddrPort]*connection // by client
}

// serve forwards the packets of clients, and the answers, until ctx ends. It closes the socket.
func (s *udpSocket) serve(ctx context.Context, b *balancer) {
	var answers sync.WaitGroup
	defer answers.Wait()
	stop := context.AfterFunc(ctx, func() { _ = s.Close() }) // ends the loop
	defer stop()
	packet := make([]byte, maxPacket)
	for {
		size, client, err := s.ReadFromUDPAddrPort(packet)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			pauseAfterError(ctx, s.LocalAddr(), err)
			continue
		}
		c := s.findConversation(b, client)
		if c == nil {
			if c = s.beginConversation(ctx, b, client); c == nil {
				continue // packets may be lost
			}
			answers.Go(func() { s.forwardAnswers(ctx, c, client) })
		}
		_ = c.SetReadDeadline(time.Now().Add(s.timeout))
		_, _ = c.Write(packet[:size]) // if that fails, forwardAnswers ends the conversation
	}
}

// findConversation returns the conversation of a client; nil if there is none. One with an endpoint that
// is not ready any more ends.
func (s *udpSocket) findConversation(b *balancer, client netip.AddrPort) *connection {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.conversations[client]
	if c == nil || b.isReady(c.endpoint) {
		return c
	}
	delete(s.conversations, client)
	_ = c.Close() // ends forwardAnswers
	return nil
}

// beginConversation returns nil if that is not possible.
func (s *udpSocket) beginConversation(ctx context.Context, b *balancer, client netip.AddrPort) *connection {
	if !s.slots.acquire() {
		return nil
	}
	c, err := b.connect(ctx, "udp", client.Addr())
	if err != nil {
		s.slots.release()
		klog.FromContext(ctx).V(1).Info("dropped a packet", "address", s.LocalAddr().String(), "reason", err.Error())
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conversations[client] = c
	return c
}

// forwardAnswers forwards the packets of the endpoint to the client until the conversation ends: the
// endpoint does not exist any more, no packet has come for a while, or ctx ends.
func (s *udpSocket) forwardAnswers(ctx context.Context, c *connection, client netip.AddrPort) {
	defer s.endConversation(c, client)
	stop := context.AfterFunc(ctx, func() { _ = c.Close() }) // ends Read
	defer stop()
	packet := make([]byte, maxPacket)
	for {
		size, err := c.Read(packet)
		if err != nil {
			return
		}
		_ = c.SetReadDeadline(time.Now().Add(s.timeout))
		_, _ = s.WriteToUDPAddrPort(packet[:size], client) // packets may be lost
	}
}

func (s *udpSocket) endConversation(c *connection, client netip.AddrPort) {
	_ = c.Close() // it may be closed already
	s.slots.release()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conversations[client] == c {
		delete(s.conversations, client)
	}
}

// openUDP listens on a UDP port.
func openUDP(address netip.AddrPort, conversations slots) (*udpSocket, error) {
	c, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(address))
	if err != nil {
		return nil, err
	}
	return &udpSocket{UDPConn: c, slots: conversations, timeout: conversationTimeout, conversations: map[netip.AddrPort]*connection{}}, nil
}
