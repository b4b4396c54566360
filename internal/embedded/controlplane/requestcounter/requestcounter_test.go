package requestcounter

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"

	"hotspare.io/hotspare/internal/activity"
)

const patience = 30 * time.Second

// rig is an API server with a handler chain as that of kube-apiserver: the counter around everything, then
// authentication, then the API.
type rig struct {
	*testing.T
	*Counter
	server *httptest.Server
	age    atomic.Int64 // the clock
	end    chan struct{}
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{T: t, end: make(chan struct{})}
	start := time.Now()
	r.Counter = newCounter(func() time.Time { return start.Add(time.Duration(r.age.Load())) })
	users := r.WrapAuthenticator(authenticator.RequestFunc(func(req *http.Request) (*authenticator.Response, bool, error) {
		name := req.Header.Get("User")
		return &authenticator.Response{User: &user.DefaultInfo{Name: name}}, name != "", nil
	}))
	api := r.ServeReport(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch req.URL.Path {
		case "/watch":
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			select {
			case <-req.Context().Done():
			case <-r.end:
			}
		case "/exec":
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\n\r\n")
			<-r.end
		}
	}))
	chain := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, ok, _ := users.AuthenticateRequest(req)
		_, _, _ = users.AuthenticateRequest(req) // the aggregator's servers share it
		if !ok {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		api.ServeHTTP(w, req)
	})
	r.server = httptest.NewUnstartedServer(r.WrapHandler(chain))
	r.server.Listener = r.WrapListener(r.server.Listener)
	r.server.Start()
	t.Cleanup(r.server.Close)
	return r
}

func (r *rig) pass(span time.Duration) { r.age.Add(int64(span)) }

func (r *rig) request(name, path string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(r.Context(), http.MethodGet, r.server.URL+path, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User", name)
	return r.server.Client().Do(req)
}

// get is a request that ends.
func (r *rig) get(name, path string) string {
	r.Helper()
	answer, err := r.request(name, path)
	if err != nil {
		r.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		r.Fatal(err)
	}
	return string(body)
}

// is waits until the report is as wanted: a handler ends after its answer.
func (r *rig) is(want activity.Counts) {
	r.Helper()
	for deadline := time.Now().Add(patience); r.Report().Counts != want; time.Sleep(time.Millisecond) { //nolint:forbidigo // nothing reports it
		if time.Now().After(deadline) {
			r.Fatalf("got %+v, want %+v", r.Report(), want)
		}
	}
}

func TestOnlyRequestsOfPeopleCount(t *testing.T) {
	r := newRig(t)
	r.pass(time.Minute)
	r.is(activity.Counts{IdleSeconds: 60})
	for _, name := range []string{"", "system:anonymous", "system:node:a", activity.HubUser, "system:serviceaccount:kube-system:dns"} {
		r.get(name, "/api")
	}
	r.is(activity.Counts{IdleSeconds: 60})
	r.get("system:admin", "/api")
	r.is(activity.Counts{Requests: 1})
	r.pass(time.Second)
	r.get("system:serviceaccount:default:app", "/api")
	r.get("jane", "/api")
	r.is(activity.Counts{Requests: 3})
	r.pass(time.Second)
	r.is(activity.Counts{IdleSeconds: 1, Requests: 3})
	r.Restart()
	r.is(activity.Counts{})
}

func TestWhatIsOpenIsUse(t *testing.T) {
	r := newRig(t)
	watch, err := r.request("jane", "/watch")
	if err != nil {
		t.Fatal(err)
	}
	r.pass(24 * time.Hour)
	r.is(activity.Counts{OpenRequests: 1, Requests: 1})
	r.Restart()
	r.is(activity.Counts{OpenRequests: 1, Requests: 1})
	_ = watch.Body.Close()
	r.is(activity.Counts{Requests: 1})
	r.pass(time.Minute)
	r.is(activity.Counts{IdleSeconds: 60, Requests: 1})

	exec, err := net.Dial("tcp", strings.TrimPrefix(r.server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer exec.Close()
	if _, err := fmt.Fprint(exec, "GET /exec HTTP/1.1\r\nHost: x\r\nUser: jane\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(exec).ReadString('\n'); err != nil || !strings.Contains(line, "101") {
		t.Fatalf("%q, %v", line, err)
	}
	r.pass(time.Hour)
	r.is(activity.Counts{OpenRequests: 1, Requests: 2})
	close(r.end)
	r.is(activity.Counts{Requests: 2})
}

func TestTheReportIsServed(t *testing.T) {
	r := newRig(t)
	r.get("jane", "/api")
	r.is(activity.Counts{Requests: 1})
	r.pass(90 * time.Second)
	var got activity.Report
	if err := json.Unmarshal([]byte(r.get(activity.HubUser, activity.Path)), &got); err != nil {
		t.Fatal(err)
	}
	if want := (activity.Counts{IdleSeconds: 90, Requests: 1}); got.Counts != want || got.Sources[activity.UserSource] != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// The hub can leave out the service accounts of a namespace: what they hold open is counted apart.
func TestServiceAccountsAreCountedByTheirNamespace(t *testing.T) {
	r := newRig(t)
	const controller = "system:serviceaccount:cert-manager:cert-manager"
	watch, err := net.Dial("tcp", strings.TrimPrefix(r.server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Close()
	if _, err := fmt.Fprintf(watch, "GET /watch HTTP/1.1\r\nHost: x\r\nUser: %s\r\n\r\n", controller); err != nil {
		t.Fatal(err)
	}
	r.is(activity.Counts{OpenRequests: 1, Requests: 1})
	r.get("jane", "/api")
	r.get("system:serviceaccount:default:app", "/api")
	r.pass(time.Minute)
	r.is(activity.Counts{OpenRequests: 1, Requests: 3})
	for ignored, want := range map[string]activity.Counts{
		"cert-manager":         {IdleSeconds: 60, Requests: 2},
		"cert-manager default": {IdleSeconds: 60, Requests: 1},
		"default":              {OpenRequests: 1, Requests: 2},
		"":                     {OpenRequests: 1, Requests: 3},
	} {
		if got := r.Report().Without(strings.Fields(ignored)); got != want {
			t.Errorf("without %q: got %+v, want %+v", ignored, got, want)
		}
	}
	r.Restart()
	if got := r.Report().Without([]string{"cert-manager"}); got != (activity.Counts{}) {
		t.Errorf("after a restart: %+v", got)
	}
	close(r.end)
	r.is(activity.Counts{Requests: 1})
}

// Somebody who creates namespaces without end does not make the API server grow: those beyond a limit count as users.
func TestTheNumberOfSourcesIsLimited(t *testing.T) {
	r := newRig(t)
	for i := range 2 * maxSources {
		r.get(fmt.Sprintf("system:serviceaccount:ns%d:app", i), "/api")
	}
	got := r.Report()
	if len(got.Sources) != maxSources || got.Requests != 2*maxSources || got.Sources[activity.UserSource].Requests != maxSources+1 {
		t.Errorf("%d sources, %d requests, those of users are %+v", len(got.Sources), got.Requests, got.Sources[activity.UserSource])
	}
}

// A client that is idle connects anew after a freeze; the hub, nodes and open watches keep their connections.
func TestConnectionsThatAreNotInUseAreClosed(t *testing.T) {
	r := newRig(t)
	dial := func(name, path string) net.Conn {
		conn, err := net.Dial("tcp", strings.TrimPrefix(r.server.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nUser: %s\r\n\r\n", path, name); err != nil {
			t.Fatal(err)
		}
		if _, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	idle, node, watch := dial("jane", "/api"), dial("system:node:a", "/api"), dial("jane", "/watch")
	r.is(activity.Counts{OpenRequests: 1, Requests: 2})
	r.CloseUnused()
	isOpen := func(conn net.Conn) bool {
		if err := conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		_, err := io.Copy(io.Discard, conn)
		timeout, ok := err.(net.Error) //nolint:errorlint // as it is returned
		return ok && timeout.Timeout()
	}
	if isOpen(idle) || !isOpen(node) || !isOpen(watch) {
		t.Error("the wrong connections are closed")
	}
	close(r.end)
}

// The API server serves a request in a goroutine of its own, and its handler returns before that if the client is gone.
func TestARequestThatIsAuthenticatedTooLateIsNotOpen(t *testing.T) {
	c := New()
	users := c.WrapAuthenticator(authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) {
		return &authenticator.Response{User: &user.DefaultInfo{Name: "jane"}}, true, nil
	}))
	var late *http.Request
	chain := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { late = r })
	c.WrapHandler(chain).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	if _, ok, err := users.AuthenticateRequest(late); !ok || err != nil {
		t.Fatalf("the request is not authenticated: %t, %v", ok, err)
	}
	if got := c.Report().Counts; got.OpenRequests != 0 || got.Requests != 0 {
		t.Errorf("got %+v", got)
	}
}
