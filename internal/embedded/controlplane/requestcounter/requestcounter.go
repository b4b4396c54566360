// Package requestcounter counts the requests to an API server that show that somebody uses the cluster: those of
// users that activity.CountsAsUse.
//
// A request is open from its authentication until its handler returns, which for watches, exec, attach, port-forward
// and proxied connections is when they end. The user is the one who authenticated: impersonation neither hides nor
// fakes use.
package requestcounter

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"

	"hotspare.io/hotspare/internal/activity"
)

// Counter counts requests. It is safe for concurrent use.
type Counter struct {
	now func() time.Time // with a monotonic reading

	mu sync.Mutex
	// sources are what was counted, by activity.SourceOf. That of users always exists.
	sources map[string]*tally
	// conns are the accepted connections, by the address of the client.
	conns map[string]*countedConn
}

// tally is what was counted of one source.
type tally struct {
	last     time.Time
	open     int
	requests int64
}

func (t *tally) report(now time.Time) activity.Counts {
	r := activity.Counts{OpenRequests: t.open, Requests: t.requests}
	if t.open == 0 {
		r.IdleSeconds = max(now.Sub(t.last), 0).Seconds()
	}
	return r
}

// maxSources is the number of sources that are counted apart. The requests of more count as those of users.
const maxSources = 100

// New returns a Counter for an API server that starts now.
func New() *Counter { return newCounter(time.Now) }

func newCounter(now func() time.Time) *Counter {
	return &Counter{now: now, sources: map[string]*tally{activity.UserSource: {last: now()}}, conns: map[string]*countedConn{}}
}

// Restart forgets earlier requests, as if the API server started now. Requests that are open stay open.
func (c *Counter) Restart() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, t := range c.sources {
		t.last, t.requests = c.now(), int64(t.open)
		if t.open == 0 && name != activity.UserSource {
			delete(c.sources, name)
		}
	}
}

// Report returns the current activity.
func (c *Counter) Report() activity.Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, r := c.now(), activity.Report{Sources: make(map[string]activity.Counts, len(c.sources))}
	for name, t := range c.sources {
		r.Sources[name] = t.report(now)
	}
	r.Counts = r.Without(nil)
	return r
}

// request is one request that the API server handles.
type request struct {
	counter *Counter
	client  string       // the address
	source  *tally       // nil unless it is counted
	conn    *countedConn // nil if it is not known
	// ended is set when the handler has returned. The API server may authenticate after that: if the client is gone or the
	// time of the request is over, its handler returns before the goroutine that serves the request.
	ended bool
}

type requestKey struct{}

// WrapHandler returns a handler around the whole handler chain of the API server, which calls WrapAuthenticator's
// authenticator. It ends the counting of each request.
func (c *Counter) WrapHandler(chain http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		one := &request{counter: c, client: r.RemoteAddr}
		defer one.end()
		chain.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestKey{}, one)))
	})
}

// WrapAuthenticator returns an authenticator that begins to count the requests whose users count.
func (c *Counter) WrapAuthenticator(next authenticator.Request) authenticator.Request {
	return authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
		answer, ok, err := next.AuthenticateRequest(r)
		if ok && err == nil && activity.CountsAsUse(answer.User.GetName()) {
			if one, found := r.Context().Value(requestKey{}).(*request); found {
				one.begin(activity.SourceOf(answer.User.GetName()))
			}
		}
		return answer, ok, err
	})
}

func (r *request) begin(source string) {
	c := r.counter
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.source != nil || r.ended {
		return
	}
	r.source = c.tallyOf(source)
	r.source.open++
	r.source.requests++
	if r.conn = c.conns[r.client]; r.conn != nil {
		r.conn.used = true
		r.conn.open++
	}
}

// tallyOf returns what is counted of a source. The caller must hold c.mu.
func (c *Counter) tallyOf(source string) *tally {
	t := c.sources[source]
	if t == nil && len(c.sources) >= maxSources {
		return c.sources[activity.UserSource]
	}
	if t == nil {
		t = &tally{last: c.now()}
		c.sources[source] = t
	}
	return t
}

func (r *request) end() {
	c := r.counter
	c.mu.Lock()
	defer c.mu.Unlock()
	r.ended = true
	if r.source == nil {
		return
	}
	r.source.open--
	r.source.last = c.now()
	r.source = nil
	if r.conn != nil {
		r.conn.open--
	}
}

// ServeReport returns a handler that answers requests for activity.Path, and passes the others to next. It belongs
// behind authorization.
func (c *Counter) ServeReport(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != activity.Path {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_ = json.NewEncoder(w).Encode(c.Report()) // the client is gone
	})
}

// WrapListener returns a listener whose connections CloseUsed can close.
func (c *Counter) WrapListener(l net.Listener) net.Listener { return &countedListener{l, c} }

// CloseUnused closes the connections by which counted requests came, and none is open now. Before the process is
// frozen, it makes clients connect anew at their next request, instead of waiting for an answer.
func (c *Counter) CloseUnused() {
	c.mu.Lock()
	var unused []*countedConn
	for _, conn := range c.conns {
		if conn.used && conn.open == 0 {
			unused = append(unused, conn)
		}
	}
	c.mu.Unlock()
	for _, conn := range unused {
		_ = conn.Close() // the client may have closed it
	}
}

type countedListener struct {
	net.Listener
	counter *Counter
}

// Accept implements net.Listener.
func (l *countedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	one := &countedConn{Conn: conn, counter: l.counter, client: conn.RemoteAddr().String()}
	l.counter.mu.Lock()
	defer l.counter.mu.Unlock()
	l.counter.conns[one.client] = one
	return one, nil
}

type countedConn struct {
	net.Conn
	counter *Counter
	client  string
	// used is set if a counted request came by it, and open is the number of those that are open. The counter's
	// mutex guards both.
	used bool
	open int
}

// Close implements net.Conn.
func (c *countedConn) Close() error {
	c.counter.mu.Lock()
	if c.counter.conns[c.client] == c {
		delete(c.counter.conns, c.client)
	}
	c.counter.mu.Unlock()
	return c.Conn.Close()
}
