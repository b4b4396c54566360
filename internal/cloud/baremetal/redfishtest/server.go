// Package redfishtest is a small BMC for tests: it implements Redfish over HTTPS, for one host or
// for all hosts of an enclosure.
//
// It rejects what BMCs reject. The service root requires no authentication and ignores the
// password; everything else requires an account, in the request or with a session, and the number
// of sessions is low. It rejects a reset that is not offered or that the current state does not
// allow. Resets take time: the old state remains until AdvanceStates is called. Lists are paged. A
// test also drives the server with redfishtool, so that it does not only reflect our own idea of a
// BMC.
package redfishtest

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

const (
	// PageSize is the number of members on a page of a list.
	PageSize = 20
	// Sessions is the maximum number of concurrent sessions.
	Sessions = 4
)

// The power states of Redfish.
const (
	On          = "On"
	Off         = "Off"
	PoweringOn  = "PoweringOn"
	PoweringOff = "PoweringOff"
	Paused      = "Paused"
)

// A System is a host.
type System struct {
	ID string
	// State is one of the power states, or any other string; empty is off.
	State string
	// Terse makes the BMC report no states between on and off.
	Terse bool
	// Deaf makes the guest ignore shutdown requests.
	Deaf bool
	// Offered contains the reset types; empty means all that this package supports.
	Offered []string
	// Silent makes the BMC not list the reset types that it offers, and ByInfo makes it list them
	// on a separate page.
	Silent, ByInfo bool
	// Refusal is the error response to resets, if it is set.
	Refusal *Error

	version int
	goal    string
	ticks   int
}

// An Error is an error response.
type Error struct {
	Status  int
	Message string
	// Location is the target of a redirect, if it is one.
	Location string
}

// A Server is one BMC.
type Server struct {
	// URL is the server's address, and Roots contains its certificate in PEM.
	URL   string
	Roots []byte

	mu          sync.Mutex
	systems     []*System
	passwords   map[string]string
	noBasic     bool
	mute        bool
	sessions    map[string]string // path by token
	made        int
	throttle    int
	divert      string
	repeatPages bool
	calls       []string
	hang        chan struct{}
}

// New starts a server, which is closed when the test ends.
func New(tb testing.TB) *Server {
	tb.Helper()
	s := &Server{passwords: map[string]string{}, sessions: map[string]string{}}
	h := httptest.NewTLSServer(s)
	tb.Cleanup(h.Close)
	s.URL = h.URL
	s.Roots = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw})
	return s
}

// NewWithoutTLS starts a server without TLS, which is faster.
func NewWithoutTLS(tb testing.TB) *Server {
	tb.Helper()
	s := &Server{passwords: map[string]string{}, sessions: map[string]string{}}
	h := httptest.NewServer(s)
	tb.Cleanup(h.Close)
	s.URL = h.URL
	return s
}

// HostPort returns the server's host name and port.
func (s *Server) HostPort() string {
	_, host, _ := strings.Cut(s.URL, "://")
	return host
}

// AddAccount adds an account.
func (s *Server) AddAccount(user, password string) {
	s.withLock(func() { s.passwords[user] = password })
}

// RemoveAllAccounts removes all accounts and all sessions.
func (s *Server) RemoveAllAccounts() {
	s.withLock(func() { s.passwords, s.sessions = map[string]string{}, map[string]string{} })
}

// WantSessions makes the server accept accounts only at login.
func (s *Server) WantSessions() { s.withLock(func() { s.noBasic = true }) }

// HideBasicAuth makes the server not announce basic authentication, although it accepts it.
func (s *Server) HideBasicAuth() { s.withLock(func() { s.mute = true }) }

// ThrottleNextRequests rejects the next n requests because of too many requests.
func (s *Server) ThrottleNextRequests(n int) { s.withLock(func() { s.throttle = n }) }

// RedirectRequests answers each request with a redirect to another server.
func (s *Server) RedirectRequests(url string) { s.withLock(func() { s.divert = url }) }

// RepeatSamePage makes each page of a list link to itself as the next page.
func (s *Server) RepeatSamePage() { s.withLock(func() { s.repeatPages = true }) }

// HangEveryRequest makes every request hang until its context ends; the returned channel receives a
// value for each such request.
func (s *Server) HangEveryRequest() <-chan struct{} {
	c := make(chan struct{}, 1)
	s.withLock(func() { s.hang = c })
	return c
}

func (s *Server) withLock(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// AddSystem adds a system.
func (s *Server) AddSystem(sys System) {
	if sys.State == "" {
		sys.State = Off
	}
	s.withLock(func() { s.systems = append(s.systems, &sys) })
}

// ChangeSystem changes a system.
func (s *Server) ChangeSystem(tb testing.TB, id string, f func(*System)) {
	tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	sys := s.findSystem(id)
	if sys == nil {
		tb.Fatalf("no system %s", id)
	}
	f(sys)
}

// RemoveSystem removes a system.
func (s *Server) RemoveSystem(id string) {
	s.withLock(func() { s.systems = slices.DeleteFunc(s.systems, func(o *System) bool { return o.ID == id }) })
}

// PowerStates returns the power states by ID.
func (s *Server) PowerStates() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]string{}
	for _, sys := range s.systems {
		out[sys.ID] = sys.State
	}
	return out
}

// RecordedResets returns the resets that were executed or rejected so far: "type id", followed by
// the status if it was rejected.
func (s *Server) RecordedResets() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// CountOpenSessions returns the number of open sessions.
func (s *Server) CountOpenSessions() int { s.mu.Lock(); defer s.mu.Unlock(); return len(s.sessions) }

// CountCreatedSessions returns the number of sessions created so far.
func (s *Server) CountCreatedSessions() int { s.mu.Lock(); defer s.mu.Unlock(); return s.made }

// AdvanceStates simulates the passing of time: each system advances towards its target state.
func (s *Server) AdvanceStates() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sys := range s.systems {
		sys.advanceState()
	}
}

func (sys *System) advanceState() {
	if sys.goal == "" {
		return
	}
	sys.ticks++
	sys.version++
	switch {
	case sys.ticks >= 3:
		sys.State, sys.goal = sys.goal, ""
	case sys.ticks == 1 && !sys.Terse && sys.goal == On:
		sys.State = PoweringOn
	case sys.ticks == 2 && !sys.Terse && sys.goal == Off:
		sys.State = PoweringOff
	}
}

func (s *Server) findSystem(id string) *System {
	i := slices.IndexFunc(s.systems, func(o *System) bool { return o.ID == id })
	if i < 0 {
		return nil
	}
	return s.systems[i]
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	hang := s.hang
	s.mu.Unlock()
	if hang != nil {
		select {
		case hang <- struct{}{}:
		default:
		}
		<-r.Context().Done()
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.throttle > 0:
		s.throttle--
		w.Header().Set("Retry-After", "1")
		writeError(w, http.StatusServiceUnavailable, "The service is temporarily unavailable. Retry in 1 seconds.")
	case s.divert != "":
		w.Header().Set("Location", s.divert+r.URL.Path)
		w.WriteHeader(http.StatusTemporaryRedirect)
	default:
		s.routeRequest(w, r)
	}
}

// authorizeRequest reports whether the request may proceed; otherwise it sends the error response.
func (s *Server) authorizeRequest(w http.ResponseWriter, r *http.Request) bool {
	if token := r.Header.Get("X-Auth-Token"); token != "" {
		if _, ok := s.sessions[token]; ok {
			return true
		}
	} else if user, password, ok := r.BasicAuth(); ok && !s.noBasic && s.acceptsAccount(user, password) {
		return true
	}
	if !s.noBasic && !s.mute {
		w.Header().Set("WWW-Authenticate", `Basic realm="BMC"`)
	}
	writeError(w, http.StatusUnauthorized, "The account in the request cannot be used.")
	return false
}

func (s *Server) acceptsAccount(user, password string) bool {
	p, ok := s.passwords[user]
	return ok && p == password
}

func (s *Server) createSession(user, password string) (token, path string, err *Error) {
	if !s.acceptsAccount(user, password) {
		return "", "", &Error{Status: http.StatusUnauthorized, Message: "The account cannot be used."}
	}
	if len(s.sessions) >= Sessions {
		return "", "", &Error{Status: http.StatusServiceUnavailable, Message: "The session establishment failed due to the number of simultaneous sessions exceeding the limit."}
	}
	s.made++
	token, path = fmt.Sprintf("token-%d", s.made), fmt.Sprintf("/redfish/v1/SessionService/Sessions/%d", s.made)
	s.sessions[token] = path
	return token, path, nil
}
