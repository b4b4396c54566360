package quiesce

import (
	"errors"
	"net"
	"testing"
	"time"
)

const patience = 30 * time.Second

// listen returns a listener on a free loopback port, and the function that listens there again.
func listen(t *testing.T) (net.Listener, func() (net.Listener, error)) {
	t.Helper()
	first, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return first, func() (net.Listener, error) { return net.Listen("tcp4", first.Addr().String()) }
}

// accepted counts the connections that a listener accepts, until it fails with an error.
func accepted(l net.Listener) (conns chan net.Conn, failed chan error) {
	conns, failed = make(chan net.Conn, 100), make(chan error, 1)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				failed <- err
				return
			}
			conns <- c
		}
	}()
	return conns, failed
}

func receive[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("waited in vain: %s", what)
		panic("unreachable")
	}
}

func dial(t *testing.T, to net.Addr) (net.Conn, error) {
	t.Helper()
	c, err := net.DialTimeout("tcp4", to.String(), patience)
	if err == nil {
		t.Cleanup(func() { _ = c.Close() })
	}
	return c, err
}

func TestASuspendedListenerRefusesConnections(t *testing.T) {
	first, again := listen(t)
	l := NewListener(first, again)
	conns, failed := accepted(l)
	for range 3 {
		c, err := dial(t, l.Addr())
		if err != nil {
			t.Fatal(err)
		}
		server := receive(t, conns, "a connection")
		if err := l.Suspend(); err != nil {
			t.Fatal(err)
		}
		if _, err := dial(t, l.Addr()); err == nil {
			t.Error("a suspended listener takes connections")
		}
		if _, err := server.Write([]byte("x")); err != nil {
			t.Errorf("the open connection was closed: %v", err)
		}
		if n, err := c.Read(make([]byte, 1)); n != 1 || err != nil {
			t.Errorf("read %d bytes: %v", n, err)
		}
		_ = server.Close()
		if err := l.Resume(); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := receive(t, failed, "the end"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func TestASuspendedListenerCanBeClosed(t *testing.T) {
	first, again := listen(t)
	l := NewListener(first, again)
	_, failed := accepted(l)
	if err := errors.Join(l.Suspend(), l.Close()); err != nil {
		t.Fatal(err)
	}
	if err := receive(t, failed, "the end"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
	if err := errors.Join(l.Resume(), l.Suspend(), l.Close()); err != nil {
		t.Error(err)
	}
}

func TestAPortThatIsTakenMeanwhileIsReported(t *testing.T) {
	first, again := listen(t)
	l := NewListener(first, again)
	if err := l.Suspend(); err != nil {
		t.Fatal(err)
	}
	other, err := again()
	if err != nil {
		t.Fatal(err)
	}
	if l.Resume() == nil {
		t.Error("it listens on a port of another program")
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Resume(), l.Close()); err != nil {
		t.Error(err)
	}
}

func TestServersShareAListener(t *testing.T) {
	first, _ := listen(t)
	shared := ShareListener(first)
	for range 2 {
		l := shared.NewTurn()
		conns, failed := accepted(l)
		if _, err := dial(t, l.Addr()); err != nil {
			t.Fatal(err)
		}
		_ = receive(t, conns, "a connection").Close()
		if err := errors.Join(l.Close(), l.Close()); err != nil {
			t.Fatal(err)
		}
		if err := receive(t, failed, "the end of a turn"); !errors.Is(err, net.ErrClosed) {
			t.Errorf("got %v", err)
		}
	}
	last := shared.NewTurn()
	_, failed := accepted(last)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := receive(t, failed, "the end of the listener"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func TestClosingWaitsForWhatWasTried(t *testing.T) {
	var g Gate
	entered, finish := make(chan bool), make(chan bool)
	go g.TryRun(func() { entered <- true; <-finish })
	receive(t, entered, "the entry")
	closed := make(chan error, 1)
	go func() { closed <- g.Close(t.Context()) }()
	for g.TryRun(func() {}) { // until it is closed
	}
	select {
	case err := <-closed:
		t.Fatalf("the gate was closed: %v", err)
	default:
	}
	finish <- true
	if err := receive(t, closed, "the closing"); err != nil {
		t.Error(err)
	}
	g.Open()
	if !g.TryRun(func() {}) {
		t.Error("the gate is not open")
	}
}
