package faultinject

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/embedded/machine"
)

// patience is the timeout of all waits.
const patience = 30 * time.Second

// patient returns a context that ends before the test binary does.
func patient(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// watched returns the Watcher of a new machine with these faults, and a channel that receives a
// value when the process would be killed.
func watched(t *testing.T, faults ...machine.Injection) (w *Watcher, deaths chan bool) {
	t.Helper()
	dir := t.TempDir()
	for _, f := range faults {
		hurt(t, dir, f)
	}
	w = New(dir)
	deaths = make(chan bool, 100)
	w.killProcess, w.ignoreStopSignal = func() { deaths <- true }, func() {}
	go w.Run(patient(t))
	return w, deaths
}

func hurt(t *testing.T, dir string, f machine.Injection) {
	t.Helper()
	if err := machine.AddInjection(dir, f); err != nil {
		t.Fatal(err)
	}
}

func heal(t *testing.T, w *Watcher, f machine.Injection) {
	t.Helper()
	if err := machine.RemoveInjection(w.dir, f); err != nil {
		t.Fatal(err)
	}
}

// receive takes one value from c.
func receive[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-patient(t).Done():
		t.Fatalf("waited in vain: %s", what)
		panic("unreachable")
	}
}

func TestACrashHappensOnce(t *testing.T) {
	for name, before := range map[string]bool{"to a machine that starts": true, "to a machine that runs": false} {
		t.Run(name, func(t *testing.T) {
			w, deaths := watched(t)
			if before {
				w, deaths = watched(t, machine.MachineCrash)
			} else {
				hurt(t, w.dir, machine.MachineCrash)
			}
			receive(t, deaths, "the crash")
			if machine.HasInjection(w.dir, machine.MachineCrash) {
				t.Error("it will crash again")
			}
		})
	}
}

func TestAMachineDiesWithItsDisk(t *testing.T) {
	w, deaths := watched(t)
	hurt(t, w.dir, machine.DiskLost)
	receive(t, deaths, "the end")
	if !machine.HasInjection(w.dir, machine.DiskLost) {
		t.Error("the disk is back")
	}
}

func TestNothingElseKills(t *testing.T) {
	w, deaths := watched(t)
	for _, p := range machine.InjectionProfiles() {
		if p.Fault != machine.MachineCrash && p.Fault != machine.DiskLost {
			hurt(t, w.dir, p.Fault)
		}
	}
	if err := w.waitForInjection(patient(t), machine.NodeNeverReady, true); err != nil {
		t.Fatal(err)
	}
	w.crashIfInjected()
	if len(deaths) > 0 {
		t.Error("it died")
	}
}

func TestWorkIsCutShortAndTakenUpAgain(t *testing.T) {
	w, _ := watched(t, machine.NodeNeverReady)
	began, ended, returned := make(chan bool), make(chan bool), make(chan error)
	ctx, stop := context.WithCancel(patient(t))
	go func() {
		returned <- w.SuspendWhileInjected(machine.NodeNeverReady)(ctx, func(ctx context.Context) error {
			began <- true
			<-ctx.Done()
			ended <- true
			return errors.New("cut short")
		})
	}()
	select {
	case <-began:
		t.Fatal("it began with the fault")
	default:
	}
	heal(t, w, machine.NodeNeverReady)
	receive(t, began, "the beginning")
	hurt(t, w.dir, machine.NodeNeverReady)
	receive(t, ended, "the cut")
	heal(t, w, machine.NodeNeverReady)
	receive(t, began, "the second beginning")
	stop()
	receive(t, ended, "the end")
	receive(t, returned, "the return")
}

func TestWorkMayEndByItself(t *testing.T) {
	w, _ := watched(t)
	want := errors.New("tired")
	got := w.SuspendWhileInjected(machine.NodeNeverReady)(patient(t), func(context.Context) error { return want })
	if !errors.Is(got, want) {
		t.Errorf("it returned %v", got)
	}
}

func TestWorkThatWaitsForHealingCanBeStopped(t *testing.T) {
	w, _ := watched(t, machine.NodeNeverReady)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	err := w.SuspendWhileInjected(machine.NodeNeverReady)(ctx, func(context.Context) error { return errors.New("it was called") })
	if err != nil {
		t.Error(err)
	}
}

func TestAMachineThatHangsOnItsStop(t *testing.T) {
	t.Run("does not stop when it is told to", func(t *testing.T) {
		w, _ := watched(t, machine.HangOnStop)
		ctx, sigterm := context.WithCancel(t.Context())
		life, _ := w.WithHangOnStop(ctx)
		sigterm()
		if life.Err() != nil {
			t.Fatal("it stopped")
		}
		heal(t, w, machine.HangOnStop)
		receive(t, life.Done(), "the stop after the healing")
	})
	t.Run("though the fault is new", func(t *testing.T) {
		dir := t.TempDir()
		w := New(dir) // not running
		deafened := make(chan bool, 1)
		w.ignoreStopSignal = func() { deafened <- true }
		ctx, sigterm := context.WithCancel(t.Context())
		life, _ := w.WithHangOnStop(ctx)
		hurt(t, dir, machine.HangOnStop)
		sigterm()
		if err := w.waitForInjection(patient(t), machine.HangOnStop, true); err != nil || life.Err() != nil {
			t.Errorf("it stopped: %v, %v", err, life.Err())
		}
		receive(t, deafened, "deafness to a second signal")
	})
	t.Run("ends with its parent", func(t *testing.T) {
		w, _ := watched(t, machine.HangOnStop)
		life, cut := w.WithHangOnStop(t.Context())
		cut()
		if life.Err() == nil {
			t.Error("it outlived its parent")
		}
	})
	t.Run("stops at once without the fault", func(t *testing.T) {
		w, _ := watched(t)
		ctx, sigterm := context.WithCancel(t.Context())
		life, _ := w.WithHangOnStop(ctx)
		sigterm()
		receive(t, life.Done(), "the stop")
	})
}

// echo serves one connection that returns what it receives, and returns the client's end.
func echo(ctx context.Context, t *testing.T, w *Watcher) net.Conn {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	l = w.WrapListener(ctx, l)
	go func() {
		defer close(served)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = io.Copy(c, c) // it ends with the connection
	}()
	c, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); l.Close(); <-served })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return c
}

func say(t *testing.T, c net.Conn, word string) {
	t.Helper()
	if _, err := io.WriteString(c, word); err != nil {
		t.Fatal(err)
	}
}

func hear(t *testing.T, c net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
		t.Fatalf("heard %q, %v; want %q", got, err, want)
	}
}

// quiet checks that nothing arrives for several poll intervals.
func quiet(t *testing.T, c net.Conn) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(2 * pollInterval)); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 1)); err == nil || n > 0 {
		t.Fatal("it answers")
	}
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
}

func TestASilentAPIAnswersWhenItIsHealed(t *testing.T) {
	w, _ := watched(t)
	c := echo(t.Context(), t, w)
	say(t, c, "before")
	hear(t, c, "before")
	hurt(t, w.dir, machine.APISilent)
	if err := w.waitForInjection(patient(t), machine.APISilent, true); err != nil {
		t.Fatal(err)
	}
	say(t, c, "during")
	quiet(t, c)
	heal(t, w, machine.APISilent)
	hear(t, c, "during")
}

func TestASilentAPITakesConnections(t *testing.T) {
	w, _ := watched(t, machine.APISilent)
	c := echo(t.Context(), t, w)
	say(t, c, "hello")
	quiet(t, c)
	heal(t, w, machine.APISilent)
	hear(t, c, "hello")
}

// A watch of the API is a long response: the fault must stop it, too.
func TestASilentAPIFinishesNoAnswer(t *testing.T) {
	w, _ := watched(t, machine.APISilent)
	near, server := connected(t, w)
	go func() { _, _ = io.WriteString(server, "event") }() // it is heard, or not
	quiet(t, near)
	heal(t, w, machine.APISilent)
	hear(t, near, "event")
}

// The API must not execute requests while it is silent.
func TestASilentAPIHearsNothing(t *testing.T) {
	w, _ := watched(t, machine.APISilent)
	near, server := connected(t, w)
	heard := make(chan error, 1)
	go func() {
		_, err := io.ReadFull(server, make([]byte, 5))
		heard <- err
	}()
	say(t, near, "order") // returns when the pipe was read
	select {
	case <-heard:
		t.Fatal("it was heard")
	case <-time.After(pollInterval):
	}
	heal(t, w, machine.APISilent)
	if err := receive(t, heard, "the order"); err != nil {
		t.Error(err)
	}
}

// connected returns the two ends of a connection to the machine's API.
func connected(t *testing.T, w *Watcher) (near, server net.Conn) {
	t.Helper()
	near, far := net.Pipe()
	t.Cleanup(func() { _ = near.Close() })
	l := &single{conns: make(chan net.Conn, 1)}
	l.conns <- far
	server, err := w.WrapListener(t.Context(), l).Accept()
	if err != nil {
		t.Fatal(err)
	}
	return near, server
}

// single is a listener for connections that already exist.
type single struct {
	net.Listener
	conns chan net.Conn
}

func (s *single) Accept() (net.Conn, error) { return <-s.conns, nil }

func TestASilentAPIIsNotInTheWayOfAStop(t *testing.T) {
	w, _ := watched(t, machine.APISilent)
	ctx, stop := context.WithCancel(t.Context())
	c := echo(ctx, t, w)
	say(t, c, "hello")
	stop()
	if _, err := io.ReadAll(c); err != nil {
		t.Errorf("the connection was not closed: %v", err)
	}
}
