// Package ec2test is a small EC2 for tests. It implements the Query protocol of EC2 over HTTP, and
// AssumeRole of STS.
//
// It rejects what EC2 rejects. It recomputes and compares signatures. A call for several instances
// is executed for all of them or for none. States do not jump: an instance is pending, stopping or
// shutting down until AdvanceStates is called. Lists are paged, and a page may be empty without
// being the last one. A test also drives the server with awscli, so that it does not only reflect
// our own idea of EC2.
package ec2test

import (
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
)

// PageSize is the maximum number of the account's instances that are scanned for one page. Filters
// are applied afterwards, so a page may have fewer instances or none.
const PageSize = 100

// A Server is one account in one region, with instances.
type Server struct {
	// URL is the endpoint of EC2 and of STS.
	URL string

	mu           sync.Mutex
	keys         map[string]*key
	roles        map[string]string // external ID by ARN
	instances    []*Instance
	pages        map[string]page
	calls        []string
	throttle     int
	failure      *Error
	beforeAction func(action string)
	hang         chan struct{}
	made         int
}

// key is an access key that the account has issued.
type key struct {
	sdk.Credentials
	expired bool
}

// New starts a server, which is closed when the test ends.
func New(tb testing.TB) *Server {
	tb.Helper()
	s := &Server{keys: map[string]*key{}, roles: map[string]string{}, pages: map[string]page{}}
	h := httptest.NewServer(s)
	tb.Cleanup(h.Close)
	s.URL = h.URL
	return s
}

// AddAccessKey makes an access key valid.
func (s *Server) AddAccessKey(c sdk.Credentials) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys[c.AccessKeyID] = &key{Credentials: c}
}

// AllowRole allows every key to assume a role with the given external ID.
func (s *Server) AllowRole(arn, externalID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.roles[arn] = externalID
}

// ExpireAllKeys expires all existing keys.
func (s *Server) ExpireAllKeys() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.keys {
		k.expired = true
	}
}

// ThrottleNextCalls rejects the next n calls because of too many requests.
func (s *Server) ThrottleNextCalls(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.throttle = n
}

// FailEveryCall makes every call fail with e; nil ends this.
func (s *Server) FailEveryCall(e *Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = e
}

// BeforeAction registers f, which is called before each accepted action is executed.
func (s *Server) BeforeAction(f func(action string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beforeAction = f
}

// HangEveryCall makes calls hang until the client gives up. The returned channel receives a value
// for each such call; it has a large buffer, and values that do not fit are dropped.
func (s *Server) HangEveryCall() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hang = make(chan struct{}, 100)
	return s.hang
}

// AcceptedCalls returns the calls accepted so far, each as its action and the instances that it
// names: "StopInstances i-1 i-2", "StopInstances --hibernate i-3".
func (s *Server) AcceptedCalls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Error is an error response of EC2.
type Error struct {
	Code, Message string
	Status        int
	// Body, if set, is sent verbatim as the response, as proxies do.
	Body string
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

func newAPIError(status int, code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Status: status}
}

// ServeHTTP answers one call.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return // the client disconnected
	}
	if s.recordHang() {
		<-r.Context().Done()
		return
	}
	answer, fail := s.answerCall(r, body)
	w.Header().Set("Content-Type", "text/xml;charset=UTF-8")
	if fail != nil {
		w.WriteHeader(fail.Status)
		if fail.Body != "" {
			fmt.Fprint(w, fail.Body)
			return
		}
		answer = errorResponse(requestService(r), fail)
	}
	raw, err := xml.Marshal(answer)
	if err != nil {
		panic(err) // our own types
	}
	fmt.Fprintf(w, "%s%s", xml.Header, raw)
}

func (s *Server) recordHang() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hang == nil {
		return false
	}
	select {
	case s.hang <- struct{}{}:
	default:
	}
	return true
}

func (s *Server) answerCall(r *http.Request, body []byte) (any, *Error) {
	form, err := url.ParseQuery(string(body))
	if err != nil || r.Method != http.MethodPost {
		return nil, newAPIError(http.StatusBadRequest, "MalformedQueryString", "The query string contains a syntax error")
	}
	q := query{form}
	s.mu.Lock()
	held := s.checkCallAllowed(r, body)
	meanwhile := s.beforeAction
	if held == nil {
		action := q.Get("Action")
		if q.Get("Hibernate") == "true" {
			action += " --hibernate"
		}
		s.calls = append(s.calls, strings.Join(append([]string{action}, q.listValues("InstanceId")...), " "))
	}
	s.mu.Unlock()
	if held != nil {
		return nil, held
	}
	if meanwhile != nil {
		meanwhile(q.Get("Action"))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dispatchAction(requestService(r), q)
}

// checkCallAllowed returns why a call is rejected before its action is read, or nil. The caller
// must hold s.mu.
func (s *Server) checkCallAllowed(r *http.Request, body []byte) *Error {
	if e := s.verifySignature(r, body); e != nil {
		return e
	}
	if s.throttle > 0 {
		s.throttle--
		return newAPIError(http.StatusServiceUnavailable, "RequestLimitExceeded", "Request limit exceeded.")
	}
	return s.failure
}

// dispatchAction executes an action. The caller must hold s.mu.
func (s *Server) dispatchAction(service string, q query) (any, *Error) {
	switch action := service + " " + q.Get("Version") + " " + q.Get("Action"); action {
	case "ec2 2016-11-15 DescribeInstances":
		return s.describeInstances(q)
	case "ec2 2016-11-15 StartInstances":
		return s.changeInstances(q, "StartInstancesResponse", reason{}, (*Instance).stateAfterStart)
	case "ec2 2016-11-15 StopInstances":
		return s.stopInstances(q)
	case "ec2 2016-11-15 TerminateInstances":
		return s.changeInstances(q, "TerminateInstancesResponse", shutDown, (*Instance).stateAfterTerminate)
	case "sts 2011-06-15 AssumeRole":
		return s.assumeRole(q)
	default:
		return nil, newAPIError(http.StatusBadRequest, "InvalidAction", "The action %s is not valid for this web service.", action)
	}
}
