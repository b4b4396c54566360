package podnetwork

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"syscall"
)

// Sizes of Ethernet frames, in bytes.
const (
	headerSize = 14
	maxFrame   = headerSize + MTU
)

// queueLength is how many frames wait for a port. More are dropped, as a real switch does; TCP sends
// them again.
const queueLength = 1024

// hardwareAddress is an Ethernet address.
type hardwareAddress [6]byte

// isGroup reports whether the address is that of several ports: broadcast or multicast.
func (a hardwareAddress) isGroup() bool { return a[0]&1 == 1 }

// ethernetSwitch forwards frames between ports. It learns which port has which address from the
// frames that it sees.
type ethernetSwitch struct {
	mu    sync.Mutex
	ports []*port
	known map[hardwareAddress]*port
}

func newEthernetSwitch() *ethernetSwitch {
	return &ethernetSwitch{known: map[hardwareAddress]*port{}}
}

// connect adds a port.
func (s *ethernetSwitch) connect() *port {
	p := &port{ethernet: s, queue: make(chan []byte, queueLength)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ports = append(s.ports, p)
	return p
}

// receivers returns the ports that get a frame from port from, and learns from's address.
func (s *ethernetSwitch) receivers(from *port, destination, source hardwareAddress) []*port {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.ports, from) {
		return nil // it was disconnected
	}
	if !source.isGroup() {
		s.learn(from, source)
	}
	if to := s.known[destination]; to != nil && !destination.isGroup() {
		if to == from {
			return nil
		}
		return []*port{to}
	}
	return slices.DeleteFunc(slices.Clone(s.ports), func(p *port) bool { return p == from })
}

// maxAddresses limits the addresses of one port. A node has one, but its pods may invent more.
const maxAddresses = 64

func (s *ethernetSwitch) learn(from *port, source hardwareAddress) {
	old := s.known[source]
	if old == from || from.addresses >= maxAddresses {
		return
	}
	if old != nil {
		old.addresses--
	}
	from.addresses++
	s.known[source] = from
}

// port is a connection to the switch.
type port struct {
	ethernet  *ethernetSwitch
	queue     chan []byte
	addresses int // the number of known addresses, guarded by ethernet.mu
}

// send sends a frame into the switch, which does not keep it.
func (p *port) send(frame []byte) {
	if len(frame) < headerSize || len(frame) > maxFrame {
		return
	}
	to := p.ethernet.receivers(p, hardwareAddress(frame[0:6]), hardwareAddress(frame[6:12]))
	if len(to) == 0 {
		return
	}
	frame = slices.Clone(frame)
	for _, r := range to {
		select {
		case r.queue <- frame:
		default: // full
		}
	}
}

// received returns the frames for this port until ctx ends. They must not be changed.
func (p *port) received(ctx context.Context) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for {
			select {
			case frame := <-p.queue:
				if !yield(frame) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// disconnect removes the port.
func (p *port) disconnect() {
	s := p.ethernet
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ports = slices.DeleteFunc(s.ports, func(o *port) bool { return o == p })
	for address, o := range s.known {
		if o == p {
			delete(s.known, address)
		}
	}
}

// isDropped reports whether err means that one frame was not sent, but the connection is intact.
func isDropped(err error) bool {
	return errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.EMSGSIZE)
}
