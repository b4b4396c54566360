package console

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"hotspare.io/hotspare/internal/console/session"
	"hotspare.io/hotspare/internal/console/userclient"
)

const token = "eyJhbGciOi.a-token.of-alice"

func TestATokenOpensASession(t *testing.T) {
	h := newHub(t, poolOf("default", "dev"))
	alice := h.admit("alice", token, nil)
	r := newRig(t, h)
	b := r.browser()

	if a := b.get("/pools?namespace=x"); a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != "/signin?next=%2Fpools%3Fnamespace%3Dx" {
		t.Errorf("a stranger is sent to %q: %s", a.Header.Get("Location"), a.Status)
	}
	a := b.post("/signin", url.Values{"token": {" " + token + "\n"}, "next": {"/pools"}})
	if a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != "/pools" {
		t.Fatalf("%s to %s", a.Status, a.Header.Get("Location"))
	}
	c := a.Cookies()[0]
	if c.Name != "hotspare-session-1" || !c.HttpOnly || c.Secure || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" {
		t.Errorf("the cookie is %s", c)
	}
	if a := b.get("/pools"); a.StatusCode != http.StatusOK || !strings.Contains(a.text, "alice") || !strings.Contains(a.text, "dev") {
		t.Errorf("%s\n%s", a.Status, a.text)
	} else if strings.Contains(a.text, token) || strings.Contains(a.text, c.Value) {
		t.Error("the page tells a secret")
	}
	if a := b.get("/signin?next=/pools"); a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != "/pools" {
		t.Errorf("who is in is asked again: %s", a.Status)
	}
	if a := b.post("/signout", url.Values{"csrf-token": {b.mark()}}); a.StatusCode != http.StatusSeeOther {
		t.Errorf("signing out: %s", a.Status)
	}
	b.jar["hotspare-session-1"] = c.Value
	if a := b.get("/pools"); a.StatusCode != http.StatusSeeOther || alice.closed != 1 {
		t.Errorf("after signing out: %s, closed %d times", a.Status, alice.closed)
	}
	for _, secret := range []string{token, c.Value} {
		if strings.Contains(r.log.String(), secret) {
			t.Errorf("the log tells a secret:\n%s", r.log)
		}
	}
	if !strings.Contains(r.log.String(), "alice") {
		t.Error("the log does not tell who signed in")
	}
}

func TestByHttpsTheCookieIsForHttpsOnly(t *testing.T) {
	h := newHub(t)
	r := newRig(t, h, func(o *Options) { o.Secure = true })
	a := r.browser().post("/signin", url.Values{"token": {"admin-token-of-the-hub"}})
	if c := a.Cookies()[0]; c.Name != "__Host-hotspare-session" || !c.Secure {
		t.Errorf("the cookie is %s", c)
	}
	if a.Header.Get("Strict-Transport-Security") == "" {
		t.Error("browsers are not told to come by https only")
	}
}

func TestWhatIsNoTokenIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		token  string
		hub    error
		status int
		want   string
	}{
		"nothing":               {" ", nil, http.StatusBadRequest, "not a token"},
		"two words":             {"one two", nil, http.StatusBadRequest, "not a token"},
		"one of nobody":         {"made-up", nil, http.StatusUnauthorized, "does not accept this token"},
		"when the hub is away":  {"any", errors.New("asking the hub who this is: connection refused"), http.StatusBadGateway, "connection refused"},
		"more than a token has": {strings.Repeat("a", 100<<10), nil, http.StatusBadRequest, "not a token"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			h.fails = c.hub
			r := newRig(t, h)
			b := r.browser()
			a := b.post("/signin", url.Values{"token": {c.token}, "next": {"/pools"}})
			if a.StatusCode != c.status || !strings.Contains(a.text, c.want) || len(b.jar) != 0 {
				t.Errorf("%s, cookies %v\n%s", a.Status, b.jar, a.text)
			}
			if strings.Contains(a.text, "made-up") || strings.Contains(r.log.String(), "made-up") {
				t.Error("what was pasted is told")
			}
		})
	}
}

// tokenHub checks tokens one by one while it is held. It counts the checks that have begun.
type tokenHub struct {
	held  chan struct{}
	begun atomic.Int32
}

func (h *tokenHub) ViewerForToken(context.Context, string) (Viewer, error) {
	h.begun.Add(1)
	if h.held != nil {
		<-h.held
	}
	return nil, userclient.ErrUnknown
}

func (h *tokenHub) AdminViewer(context.Context) (Viewer, error) { return nil, userclient.ErrUnknown }

// postToken sends a token from an address that all share, and returns the status of the answer.
func postToken(ctx context.Context, s *Server, token string) int {
	req := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/signin", strings.NewReader(url.Values{"token": {token}}.Encode()))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, req)
	return w.Code
}

func TestGuessingTokensIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := New(t.Context(), Options{Hub: &tokenHub{}, Clock: clock.RealClock{}})
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		for i := range maxFailures {
			if got := postToken(t.Context(), s, "wrong"); got != http.StatusUnauthorized || time.Since(begin) != 0 {
				t.Fatalf("try %d: %d after %s", i, got, time.Since(begin))
			}
		}
		for i := range 3 {
			if got, want := postToken(t.Context(), s, "wrong"), time.Duration(i+1)*failureDecay; got != http.StatusUnauthorized || time.Since(begin) != want {
				t.Errorf("try %d after the first %d: %d after %s, want %s", i, maxFailures, got, time.Since(begin), want)
			}
		}
		ctx, leave := context.WithCancel(t.Context())
		leave()
		postToken(t.Context(), s, "wrong")
		at := time.Now()
		if postToken(ctx, s, "wrong"); time.Since(at) != 0 {
			t.Errorf("a client that has left keeps its request for %s", time.Since(at))
		}
		s.failures.removeDecayed(time.Now().Add(time.Hour))
		if n := len(s.failures.byAddress); n != 0 {
			t.Errorf("%d addresses are remembered for ever", n)
		}
	})
}

// All users of a proxy have its address.
func TestWrongTokensDelayNoValidOne(t *testing.T) {
	r := newRig(t, newHub(t))
	for range 3 * maxFailures {
		r.console.failures.recordFailure("127.0.0.1", start)
	}
	if a := r.browser().post("/signin", url.Values{"token": {"admin-token-of-the-hub"}}); a.StatusCode != http.StatusSeeOther {
		t.Errorf("a valid token after wrong ones: %s", a.Status)
	}
	if a := r.browser().get("/enter?code=" + r.key.NewCode(start)); a.StatusCode != http.StatusSeeOther {
		t.Errorf("a valid code after wrong tokens: %s", a.Status)
	}
}

func TestTheHubChecksFewTokensAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &tokenHub{held: make(chan struct{})}
		s, err := New(t.Context(), Options{Hub: h, Clock: clock.RealClock{}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan int)
		var all sync.WaitGroup
		for range maxTokenChecks {
			all.Go(func() { postToken(t.Context(), s, "wrong") })
		}
		synctest.Wait()
		go func() { left <- postToken(ctx, s, "wrong") }()
		for range maxTokenChecks {
			all.Go(func() { postToken(t.Context(), s, "wrong") })
		}
		synctest.Wait()
		if n := h.begun.Load(); n != maxTokenChecks {
			t.Errorf("%d tokens are checked at once, want %d", n, maxTokenChecks)
		}
		leave()
		if got := <-left; got != http.StatusBadGateway {
			t.Errorf("a client that has left gets %d", got)
		}
		close(h.held)
		all.Wait()
		if n := h.begun.Load(); n != 2*maxTokenChecks {
			t.Errorf("%d tokens were checked, want %d", n, 2*maxTokenChecks)
		}
	})
}

func TestALinkLetsTheAdminInOnce(t *testing.T) {
	h := newHub(t)
	r := newRig(t, h)
	code := r.key.NewCode(start)
	b := r.browser()
	if a := b.do(b.request(http.MethodHead, "/enter?code="+code, nil)); a.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("a look at the head: %s", a.Status)
	}
	early := b.request(http.MethodGet, "/enter?code="+code, nil)
	early.Header.Set("Sec-Purpose", "prefetch;prerender")
	if a := b.do(early); a.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("a browser that looks ahead: %s", a.Status)
	}
	a := b.get("/enter?code=" + code)
	if a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != "/" || strings.Contains(a.text, code) {
		t.Fatalf("%s to %s", a.Status, a.Header.Get("Location"))
	}
	if a := b.get("/"); !strings.Contains(a.text, "root") {
		t.Errorf("%s", a.text)
	}
	other := r.browser()
	if a := other.get("/enter?code=" + code); a.StatusCode != http.StatusUnauthorized || len(other.jar) != 0 || !strings.Contains(a.text, "already been used") {
		t.Errorf("a second time: %s\n%s", a.Status, a.text)
	}
	r.clock.Step(2 * time.Minute)
	if a := other.get("/enter?code=" + r.key.NewCode(start)); a.StatusCode != http.StatusUnauthorized || !strings.Contains(a.text, "older than a minute") {
		t.Errorf("too late: %s\n%s", a.Status, a.text)
	}
	if strings.Contains(r.log.String(), code) {
		t.Error("the log tells the code")
	}
	t.Run("followed from another site, by a page that the browser can go on from", func(t *testing.T) {
		b := r.browser()
		req := b.request(http.MethodGet, "/enter?code="+r.key.NewCode(r.clock.Now()), nil)
		req.Header.Set("Sec-Fetch-Site", "cross-site")
		if a := b.do(req); a.StatusCode != http.StatusOK || !strings.Contains(a.text, `href="/"`) || len(b.jar) != 1 {
			t.Errorf("%s, cookies %v\n%s", a.Status, b.jar, a.text)
		}
	})
	t.Run("not where there are no links", func(t *testing.T) {
		r := newRig(t, h, func(o *Options) { o.Key = nil })
		b := r.browser()
		if a := b.get("/enter?code=" + code); a.StatusCode != http.StatusNotFound || len(b.jar) != 0 {
			t.Errorf("%s", a.Status)
		}
		if strings.Contains(b.get("/signin").text, "hotspare console") {
			t.Error("it tells of links")
		}
	})
}

func TestAfterSigningInNobodyIsSentElsewhere(t *testing.T) {
	for next, want := range map[string]string{
		"/pools?namespace=a&x=%20": "/pools?namespace=a&x=%20",
		"":                         "/", "pools": "/", "//evil.example": "/", "https://evil.example/": "/", `/\evil.example`: "/",
		"/\t/evil.example": "/", "javascript:alert(1)": "/", "/%zz": "/",
	} {
		if got := localPath(next); got != want {
			t.Errorf("%q: got %q, want %q", next, got, want)
		}
	}
}

func TestASessionEnds(t *testing.T) {
	for name, end := range map[string]func(*rig, *person){
		"when it is not used":                  func(r *rig, _ *person) { r.clock.Step(session.IdleTimeout) },
		"when the hub knows the token no more": func(_ *rig, p *person) { p.lose() },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			alice := h.admit("alice", token, nil)
			r := newRig(t, h)
			b := r.in(token)
			if a := b.get("/"); a.StatusCode != http.StatusOK {
				t.Fatalf("%s", a.Status)
			}
			end(r, alice)
			if a := b.get("/"); a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != "/signin" {
				t.Errorf("%s", a.Status)
			}
		})
	}
}

func TestALookIsRemembered(t *testing.T) {
	b := newRig(t, newHub(t)).browser()
	for _, look := range []string{"dark", "light"} {
		if a := b.post("/theme", url.Values{"theme": {look}, "back": {"/pools"}}); a.Header.Get("Location") != "/pools" {
			t.Errorf("back to %s", a.Header.Get("Location"))
		}
		if !strings.Contains(b.get("/signin").text, `data-theme="`+look+`"`) {
			t.Errorf("it is not %s", look)
		}
	}
	b.post("/theme", url.Values{"theme": {"system"}})
	if strings.Contains(b.get("/signin").text, "data-theme") {
		t.Error("it is not the system's")
	}
	b.jar[themeCookie] = `"><script>`
	if strings.Contains(b.get("/signin").text, "data-theme") {
		t.Error("an unknown theme is set")
	}
}
