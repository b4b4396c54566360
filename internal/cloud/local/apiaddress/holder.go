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

// Limits of a Holder.
type Limits struct {
	// Connections is the maximum number of connections that wait, or are passed, at the same time. More are closed
	// at once.
	Connections int
	// Hello is how long a client may take to begin a TLS handshake.
	Hello time.Duration
	// Wait is how long a connection waits for the first byte of the API.
	Wait time.Duration
}

// DefaultLimits are the limits of local clusters.
var DefaultLimits = Limits{Connections: 1000, Hello: 5 * time.Second, Wait: time.Minute}

// A Budget limits the connections of all Holders that share it, which need two open files each.
type Budget struct {
	left atomic.Int64
	// unanswered are the addresses of connections of Holders to APIs that have not answered yet. An API that ends
	// before it accepts such a connection leaves it in the kernel, where a Holder must not take it for a client's.
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

// A Holder accepts the connections to the API of a cluster that sleeps, and holds them until the API is up. It is safe
// for concurrent use.
type Holder struct {
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

// NewHolder returns a Holder that accepts nothing yet. It calls onWaiting when a connection waits, and dial, to connect
// to the API, when it is up.
func NewHolder(limits Limits, budget *Budget, dial func() (net.Conn, error), onWaiting func()) *Holder {
	return &Holder{limits: limits, budget: budget, dial: dial, onWaiting: onWaiting, up: make(chan struct{}), conns: map[net.Conn]bool{}, closed: make(chan struct{})}
}

// Hold accepts the connections of l, and holds them, until Release or Close. If connections are already accepted, it
// closes l.
func (h *Holder) Hold(l net.Listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if isClosed(h.closed) || h.listener != nil {
		_ = l.Close() // nobody accepts from it
		return
	}
	h.listener = l
	if isClosed(h.up) {
		h.up = make(chan struct{})
	}
	go h.accept(l)
}

// IsHolding reports whether connections are accepted.
func (h *Holder) IsHolding() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.listener != nil
}

// CountWaiting returns the number of connections that wait for the API. Those whose client has not begun a TLS handshake
// do not count.
func (h *Holder) CountWaiting() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.countWaiting()
}

// countWaiting is CountWaiting for a caller that holds h.mu.
func (h *Holder) countWaiting() int {
	n := 0
	for _, waits := range h.conns {
		if waits {
			n++
		}
	}
	return n
}

// Release stops accepting connections, because the API does, and connects the held ones to it.
func (h *Holder) Release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopAccepting()
	if !isClosed(h.up) {
		close(h.up)
	}
}

// Close stops accepting connections, and refuses all that are held. Those that are passed to the API go on. It may be
// called more than once.
func (h *Holder) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopAccepting()
	if isClosed(h.closed) {
		return
	}
	close(h.closed) // those that wait are refused
	for conn, waits := range h.conns {
		if !waits {
			_ = conn.Close() // it ends the wait for its handshake
		}
	}
}

// stopAccepting closes the listener. The caller must hold h.mu.
func (h *Holder) stopAccepting() {
	if h.listener != nil {
		_ = h.listener.Close() // the socket stays open
		h.listener = nil
	}
}

func (h *Holder) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		switch {
		case err == nil:
			go h.serve(conn)
		case errors.Is(err, net.ErrClosed):
			return
		default: // such as too many open files: the connection waits in the kernel
			time.Sleep(100 * time.Millisecond) //nolint:forbidigo // nothing reports that a file was closed
		}
	}
}

// serve holds one connection until the API is up, and then passes its bytes.
func (h *Holder) serve(client net.Conn) {
	defer client.Close() //nolint:errcheck // both sides have ended
	if _, own := h.budget.unanswered.Load(client.RemoteAddr().String()); own || !h.budget.take() {
		return
	}
	defer h.budget.giveBack()
	up, ok := h.add(client)
	if !ok {
		return
	}
	hello := h.readHello(client)
	if hello == nil || !h.markWaiting(client) {
		h.remove(client)
		return
	}
	api := h.connect(up)
	h.remove(client)
	if api == nil {
		refuse(client)
		return
	}
	defer api.Close() //nolint:errcheck // both sides have ended
	h.addPassed(1)
	defer h.addPassed(-1)
	h.budget.unanswered.Store(api.LocalAddr().String(), nil)
	answered := h.exchangeFirst(client, api, hello)
	h.budget.unanswered.Delete(api.LocalAddr().String())
	if !answered {
		refuse(client)
		return
	}
	splice(client, api)
}

// add registers a connection, unless there are too many. It returns a channel that is closed when the API is up.
func (h *Holder) add(conn net.Conn) (up chan struct{}, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if isClosed(h.closed) || len(h.conns)+h.passed >= h.limits.Connections {
		return nil, false
	}
	h.conns[conn] = false
	return h.up, true
}

func (h *Holder) addPassed(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.passed += n
}

func (h *Holder) remove(conn net.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.conns, conn)
}

// markWaiting records that a client waits for the API, and reports that to onWaiting. It returns false if the holder
// was closed.
func (h *Holder) markWaiting(conn net.Conn) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if isClosed(h.closed) {
		return false
	}
	h.conns[conn] = true
	if h.nudge == nil {
		h.nudge = time.AfterFunc(0, h.reportWaiting)
	}
	return true
}

// reportWaiting calls onWaiting, and again after a second while connections wait: a report may be lost.
func (h *Holder) reportWaiting() {
	h.mu.Lock()
	if isClosed(h.closed) || h.countWaiting() == 0 {
		h.nudge = nil
		h.mu.Unlock()
		return
	}
	h.nudge.Reset(nudgeInterval)
	h.mu.Unlock()
	h.onWaiting()
}

// readHello reads the beginning of a TLS handshake; nil if the client sends something else, or nothing in time.
func (h *Holder) readHello(conn net.Conn) []byte {
	hello := make([]byte, recordHeader)
	if conn.SetReadDeadline(time.Now().Add(h.limits.Hello)) != nil {
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

// connect waits until the API is up, and connects to it. It returns nil if that takes too long, or the holder is
// closed.
func (h *Holder) connect(up <-chan struct{}) net.Conn {
	timeout := time.NewTimer(h.limits.Wait)
	defer timeout.Stop()
	select {
	case <-up:
	case <-h.closed:
		return nil
	case <-timeout.C:
		return nil
	}
	api, err := h.dial()
	if err != nil {
		return nil
	}
	return api
}

// exchangeFirst sends the beginning of the handshake to the API, with what the client sends after it, and the first
// bytes of the API's answer to the client. It returns false if the API does not answer in time.
func (h *Holder) exchangeFirst(client, api net.Conn, hello []byte) bool {
	if _, err := api.Write(hello); err != nil {
		return false
	}
	go func() {
		_, _ = io.Copy(api, client) // splice ends it
		closeWrite(api)
	}()
	first := make([]byte, 4096)
	if api.SetReadDeadline(time.Now().Add(h.limits.Wait)) != nil {
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
