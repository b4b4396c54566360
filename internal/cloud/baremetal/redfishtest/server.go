// Package redfishtest is a small BMC for tests: it speaks Redfish over HTTPS, for one
// host or for all those of an enclosure.
//
// It refuses what BMCs refuse. The first page is for everybody, whatever password comes
// with it; all others want an account, in the request or as a session, and there are few
// sessions. A reset that was not offered, or that does not go with the state, is refused.
// Resets take time: right after one the state is the old one, until Step. A list comes in
// pages. Its other client is redfishtool: a test drives it with that, so that it is not
// only our idea of a BMC.
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
	// PageSize is how many members a page of a list has.
	PageSize = 20
	// Sessions is how many there may be at a time.
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
	// State is one of those above, or any other word; empty is off.
	State string
	// Terse is that the BMC shows no states between on and off.
	Terse bool
	// Deaf is that the guest does not shut down when it is asked to.
	Deaf bool
	// Offered are the reset types; empty for all that there are here.
	Offered []string
	// Silent is that it does not say what it offers, and ByInfo that it says so on a page of its own.
	Silent, ByInfo bool
	// Refusal is what resets are answered with, if it is set.
	Refusal *Error

	version int
	goal    string
	ticks   int
}

// An Error is an answer that is none.
type Error struct {
	Status  int
	Message string
	// Location is where to, if it is a redirection.
	Location string
}

// A Server is one BMC.
type Server struct {
	// URL is its address, and Roots the certificate that it shows, in PEM.
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

// New starts a server, which ends with the test.
func New(tb testing.TB) *Server {
	tb.Helper()
	s := &Server{passwords: map[string]string{}, sessions: map[string]string{}}
	h := httptest.NewTLSServer(s)
	tb.Cleanup(h.Close)
	s.URL = h.URL
	s.Roots = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw})
	return s
}

// NewWithoutTLS starts one without TLS, which is quicker.
func NewWithoutTLS(tb testing.TB) *Server {
	tb.Helper()
	s := &Server{passwords: map[string]string{}, sessions: map[string]string{}}
	h := httptest.NewServer(s)
	tb.Cleanup(h.Close)
	s.URL = h.URL
	return s
}

// HostPort is its name and port.
func (s *Server) HostPort() string {
	_, host, _ := strings.Cut(s.URL, "://")
	return host
}

// AddAccount makes an account.
func (s *Server) AddAccount(user, password string) {
	s.withLock(func() { s.passwords[user] = password })
}

// RemoveAllAccounts takes every account, and every session.
func (s *Server) RemoveAllAccounts() {
	s.withLock(func() { s.passwords, s.sessions = map[string]string{}, map[string]string{} })
}

// WantSessions takes accounts at logins only.
func (s *Server) WantSessions() { s.withLock(func() { s.noBasic = true }) }

// HideBasicAuth does not say that accounts are taken in requests, though they are.
func (s *Server) HideBasicAuth() { s.withLock(func() { s.mute = true }) }

// ThrottleNextRequests refuses the next n requests for being too many.
func (s *Server) ThrottleNextRequests(n int) { s.withLock(func() { s.throttle = n }) }

// RedirectRequests answers each request with a redirection to another server.
func (s *Server) RedirectRequests(url string) { s.withLock(func() { s.divert = url }) }

// RepeatSamePage makes each page of a list its own next one.
func (s *Server) RepeatSamePage() { s.withLock(func() { s.repeatPages = true }) }

// HangEveryRequest makes every request hang until it ends; there is something in the channel
// whenever one does.
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

// RemoveSystem takes a system out.
func (s *Server) RemoveSystem(id string) {
	s.withLock(func() { s.systems = slices.DeleteFunc(s.systems, func(o *System) bool { return o.ID == id }) })
}

// PowerStates are the power states by ID.
func (s *Server) PowerStates() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]string{}
	for _, sys := range s.systems {
		out[sys.ID] = sys.State
	}
	return out
}

// RecordedResets are those that were done or refused so far: "type id", and the status if it was refused.
func (s *Server) RecordedResets() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// CountOpenSessions is how many sessions there are, and Made how many there were.
func (s *Server) CountOpenSessions() int { s.mu.Lock(); defer s.mu.Unlock(); return len(s.sessions) }

// CountCreatedSessions is how many sessions there were.
func (s *Server) CountCreatedSessions() int { s.mu.Lock(); defer s.mu.Unlock(); return s.made }

// AdvanceStates lets time pass: each system comes nearer to where it goes.
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

// authorizeRequest answers those that may not go on.
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
