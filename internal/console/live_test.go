package console

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// follower reads a live page.
type follower struct {
	*testing.T
	res    *http.Response
	events chan event
}

type event struct{ name, id, data string }

func (b *browser) follow(path, seen string) *follower {
	b.Helper()
	req := b.request(http.MethodGet, "/live?"+url.Values{"path": {path}, "seen": {seen}}.Encode(), nil)
	for name, value := range b.jar {
		req.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	res, err := b.http.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	if kind := res.Header.Get("Content-Type"); kind != "text/event-stream" {
		b.Fatalf("it is %s", kind)
	}
	f := &follower{b.T, res, make(chan event, 100)}
	b.Cleanup(func() { res.Body.Close() })
	go func() {
		defer close(f.events)
		var e event
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			field, value, _ := strings.Cut(lines.Text(), ": ")
			switch field {
			case "event":
				e.name = value
			case "id":
				e.id = value
			case "data":
				e.data += value + "\n"
			case "":
				if e.name != "" || value != "" {
					f.events <- event{e.name + value, e.id, e.data}
				}
				e = event{}
			}
		}
	}()
	return f
}

// next returns the next event with a name and skips others.
func (f *follower) next(name string) event {
	f.Helper()
	limit := time.After(30 * time.Second)
	for {
		select {
		case e, open := <-f.events:
			if !open {
				f.Fatalf("it ended without %s", name)
			}
			if e.name == name {
				return e
			}
		case <-limit:
			f.Fatalf("no %s came", name)
		}
	}
}

// real makes a console use the computer's clock, because its connections do.
func real(o *Options) { o.Clock = clock.RealClock{} }

func TestALivePageIsSentWhenItHasChanged(t *testing.T) {
	pool := poolOf("default", "dev")
	h := newHub(t, pool)
	r := newRig(t, h, real)
	b := r.in("admin-token-of-the-hub")
	f := b.follow("/pools/default/dev", "")
	first := f.next("main")
	if !strings.Contains(first.data, "<h1>dev</h1>") || strings.Contains(first.data, "<html") {
		t.Errorf("sent:\n%s", first.data)
	}
	b.send("/pools/default/dev/claim", url.Values{"claim": {"from-a-form"}})
	second := f.next("main")
	if !strings.Contains(second.data, "from-a-form") || second.id == first.id {
		t.Errorf("id %s after %s, sent:\n%s", second.id, first.id, second.data)
	}
	h.ring() // without a change of the page
	if e := f.next("same"); strings.TrimSpace(e.data) != "" {
		t.Errorf("sent %s", e.data)
	}

	t.Log("what the browser has is not sent")
	again := b.follow("/pools/default/dev", second.id)
	again.next("same")

	t.Log("what is gone is told, and what the browser shows stays")
	if err := h.store.Delete(t.Context(), &hivev1.ClusterPool{ObjectMeta: pool.ObjectMeta}); err != nil {
		t.Fatal(err)
	}
	h.ring()
	if e := f.next("stale"); !strings.Contains(e.data, "no pool dev") {
		t.Errorf("sent %s", e.data)
	}
}

// The server closes a connection whose request takes too long to arrive.
func TestALivePageOutlivesTheLimitOfRequests(t *testing.T) {
	r := newRig(t, newHub(t), real)
	b := r.in("admin-token-of-the-hub")
	ctx, end := context.WithTimeout(t.Context(), 30*time.Second)
	req := httptest.NewRequestWithContext(ctx, http.MethodGet, r.URL+"/live?path=/", nil)
	for name, value := range b.jar {
		req.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	w := &limited{httptest.NewRecorder(), end, nil}
	r.console.Handler().ServeHTTP(w, req)
	if len(w.read) != 1 || !w.read[0].IsZero() {
		t.Errorf("limits that were set: %v, want none, once", w.read)
	}
}

// limited records read deadlines, and ends the request at the first.
type limited struct {
	*httptest.ResponseRecorder
	end  context.CancelFunc
	read []time.Time
}

func (l *limited) SetReadDeadline(at time.Time) error {
	l.read = append(l.read, at)
	l.end()
	return nil
}

func TestALivePageEndsWithTheSession(t *testing.T) {
	begin := func(t *testing.T) (*rig, *person) {
		t.Helper()
		h := newHub(t, poolOf("default", "dev"))
		return newRig(t, h, real), h.admit("alice", token, nil)
	}
	t.Run("that is none", func(t *testing.T) {
		r, _ := begin(t)
		r.browser().follow("/", "").next("bye")
	})
	t.Run("that is closed", func(t *testing.T) {
		r, alice := begin(t)
		b := r.in(token)
		f := b.follow("/", "")
		f.next("main")
		b.post("/signout", url.Values{"csrf-token": {b.mark()}})
		alice.hub.ring()
		f.next("bye")
	})
	t.Run("of somebody the hub knows no more", func(t *testing.T) {
		r, alice := begin(t)
		f := r.in(token).follow("/", "")
		f.next("main")
		alice.lose()
		f.next("bye")
	})
	t.Run("and with the console", func(t *testing.T) {
		r, _ := begin(t)
		f := r.in(token).follow("/", "")
		f.next("main")
		r.end()
		limit := time.After(30 * time.Second)
		for {
			select {
			case _, open := <-f.events:
				if !open {
					return
				}
			case <-limit:
				t.Fatal("it goes on")
			}
		}
	})
}

func TestALivePageOutlastsTheTimeForARequest(t *testing.T) {
	h := newHub(t, poolOf("default", "dev"))
	r := newRig(t, h, real)
	r.console.readTimeout = 300 * time.Millisecond
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- r.console.Serve(l, nil) }()
	r.URL = "http://" + l.Addr().String()
	b := r.in("admin-token-of-the-hub")
	f := b.follow("/", "")
	f.next("main")
	for range 3 { // each takes longer than a request may take
		h.ring()
		f.next("same")
	}
	r.end()
	if err := <-served; err != nil {
		t.Errorf("when it ends: %v", err)
	}
	if p := h.people["admin-token-of-the-hub"]; p.closed == 0 {
		t.Error("who was in is not let go of")
	}
}

func TestALivePageIsOfThisConsole(t *testing.T) {
	r := newRig(t, newHub(t), real)
	b := r.in("admin-token-of-the-hub")
	for _, path := range []string{"/nowhere", "/signin", "/static/style.css", "/live"} {
		b.follow(path, "").next("bye")
	}
	b.follow("https://evil.example/pools", "").next("main") // it is the overview
}

func TestWhoHasTooManyLivePagesIsToldSo(t *testing.T) {
	r := newRig(t, newHub(t), real)
	b := r.in("admin-token-of-the-hub")
	for range maxLivePages {
		b.follow("/", "").next("main")
	}
	if a := b.get("/live?path=/"); a.StatusCode != http.StatusTooManyRequests {
		t.Errorf("%s", a.Status)
	}
}

// Chromium no longer paints a pattern that a live update has replaced.
func TestTexturesAreOutsideTheLivePart(t *testing.T) {
	page := newRig(t, newHub(t)).in("admin-token-of-the-hub").get("/fleet").text
	for _, id := range []string{`id="hatch"`, `id="dots"`} {
		if at := strings.Index(page, id); at < 0 || at > strings.Index(page, "<main") {
			t.Errorf("%s is at %d, and the live part at %d", id, at, strings.Index(page, "<main"))
		}
	}
}
