package listen

import (
	"io"
	"net"
	"testing"
	"time"
)

// echo accepts connections of a limited listener, and returns to each what it sends.
func echo(t *testing.T, limit int) (dial func() net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := LimitConnections(l, limit)
	t.Cleanup(func() { b.Close() })
	go func() {
		for {
			c, err := b.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}()
		}
	}()
	return func() net.Conn {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
}

// answers reports whether a connection is served.
func answers(t *testing.T, c net.Conn) bool {
	t.Helper()
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte("x")); err != nil {
		return false
	}
	n, _ := c.Read(make([]byte, 1))
	return n == 1
}

func TestConnectionsThatSendNothingKeepNobodyOut(t *testing.T) {
	dial := echo(t, 3)
	idle := make([]net.Conn, 20)
	for i := range idle {
		idle[i] = dial()
	}
	c := dial()
	if !answers(t, c) {
		t.Error("a connection is not served beside idle ones")
	}
	for range 10 {
		dial()
	}
	if !answers(t, c) {
		t.Error("a connection that has sent something lost its place to one that has not")
	}
	if answers(t, idle[0]) {
		t.Error("the oldest idle connection is still there: more are open than the limit")
	}
}

func TestOneConnectionTooManyIsClosed(t *testing.T) {
	dial := echo(t, 2)
	one, two := dial(), dial()
	if !answers(t, one) || !answers(t, two) {
		t.Fatal("there is room for two")
	}
	if answers(t, dial()) {
		t.Error("a third is served")
	}
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); !answers(t, dial()); {
		if time.Since(began) > 10*time.Second {
			t.Fatal("a place that was given up is not used again")
		}
	}
}
