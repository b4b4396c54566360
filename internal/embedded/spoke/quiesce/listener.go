package quiesce

import (
	"net"
	"sync"
)

// A Listener accepts connections, except while it is suspended: clients are then refused, and do not wait for a
// process that is frozen. Whoever accepts from it does not notice. Connections that were accepted stay open.
type Listener struct {
	listen func() (net.Listener, error)
	addr   net.Addr

	mu     sync.Mutex
	closed bool
	// current is nil while the listener is suspended.
	current net.Listener
	// resumed is closed when a suspension ends.
	resumed chan struct{}
}

// NewListener returns a Listener that takes over first. Listen opens another one at the same address.
func NewListener(first net.Listener, listen func() (net.Listener, error)) *Listener {
	return &Listener{listen: listen, addr: first.Addr(), current: first}
}

// Accept implements net.Listener. It waits while the listener is suspended.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		current, resumed, closed := l.state()
		if closed {
			return nil, net.ErrClosed
		}
		if current == nil {
			<-resumed
			continue
		}
		conn, err := current.Accept()
		if err == nil {
			return conn, nil
		}
		if now, _, _ := l.state(); now == current {
			return nil, err
		}
	}
}

func (l *Listener) state() (current net.Listener, resumed chan struct{}, closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.current, l.resumed, l.closed
}

// Suspend closes the socket.
func (l *Listener) Suspend() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.current == nil {
		return nil
	}
	old := l.current
	l.current, l.resumed = nil, make(chan struct{})
	return old.Close()
}

// Resume opens the socket again. It fails if another program uses the port now.
func (l *Listener) Resume() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.current != nil {
		return nil
	}
	next, err := l.listen()
	if err != nil {
		return err
	}
	l.current = next
	close(l.resumed)
	return nil
}

// Close implements net.Listener.
func (l *Listener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	if l.current == nil {
		close(l.resumed)
		return nil
	}
	return l.current.Close()
}

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr { return l.addr }

// A SharedListener gives the connections of one listener to a succession of servers. Connections that come while
// there is no server wait for the next one.
type SharedListener struct {
	from  net.Listener
	conns chan net.Conn
	ended chan struct{} // closed when from fails
	err   error         // read it only after ended is closed
}

// ShareListener returns a SharedListener that accepts from a listener until that is closed.
func ShareListener(from net.Listener) *SharedListener {
	s := &SharedListener{from: from, conns: make(chan net.Conn), ended: make(chan struct{})}
	go s.accept()
	return s
}

func (s *SharedListener) accept() {
	defer close(s.ended)
	for {
		conn, err := s.from.Accept()
		if err != nil {
			s.err = err
			return
		}
		s.conns <- conn
	}
}

// NewTurn returns the listener of one server. To close it does not close the shared one.
func (s *SharedListener) NewTurn() net.Listener {
	return &turn{SharedListener: s, closed: make(chan struct{})}
}

type turn struct {
	*SharedListener
	once   sync.Once
	closed chan struct{}
}

// Accept implements net.Listener.
func (t *turn) Accept() (net.Conn, error) {
	select {
	case <-t.closed:
		return nil, net.ErrClosed
	case <-t.ended:
		return nil, t.err
	case conn := <-t.conns:
		return conn, nil
	}
}

// Close implements net.Listener.
func (t *turn) Close() error {
	t.once.Do(func() { close(t.closed) })
	return nil
}

// Addr implements net.Listener.
func (t *turn) Addr() net.Addr { return t.from.Addr() }
