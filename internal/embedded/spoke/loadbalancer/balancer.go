package loadbalancer

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
)

const (
	// dialTimeout is how long an endpoint may take to accept a connection. The endpoints of a node that
	// has just died are ready until its heartbeats are missed.
	dialTimeout = 3 * time.Second
	// maxDials is how many endpoints are tried for a connection.
	maxDials = 3
	// maxSessions is how many clients a port with session affinity remembers. All usual clients have
	// the same address, 127.0.0.1.
	maxSessions = 1000
)

// endpoints are the endpoints of a port of a Service, and how to choose one.
type endpoints struct {
	// ready are the endpoints in a stable order.
	ready []netip.AddrPort
	// affinity is how long a client stays at its endpoint after its last connection; 0 for not at all.
	affinity time.Duration
}

// errNoEndpoint reports that a Service has no ready endpoint.
var errNoEndpoint = errors.New("no endpoint is ready")

// balancer distributes the connections to a port of a Service among its endpoints, in turn, as far as
// the Service's session affinity permits. It is safe for concurrent use.
type balancer struct {
	// find returns the current endpoints.
	find  func() endpoints
	dial  func(ctx context.Context, network string, to netip.AddrPort) (net.Conn, error)
	clock clock.PassiveClock

	mu       sync.Mutex
	turn     int
	sessions map[netip.Addr]session // by the address of the client
}

// session is the affinity of a client to an endpoint.
type session struct {
	endpoint netip.AddrPort
	last     time.Time
}

// connection is a connection to an endpoint.
type connection struct {
	net.Conn
	endpoint netip.AddrPort
}

// connect connects to an endpoint for a client. It tries further ones if an endpoint does not accept.
func (b *balancer) connect(ctx context.Context, network string, client netip.Addr) (*connection, error) {
	found := b.find()
	failure := errNoEndpoint
	for n, to := range b.order(found, client) {
		if n == maxDials || ctx.Err() != nil {
			break
		}
		conn, err := b.dialEndpoint(ctx, network, to)
		if err == nil {
			b.remember(found, client, to)
			return &connection{conn, to}, nil
		}
		failure = err
	}
	return nil, failure
}

// isReady reports whether new connections may go to the endpoint.
func (b *balancer) isReady(to netip.AddrPort) bool { return slices.Contains(b.find().ready, to) }

func (b *balancer) dialEndpoint(ctx context.Context, network string, to netip.AddrPort) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	return b.dial(ctx, network, to)
}

// order returns the endpoints in the order in which they are tried for the client.
func (b *balancer) order(found endpoints, client netip.Addr) []netip.AddrPort {
	if len(found.ready) == 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	first := b.turn % len(found.ready)
	b.turn++
	if s, ok := b.sessions[client]; ok && b.clock.Since(s.last) < found.affinity {
		if n := slices.Index(found.ready, s.endpoint); n >= 0 {
			first = n
		}
	}
	return slices.Concat(found.ready[first:], found.ready[:first])
}

// remember begins or continues the session of a client, if the Service has session affinity.
func (b *balancer) remember(found endpoints, client netip.Addr, to netip.AddrPort) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if found.affinity == 0 {
		b.sessions = nil
		return
	}
	if b.sessions == nil || len(b.sessions) >= maxSessions {
		b.sessions = map[netip.Addr]session{}
	}
	b.sessions[client] = session{to, b.clock.Now()}
}

// findEndpoints returns the endpoints of a port of a Service: those that are ready, or if none is, those
// that still serve although they terminate, as kube-proxy chooses them. All of them run in this
// cluster, so that the Service's traffic policies make no difference.
func findEndpoints(s *corev1.Service, port corev1.ServicePort, from []*discoveryv1.EndpointSlice) endpoints {
	var found endpoints
	if s.Spec.SessionAffinity == corev1.ServiceAffinityClientIP {
		found.affinity = time.Duration(corev1.DefaultClientIPServiceAffinitySeconds) * time.Second
		if c := s.Spec.SessionAffinityConfig; c != nil && c.ClientIP != nil && c.ClientIP.TimeoutSeconds != nil {
			found.affinity = time.Duration(*c.ClientIP.TimeoutSeconds) * time.Second
		}
	}
	found.ready = collectEndpoints(from, port, func(c discoveryv1.EndpointConditions) bool { return ptr.Deref(c.Ready, true) })
	if len(found.ready) == 0 {
		found.ready = collectEndpoints(from, port, func(c discoveryv1.EndpointConditions) bool {
			return ptr.Deref(c.Serving, false) && ptr.Deref(c.Terminating, false)
		})
	}
	return found
}

// collectEndpoints returns the endpoints of the slices for which usable returns true, each once, sorted.
func collectEndpoints(from []*discoveryv1.EndpointSlice, port corev1.ServicePort, usable func(discoveryv1.EndpointConditions) bool) []netip.AddrPort {
	var out []netip.AddrPort
	for _, slice := range from {
		number, ok := findPort(slice, port)
		if !ok || slice.AddressType != discoveryv1.AddressTypeIPv4 {
			continue
		}
		for i := range slice.Endpoints {
			e := &slice.Endpoints[i]
			if len(e.Addresses) == 0 || !usable(e.Conditions) {
				continue
			}
			if a, err := netip.ParseAddr(e.Addresses[0]); err == nil { // the API does not accept others
				out = append(out, netip.AddrPortFrom(a, number))
			}
		}
	}
	slices.SortFunc(out, netip.AddrPort.Compare)
	return slices.Compact(out)
}

// findPort returns the port of the endpoints in the slice for a port of their Service.
func findPort(slice *discoveryv1.EndpointSlice, port corev1.ServicePort) (uint16, bool) {
	for _, p := range slice.Ports {
		if p.Port != nil && ptr.Deref(p.Name, "") == port.Name && ptr.Deref(p.Protocol, corev1.ProtocolTCP) == port.Protocol {
			return uint16(*p.Port), true
		}
	}
	return 0, false
}
