package runtimesocket

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// runRuntime runs a server that returns what it receives.
func runRuntime(t *testing.T, path string) {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(conn, conn)
				_ = conn.Close()
			}()
		}
	}()
}

// served returns the path of a socket that is served, and a function that ends that and returns the error.
func served(t *testing.T, runtime string) (path string, stop func() error) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "kubelet", "socket")
	s, err := Listen(path, runtime)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	return path, func() error { cancel(); return <-ended }
}

func dial(t *testing.T, path string) *net.UnixConn {
	t.Helper()
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Net: "unix", Name: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func send(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	answer := make([]byte, len(text))
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, answer); err != nil || string(answer) != text {
		t.Fatalf("the runtime answers %q: %v", answer, err)
	}
}

// isEnded reports whether the other end has closed the connection.
func isEnded(conn net.Conn) bool {
	n, err := conn.Read(make([]byte, 1))
	return n == 0 && err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

func TestTheEndSeparatesTheKubeletFromTheRuntime(t *testing.T) {
	runtime := filepath.Join(t.TempDir(), "runtime")
	runRuntime(t, runtime)
	path, stop := served(t, runtime)
	first, second := dial(t, path), dial(t, path)
	send(t, first, "list")
	send(t, second, "start")
	send(t, first, "list again")
	if err := stop(); err != nil {
		t.Error(err)
	}
	if !isEnded(first) || !isEnded(second) {
		t.Error("a connection is open")
	}
	if _, err := net.Dial("unix", path); err == nil {
		t.Error("the kubelet connects again")
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
	send(t, dial(t, runtime), "stop") // the runtime itself goes on
}

func TestTheRuntimeMayStartLater(t *testing.T) {
	runtime := filepath.Join(t.TempDir(), "runtime")
	path, stop := served(t, runtime)
	if !isEnded(dial(t, path)) {
		t.Error("a connection to a runtime that does not listen is open")
	}
	runRuntime(t, runtime)
	conn := dial(t, path)
	send(t, conn, "list")
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if !isEnded(conn) {
		t.Error("the runtime has closed its end, and the kubelet's is open")
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestOnlyTheOwnerUsesTheSocket(t *testing.T) {
	path, stop := served(t, "none")
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v: %v", info.Mode(), err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestASocketThatFailsIsAnError(t *testing.T) {
	s, err := Listen(filepath.Join(t.TempDir(), "socket"), "none")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.listener.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(t.Context()); err == nil {
		t.Error("no error")
	}
}
