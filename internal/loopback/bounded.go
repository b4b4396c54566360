package loopback

import (
	"container/list"
	"net"
	"sync"
)

// Bounded accepts connections of l, of which at most limit are open at a time: every
// connection takes a file, and a process that has no file left may not be able to keep its
// data. Anybody on this computer can connect. When limit is reached, a new connection
// takes the place of the oldest one that has sent nothing; if all have, it is closed.
func Bounded(l net.Listener, limit int) net.Listener {
	return &bounded{Listener: l, limit: limit}
}

type bounded struct {
	net.Listener
	limit int

	mu     sync.Mutex
	open   int
	silent list.List // of *counted that have sent nothing, oldest first
}

// Accept returns the next connection for which there is room.
func (b *bounded) Accept() (net.Conn, error) {
	for {
		c, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if admitted := b.admit(c); admitted != nil {
			return admitted, nil
		}
		_ = c.Close() // there is no room: nobody is interested in how it ends
	}
}

func (b *bounded) admit(c net.Conn) net.Conn {
	b.mu.Lock()
	var displaced *counted
	if b.open >= b.limit {
		oldest := b.silent.Front()
		if oldest == nil {
			b.mu.Unlock()
			return nil
		}
		displaced = oldest.Value.(*counted)
		b.leave(displaced)
	}
	out := &counted{Conn: c, of: b}
	out.place = b.silent.PushBack(out)
	b.open++
	b.mu.Unlock()
	if displaced != nil {
		_ = displaced.Conn.Close() // it has been given up
	}
	return out
}

// leave frees the place of a connection. The lock is held.
func (b *bounded) leave(c *counted) {
	if c.gone {
		return
	}
	c.gone = true
	b.open--
	b.heard(c)
}

// heard takes a connection out of those that have sent nothing. The lock is held.
func (b *bounded) heard(c *counted) {
	if c.place != nil {
		b.silent.Remove(c.place)
		c.place = nil
	}
}

// counted is a connection that has a place.
type counted struct {
	net.Conn
	of    *bounded
	place *list.Element // among the silent ones
	gone  bool
	once  sync.Once
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.once.Do(func() {
			c.of.mu.Lock()
			defer c.of.mu.Unlock()
			c.of.heard(c)
		})
	}
	return n, err
}

// Close closes the connection and gives its place back.
func (c *counted) Close() error {
	c.of.mu.Lock()
	c.of.leave(c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
