package loadbalancer

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/netip"
	"slices"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"hotspare.io/hotspare/internal/embedded/spoke/loadbalancer/plan"
)

// socket listens on a port.
type socket interface {
	io.Closer
	// serve forwards what clients send until ctx ends, and closes the socket and what belongs to it.
	serve(ctx context.Context, b *balancer)
}

// listeners are the sockets of the Services of a cluster. They are not safe for concurrent use.
type listeners struct {
	open func(address netip.AddrPort, protocol corev1.Protocol) (socket, error)
	// newBalancer returns the balancer of a port of a Service.
	newBalancer func(service types.NamespacedName, port plan.Port) *balancer
	services    map[types.NamespacedName]*listener
}

// listener has the sockets of one Service, which serve.
type listener struct {
	address netip.Addr
	ports   map[plan.Port]*portServer
}

// portServer is a socket that serves.
type portServer struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// newOpener returns a function that listens on ports of this computer, with the limits of a cluster.
func newOpener() func(netip.AddrPort, corev1.Protocol) (socket, error) {
	connections, conversations := make(slots, maxConnections), make(slots, maxConversations)
	return func(address netip.AddrPort, protocol corev1.Protocol) (socket, error) {
		if protocol == corev1.ProtocolUDP {
			return openUDP(address, conversations)
		}
		return openTCP(address, connections)
	}
}

// snapshot returns what is listened on.
func (l *listeners) snapshot() map[types.NamespacedName]plan.Listening {
	out := map[types.NamespacedName]plan.Listening{}
	for key, s := range l.services {
		listening := plan.Listening{Address: s.address}
		for port := range s.ports {
			listening.Ports = append(listening.Ports, port)
		}
		out[key] = listening
	}
	return out
}

// listen executes a Listen step. ctx is that of the sockets. It returns the cause of a failure, which
// is the one of the first address.
func (l *listeners) listen(ctx context.Context, s plan.Step) *plan.Failure {
	var failure *plan.Failure
	for _, address := range s.Addresses {
		opened, f := l.openAll(s.Service, address, s.Ports)
		if f == nil {
			l.adopt(ctx, s.Service, address, opened)
			return nil
		}
		if failure == nil {
			failure = f
		}
		if f.Cause != plan.InUse {
			break // another address does not help
		}
	}
	failure.Want = s.Want
	return failure
}

// openAll opens sockets for those ports on which the Service does not listen yet at the address: all of
// them, or none.
func (l *listeners) openAll(service types.NamespacedName, address netip.Addr, ports []plan.Port) (map[plan.Port]socket, *plan.Failure) {
	opened := map[plan.Port]socket{}
	for _, port := range ports {
		if own := l.services[service]; own != nil && own.address == address && own.ports[port] != nil {
			continue
		}
		s, err := l.open(netip.AddrPortFrom(address, port.Number), port.Protocol)
		if err != nil {
			for _, o := range opened {
				_ = o.Close() // nobody has used it
			}
			return nil, &plan.Failure{Address: address, Port: port, Cause: causeOf(err), Detail: err.Error()}
		}
		opened[port] = s
	}
	return opened, nil
}

// causeOf translates an error of the system.
func causeOf(err error) plan.Cause {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return plan.InUse
	case errors.Is(err, fs.ErrPermission):
		return plan.Denied
	default:
		return plan.Other
	}
}

// adopt serves the opened sockets of a Service, and ends those at another address.
func (l *listeners) adopt(ctx context.Context, service types.NamespacedName, address netip.Addr, opened map[plan.Port]socket) {
	own := l.services[service]
	if own != nil && own.address != address {
		l.stop(service, own.list())
		own = nil
	}
	if own == nil {
		own = &listener{address: address, ports: map[plan.Port]*portServer{}}
		l.services[service] = own
	}
	for port, s := range opened {
		ctx, cancel := context.WithCancel(ctx)
		server := &portServer{cancel, make(chan struct{})}
		own.ports[port] = server
		b := l.newBalancer(service, port)
		go func() {
			defer close(server.done)
			s.serve(ctx, b)
		}()
	}
}

func (l *listener) list() []plan.Port {
	var out []plan.Port
	for port := range l.ports {
		out = append(out, port)
	}
	return out
}

// stop ends the sockets of a Service on the ports, with their connections. When it returns, the ports
// are free.
func (l *listeners) stop(service types.NamespacedName, ports []plan.Port) {
	own := l.services[service]
	if own == nil {
		return
	}
	for port, server := range own.ports {
		if slices.Contains(ports, port) {
			server.cancel()
			defer func() { <-server.done }()
			delete(own.ports, port)
		}
	}
	if len(own.ports) == 0 {
		delete(l.services, service)
	}
}

// stopAll ends all sockets.
func (l *listeners) stopAll() {
	for service, own := range l.services {
		l.stop(service, own.list())
	}
}
