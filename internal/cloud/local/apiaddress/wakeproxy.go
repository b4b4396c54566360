package apiaddress

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Limits of a WakeProxy.
type Limits struct {
	// Connections is the maximum number of connections that wait, or are passed, at the same time. More are closed
	// at once.
	Connections int
	// Hello is how long a client may take to begin a TLS handshake. Many clients on a busy computer take seconds.
	Hello time.Duration
	// Wait is how long a connection waits for the first byte of the API.
	Wait time.Duration
}

// DefaultLimits are the limits of local clusters. Hello is that of kube-apiserver (ReadHeaderTimeout).
var DefaultLimits = Limits{Connections: 1000, Hello: 32 * time.Second, Wait: time.Minute}

// A Budget limits the connections of all WakeProxies that share it, which need two open files each.
type Budget struct {
	left atomic.Int64
	// unanswered are the addresses of connections of WakeProxies to APIs that have not answered yet. An API that ends
	// before it accepts such a connection leaves it in the kernel, where a WakeProxy must not take it for a client's.
	unanswered sync.Map
}

// NewBudget returns a Budget of n connections.
func NewBudget(n int) *Budget {
	b := &Budget{}
	b.left.Store(int64(n))
	return b
}

// take reports whether a connection is left, and takes it.
func (b *Budget) take() bool {
	if b.left.Add(-1) >= 0 {
		return true
	}
	b.left.Add(1)
	return false
}

func (b *Budget) giveBack() { b.left.Add(1) }

// A WakeProxy accepts the connections to the API of a cluster that sleeps, and holds them until the API is up. It is safe
// for concurrent use.
type WakeProxy struct {
	limits Limits
	budget *Budget
	// dial connects to the API.
	dial func() (net.Conn, error)
	// onWaiting is called when a first connection waits, and from then on every second while one waits.
	onWaiting func()

	mu sync.Mutex
	// listener is nil unless connections are accepted.
	listener net.Listener
	// up is closed while the API is up.
	up chan struct{}
	// conns are the connections that are held. The value is true if the client has begun a TLS handshake.
	conns map[net.Conn]bool
	// passed is the number of connections that are passed to the API.
	passed int
	closed chan struct{}
	nudge  *time.Timer // runs while a connection waits
}

// nudgeInterval is how often onWaiting is called.
const nudgeInterval = time.Second

// NewWakeProxy returns a WakeProxy that accepts nothing yet. It calls onWaiting when a connection waits, and dial, to connect
// to the API, when it is up.
func NewWakeProxy(limits Limits, budget *Budget, dial func() (net.Conn, error), onWaiting func()) *WakeProxy {
	return &WakeProxy{limits: limits, budget: budget, dial: dial, onWaiting: onWaiting, up: make(chan struct{}), conns: map[net.Conn]bool{}, closed: make(chan struct{})}
}

// Hold accepts the connections of l, and holds them, until Release or Close. If connections are already accepted, it
// closes l.
func (p *WakeProxy) Hold(l net.Listener) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if isClosed(p.closed) || p.listener != nil {
		_ = l.Close() // nobody accepts from it
		return
	}
	p.listener = l
	if isClosed(p.up) {
		p.up = make(chan struct{})
	}
	go p.accept(l)
}

// IsHolding reports whether connections are accepted.
func (p *WakeProxy) IsHolding() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.listener != nil
}

// CountWaiting returns the number of connections that wait for the API. Those whose client has not begun a TLS handshake
// do not count.
func (p *WakeProxy) CountWaiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.countWaiting()
}

// countWaiting is CountWaiting for a caller that holds p.mu.
func (p *WakeProxy) countWaiting() int {
	n := 0
	for _, waits := range p.conns {
		if waits {
			n++
		}
	}
	return n
}

// Release stops accepting connections, because the API does, and connects the held ones to it.
func (p *WakeProxy) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopAccepting()
	if !isClosed(p.up) {
		close(p.up)
	}
}

// Close stops accepting connections, and refuses all that are held. Those that are passed to the API go on. It may be
// called more than once.
func (p *WakeProxy) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopAccepting()
	if isClosed(p.closed) {
		return
	}
	close(p.closed) // those that wait are refused
	for conn, waits := range p.conns {
		if !waits {
			_ = conn.Close() // it ends the wait for its handshake
		}
	}
}

// stopAccepting closes the listener. The caller must hold p.mu.
func (p *WakeProxy) stopAccepting() {
	if p.listener != nil {
		_ = p.listener.Close() // the socket stays open
		p.listener = nil
	}
}

func (p *WakeProxy) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		switch {
		case err == nil:
			go p.serve(conn)
		case errors.Is(err, net.ErrClosed):
			return
		default: // such as too many open files: the connection waits in the kernel
			time.Sleep(100 * time.Millisecond) //nolint:forbidigo // nothing reports that a file was closed
		}
	}
}

// serve holds one connection until the API is up, and then passes its bytes.
func (p *WakeProxy) serve(client net.Conn) {
	defer client.Close() //nolint:errcheck // both sides have ended
	if _, own := p.budget.unanswered.Load(client.RemoteAddr().String()); own || !p.budget.take() {
		return
	}
	defer p.budget.giveBack()
	up, ok := p.add(client)
	if !ok {
		return
	}
	hello := p.readHello(client)
	if hello == nil || !p.markWaiting(client) {
		p.remove(client)
		return
	}
	api := p.connect(up)
	p.remove(client)
	if api == nil {
		refuse(client)
		return
	}
	defer api.Close() //nolint:errcheck // both sides have ended
	p.addPassed(1)
	defer p.addPassed(-1)
	p.budget.unanswered.Store(api.LocalAddr().String(), nil)
	answered := p.exchangeFirst(client, api, hello)
	p.budget.unanswered.Delete(api.LocalAddr().String())
	if !answered {
		refuse(client)
		return
	}
	splice(client, api)
}

// add registers a connection, unless there are too many. It returns a channel that is closed when the API is up.
func (p *WakeProxy) add(conn net.Conn) (up chan struct{}, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if isClosed(p.closed) || len(p.conns)+p.passed >= p.limits.Connections {
		return nil, false
	}
	p.conns[conn] = false
	return p.up, true
}

func (p *WakeProxy) addPassed(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passed += n
}

func (p *WakeProxy) remove(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, conn)
}

// markWaiting records that a client waits for the API, and reports that to onWaiting. It returns false if the proxy
// was closed.
func (p *WakeProxy) markWaiting(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if isClosed(p.closed) {
		return false
	}
	p.conns[conn] = true
	if p.nudge == nil {
		p.nudge = time.AfterFunc(0, p.reportWaiting)
	}
	return true
}

// reportWaiting calls onWaiting, and again after a second while connections wait: a report may be lost.
func (p *WakeProxy) reportWaiting() {
	p.mu.Lock()
	if isClosed(p.closed) || p.countWaiting() == 0 {
		p.nudge = nil
		p.mu.Unlock()
		return
	}
	p.nudge.Reset(nudgeInterval)
	p.mu.Unlock()
	p.onWaiting()
}

// readHello reads the beginning of a TLS handshake; nil if the client sends something else, or nothing in time.
func (p *WakeProxy) readHello(conn net.Conn) []byte {
	hello := make([]byte, recordHeader)
	if conn.SetReadDeadline(time.Now().Add(p.limits.Hello)) != nil {
		return nil
	}
	if _, err := io.ReadFull(conn, hello); err != nil || hello[0] != recordHandshake || hello[1] != 3 {
		return nil
	}
	if conn.SetReadDeadline(time.Time{}) != nil {
		return nil
	}
	return hello
}

// connect waits until the API is up, and connects to it. It returns nil if that takes too long, or the proxy is
// closed.
func (p *WakeProxy) connect(up <-chan struct{}) net.Conn {
	timeout := time.NewTimer(p.limits.Wait)
	defer timeout.Stop()
	select {
	case <-up:
	case <-p.closed:
		return nil
	case <-timeout.C:
		return nil
	}
	api, err := p.dial()
	if err != nil {
		return nil
	}
	return api
}

// exchangeFirst sends the beginning of the handshake to the API, with what the client sends after it, and the first
// bytes of the API's answer to the client. It returns false if the API does not answer in time.
func (p *WakeProxy) exchangeFirst(client, api net.Conn, hello []byte) bool {
	if _, err := api.Write(hello); err != nil {
		return false
	}
	go func() {
		_, _ = io.Copy(api, client) // splice ends it
		closeWrite(api)
	}()
	first := make([]byte, 4096)
	if api.SetReadDeadline(time.Now().Add(p.limits.Wait)) != nil {
		return false
	}
	n, err := api.Read(first)
	if err != nil || api.SetReadDeadline(time.Time{}) != nil {
		return false
	}
	_, err = client.Write(first[:n])
	return err == nil
}

// splice passes the answers of the API to the client until the API or the client ends the connection. The other direction
// is already passed.
func splice(client, api net.Conn) {
	_, _ = io.Copy(client, api) // however it ends, both are closed
}

func closeWrite(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.CloseWrite() // the connection may be closed already
	}
}

// Numbers of TLS (RFC 8446).
const (
	recordHeader    = 5
	recordHandshake = 22
)

// internalErrorAlert is a TLS record with the fatal alert internal_error, which a server may send instead of its
// handshake.
var internalErrorAlert = []byte{21, 3, 3, 0, 2, 2, 80}

// refuse sends a TLS client the alert that the server cannot serve it.
func refuse(client net.Conn) {
	if client.SetDeadline(time.Now().Add(time.Second)) != nil {
		return
	}
	if _, err := client.Write(internalErrorAlert); err != nil {
		return
	}
	// To close a connection with unread bytes would reset it, and the client might lose the alert.
	closeWrite(client)
	_, err := io.CopyN(io.Discard, client, 1<<16)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrDeadlineExceeded) {
		return
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
