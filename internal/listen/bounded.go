package listen

import (
	"container/list"
	"net"
	"sync"
)

// LimitConnections returns a listener that accepts the connections of l and keeps at most limit of
// them open: every connection uses a file descriptor, and a process without free file descriptors
// may be unable to write its data. Any program on this computer can connect. When limit is reached,
// a new connection replaces the oldest one that has sent nothing; if all have sent something, the
// new connection is closed.
func LimitConnections(l net.Listener, limit int) net.Listener {
	return &limitedListener{Listener: l, limit: limit}
}

type limitedListener struct {
	net.Listener
	limit int

	mu     sync.Mutex
	open   int
	silent list.List // of *limitedConn that have sent nothing, oldest first
}

// Accept returns the next connection that fits within the limit.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if admitted := l.admitConnection(c); admitted != nil {
			return admitted, nil
		}
		_ = c.Close() // the limit is reached: the error does not matter
	}
}

func (l *limitedListener) admitConnection(c net.Conn) net.Conn {
	l.mu.Lock()
	var displaced *limitedConn
	if l.open >= l.limit {
		oldest := l.silent.Front()
		if oldest == nil {
			l.mu.Unlock()
			return nil
		}
		displaced = oldest.Value.(*limitedConn)
		l.releaseSlot(displaced)
	}
	out := &limitedConn{Conn: c, owner: l}
	out.silentElement = l.silent.PushBack(out)
	l.open++
	l.mu.Unlock()
	if displaced != nil {
		_ = displaced.Conn.Close() // the connection was displaced
	}
	return out
}

// releaseSlot frees the slot of a connection. The caller must hold the lock.
func (l *limitedListener) releaseSlot(c *limitedConn) {
	if c.released {
		return
	}
	c.released = true
	l.open--
	l.markActive(c)
}

// markActive removes a connection from the list of connections that have sent nothing. The caller
// must hold the lock.
func (l *limitedListener) markActive(c *limitedConn) {
	if c.silentElement != nil {
		l.silent.Remove(c.silentElement)
		c.silentElement = nil
	}
}

// limitedConn is a connection that occupies a slot.
type limitedConn struct {
	net.Conn
	owner         *limitedListener
	silentElement *list.Element // its element in the list of silent connections
	released      bool
	once          sync.Once
}

func (c *limitedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.once.Do(func() {
			c.owner.mu.Lock()
			defer c.owner.mu.Unlock()
			c.owner.markActive(c)
		})
	}
	return n, err
}

// Close closes the connection and frees its slot.
func (c *limitedConn) Close() error {
	c.owner.mu.Lock()
	c.owner.releaseSlot(c)
	c.owner.mu.Unlock()
	return c.Conn.Close()
}
