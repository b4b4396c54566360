package apiaddress

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const patience = 2 * time.Minute

// rig is a socket, the proxy of its connections, and an API that can be started on the socket.
type rig struct {
	*testing.T
	socket  *Socket
	proxy   *WakeProxy
	reports atomic.Int64
	config  *tls.Config
}

func newRig(t *testing.T, limits Limits) *rig {
	t.Helper()
	port := freePort(t)
	socket, err := Open(port)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{T: t, socket: socket, config: serverConfig(t)}
	dial := func() (net.Conn, error) { return net.Dial("tcp4", r.address()) }
	r.proxy = NewWakeProxy(limits, NewBudget(5000), dial, func() { r.reports.Add(1) })
	t.Cleanup(func() {
		r.proxy.Close()
		_ = socket.Close()
	})
	return r
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func serverConfig(t *testing.T) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"api"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
}

func (r *rig) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(r.socket.port)) }

// hold makes the proxy accept connections.
func (r *rig) hold() {
	r.Helper()
	l, err := r.socket.Listen()
	if err != nil {
		r.Fatal(err)
	}
	r.proxy.Hold(l)
}

// serve starts an API on the socket, as the process of a machine does, which answers each line in upper case. It returns
// the function that ends it.
func (r *rig) serve() func() {
	r.Helper()
	l, err := r.socket.Listen()
	if err != nil {
		r.Fatal(err)
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				secure := tls.Server(conn, r.config)
				defer secure.Close()
				for lines := bufio.NewScanner(secure); lines.Scan(); {
					if _, err := fmt.Fprintln(secure, strings.ToUpper(lines.Text())); err != nil {
						return
					}
				}
			}()
		}
	}()
	return func() { _ = l.Close() }
}

// ask connects, sends a line and returns the answer.
func (r *rig) ask(line string) (string, error) {
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: patience}, "tcp4", r.address(), &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // a test
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if _, err := fmt.Fprintln(conn, line); err != nil {
		return "", err
	}
	answer, err := bufio.NewReader(conn).ReadString('\n')
	return strings.TrimSpace(answer), err
}

func (r *rig) eventually(what string, is func() bool) {
	r.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(time.Millisecond) { //nolint:forbidigo // nothing reports it
		if time.Now().After(deadline) {
			r.Fatalf("waited in vain: %s", what)
		}
	}
}

func TestAThousandConnectionsWaitForOneWake(t *testing.T) {
	const clients = 1000
	limits := DefaultLimits
	limits.Hello = patience // this computer is slow
	r := newRig(t, limits)
	r.hold()
	var all sync.WaitGroup
	errs := make(chan error, clients)
	for i := range clients {
		all.Go(func() {
			want := fmt.Sprint("CLIENT ", i)
			if got, err := r.ask(strings.ToLower(want)); err != nil || got != want {
				errs <- fmt.Errorf("client %d: %q, %w", i, got, err)
			}
		})
	}
	r.eventually("a thousand wait", func() bool { return r.proxy.CountWaiting() == clients })
	if n := r.reports.Load(); n == 0 || n > int64(patience/nudgeInterval)+1 {
		t.Errorf("%d connections were reported %d times", clients, n)
	}
	if got, err := r.ask("one more"); err == nil {
		t.Errorf("one more than the limit is answered: %q", got)
	}
	defer r.serve()()
	r.proxy.Release()
	all.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
	if n := r.proxy.CountWaiting(); n != 0 {
		t.Errorf("%d still wait", n)
	}
}

func TestNoConnectionIsRefusedAtTheHandovers(t *testing.T) {
	r := newRig(t, DefaultLimits)
	end := r.serve()
	stop := make(chan struct{})
	var clients sync.WaitGroup
	var starts atomic.Int64           // of the API
	served := make([]atomic.Int64, 4) // the start after which a client was served
	starts.Store(1)
	for i := range served {
		clients.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				start := starts.Load()
				if got, err := r.ask("x"); err != nil || got != "X" {
					t.Errorf("got %q, %v", got, err)
					return
				}
				served[i].Store(start)
			}
		})
	}
	allServed := func() bool {
		for i := range served {
			if served[i].Load() != starts.Load() {
				return false
			}
		}
		return true
	}
	for range 20 { // it sleeps, and wakes when a client waits
		// An API that ends while a connection is passed to it ends that connection, too.
		r.eventually("all clients are served", allServed)
		end()
		r.hold()
		r.eventually("a client waits", func() bool { return r.proxy.CountWaiting() > 0 })
		end = r.serve()
		starts.Add(1)
		r.proxy.Release()
	}
	close(stop)
	clients.Wait()
	end()
}

func TestOnlyTLSClientsWake(t *testing.T) {
	r := newRig(t, Limits{Connections: 10, Hello: 50 * time.Millisecond, Wait: patience})
	r.hold()
	for name, send := range map[string]string{
		"a port scan":    "",
		"plain HTTP":     "GET / HTTP/1.1\r\n\r\n",
		"half a header":  "\x16\x03",
		"another record": "\x17\x03\x03\x00\x10",
		"an old version": "\x16\x02\x00\x00\x10",
	} {
		conn, err := net.Dial("tcp4", r.address())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, send); err != nil {
			t.Fatal(err)
		}
		if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		if n, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, syscall.ETIMEDOUT) || n > 0 {
			t.Errorf("%s: read %d, %v", name, n, err)
		}
		_ = conn.Close()
	}
	if n := r.reports.Load(); n != 0 || r.proxy.CountWaiting() != 0 {
		t.Errorf("%d reports, %d wait", n, r.proxy.CountWaiting())
	}
}

func TestAConnectionIsRefusedInTheEnd(t *testing.T) {
	for name, tc := range map[string]struct {
		wait time.Duration
		then func(*rig)
	}{
		"the cluster does not wake": {200 * time.Millisecond, func(*rig) {}},
		"its API does not answer":   {200 * time.Millisecond, func(r *rig) { r.proxy.Release() }},
		"it is deleted":             {patience, func(r *rig) { r.proxy.Close() }},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Limits{Connections: 10, Hello: patience, Wait: tc.wait})
			r.hold()
			answer := make(chan error, 1)
			go func() {
				_, err := r.ask("x")
				answer <- err
			}()
			r.eventually("it waits", func() bool { return r.reports.Load() > 0 })
			tc.then(r)
			select {
			case err := <-answer:
				if err == nil || !strings.Contains(err.Error(), "tls: internal error") {
					t.Errorf("got %v", err)
				}
			case <-time.After(patience):
				t.Error("it waits for ever")
			}
			r.eventually("nothing is left", func() bool {
				r.proxy.mu.Lock()
				defer r.proxy.mu.Unlock()
				return len(r.proxy.conns) == 0 && r.proxy.budget.left.Load() == 5000
			})
		})
	}
}

func TestAClientThatLeavesIsForgotten(t *testing.T) {
	r := newRig(t, Limits{Connections: 10, Hello: patience, Wait: 500 * time.Millisecond})
	r.hold()
	conn, err := net.Dial("tcp4", r.address())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(bytes.Repeat([]byte{22, 3, 1, 0, 1}, 1)); err != nil {
		t.Fatal(err)
	}
	r.eventually("it waits", func() bool { return r.proxy.CountWaiting() == 1 })
	_ = conn.Close()
	r.eventually("it is forgotten", func() bool { return r.proxy.CountWaiting() == 0 })
}

func TestThePortBelongsToTheSocket(t *testing.T) {
	r := newRig(t, DefaultLimits)
	if _, err := Open(r.socket.port); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("another one opens it: %v", err)
	}
	if flags, err := unix.FcntlInt(r.socket.File().Fd(), unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK == 0 {
		t.Errorf("the socket that a process gets is in blocking mode: %x, %v", flags, err)
	}
	if runtime.GOOS != "linux" {
		t.Skip("only Linux can suspend a socket, and freeze a cluster")
	}
	for range 3 {
		if err := r.socket.Suspend(); err != nil {
			t.Fatal(err)
		}
		if conn, err := net.Dial("tcp4", r.address()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("a suspended socket: %v, %v", conn, err)
		}
		if err := r.socket.Resume(); err != nil {
			t.Fatal(err)
		}
		end := r.serve()
		if got, err := r.ask("x"); err != nil || got != "X" {
			t.Errorf("a resumed socket: %q, %v", got, err)
		}
		end()
	}
}
