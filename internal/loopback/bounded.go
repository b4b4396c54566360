package loopback

import (
	"container/list"
	"net"
	"sync"
)

// LimitConnections accepts connections of l, of which at most limit are open at a time: every
// connection takes a file, and a process that has no file left may not be able to keep its
// data. Anybody on this computer can connect. When limit is reached, a new connection
// takes the place of the oldest one that has sent nothing; if all have, it is closed.
func LimitConnections(l net.Listener, limit int) net.Listener {
	return &limitedListener{Listener: l, limit: limit}
}

type limitedListener struct {
	net.Listener
	limit int

	mu     sync.Mutex
	open   int
	silent list.List // of *counted that have sent nothing, oldest first
}

// Accept returns the next connection for which there is room.
func (b *limitedListener) Accept() (net.Conn, error) {
	for {
		c, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if admitted := b.admitConnection(c); admitted != nil {
			return admitted, nil
		}
		_ = c.Close() // there is no room: nobody is interested in how it ends
	}
}

func (b *limitedListener) admitConnection(c net.Conn) net.Conn {
	b.mu.Lock()
	var displaced *limitedConn
	if b.open >= b.limit {
		oldest := b.silent.Front()
		if oldest == nil {
			b.mu.Unlock()
			return nil
		}
		displaced = oldest.Value.(*limitedConn)
		b.releaseSlot(displaced)
	}
	out := &limitedConn{Conn: c, owner: b}
	out.silentElement = b.silent.PushBack(out)
	b.open++
	b.mu.Unlock()
	if displaced != nil {
		_ = displaced.Conn.Close() // it has been given up
	}
	return out
}

// releaseSlot frees the place of a connection. The lock is held.
func (b *limitedListener) releaseSlot(c *limitedConn) {
	if c.released {
		return
	}
	c.released = true
	b.open--
	b.markActive(c)
}

// markActive takes a connection out of those that have sent nothing. The lock is held.
func (b *limitedListener) markActive(c *limitedConn) {
	if c.silentElement != nil {
		b.silent.Remove(c.silentElement)
		c.silentElement = nil
	}
}

// limitedConn is a connection that has a place.
type limitedConn struct {
	net.Conn
	owner         *limitedListener
	silentElement *list.Element // among the silent ones
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

// Close closes the connection and gives its place back.
func (c *limitedConn) Close() error {
	c.owner.mu.Lock()
	c.owner.releaseSlot(c)
	c.owner.mu.Unlock()
	return c.Conn.Close()
}
