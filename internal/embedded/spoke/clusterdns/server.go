// Package clusterdns is the DNS server of a local cluster. It answers questions about Services, their
// endpoints and pods, as package zone describes, and forwards all others to resolvers.
package clusterdns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/net/netutil"
	"golang.org/x/sync/errgroup"
)

const (
	// maxConnections is the number of TCP connections that are served at the same time; others wait.
	maxConnections = 100
	// packetReadTimeout is the interval at which the server wakes up without a query. It is long
	// because many clusters share a computer; the end of the context wakes the server too.
	packetReadTimeout = time.Hour
)

// Server answers DNS queries.
type Server struct {
	options   Options
	upstreams []netip.AddrPort
	zones     *zones
}

// New returns a server, or an error that names what is invalid in the options.
func New(o Options) (*Server, error) {
	o, err := o.withDefaults()
	upstreams, upstreamErr := parseUpstreams(o.Upstreams)
	if err := errors.Join(err, upstreamErr); err != nil {
		return nil, err
	}
	return &Server{options: o, upstreams: upstreams, zones: newZones(o)}, nil
}

// Serve answers the queries that arrive at the sockets until ctx ends, or a socket fails. It closes both
// sockets, and returns when all queries have been answered; nil if ctx ended.
func (s *Server) Serve(ctx context.Context, packets net.PacketConn, connections net.Listener) error {
	if packets == nil || connections == nil {
		return errors.New("serving DNS: a socket is missing: a DNS server needs one for UDP and one for TCP")
	}
	own := s.ownAddresses(packets.LocalAddr(), connections.Addr())
	f := newForwarder(s.options, newUpstreamList(ctx, s.options, s.upstreams, own))
	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() error {
		return serveUntilDone(ctx, &dns.Server{
			PacketConn: packets, UDPSize: maxUDPSize, ReadTimeout: packetReadTimeout,
			Handler: &handler{Server: s, forwarder: f, ctx: ctx, udp: true},
		})
	})
	work.Go(func() error {
		return serveUntilDone(ctx, &dns.Server{
			Listener: netutil.LimitListener(connections, maxConnections),
			Handler:  &handler{Server: s, forwarder: f, ctx: ctx},
		})
	})
	return work.Wait()
}

// ownAddresses returns the addresses of the server: those of the options and of its sockets.
func (s *Server) ownAddresses(sockets ...net.Addr) []netip.AddrPort {
	var own []netip.AddrPort
	for _, a := range s.options.Addresses {
		own = append(own, netip.AddrPortFrom(a.Addr().Unmap(), a.Port()))
	}
	for _, a := range sockets {
		if address, err := netip.ParseAddrPort(a.String()); err == nil {
			own = append(own, netip.AddrPortFrom(address.Addr().Unmap(), address.Port()))
		}
	}
	return own
}

// serveUntilDone runs the server until ctx ends, or its socket fails.
func serveUntilDone(ctx context.Context, server *dns.Server) error {
	started, ended := make(chan struct{}), make(chan error, 1)
	server.NotifyStartedFunc = func() { close(started) }
	go func() { ended <- server.ActivateAndServe() }()
	select {
	case err := <-ended:
		return fmt.Errorf("serving DNS: %w", err)
	case <-started: // Shutdown fails before
	}
	select {
	case err := <-ended:
		return fmt.Errorf("serving DNS: %w", err)
	case <-ctx.Done():
	}
	if err := server.Shutdown(); err != nil {
		return fmt.Errorf("stopping the DNS server: %w", err)
	}
	if err := <-ended; err != nil {
		return fmt.Errorf("serving DNS: %w", err)
	}
	return nil
}
