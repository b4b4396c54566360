package healthz_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"hotspare.io/hotspare/internal/manager/healthz"
)

func TestItTellsHowTheManagerIs(t *testing.T) {
	var p healthz.Probe
	says := func(when, path string, code int, words string) {
		t.Helper()
		w := httptest.NewRecorder()
		p.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != code || !strings.Contains(w.Body.String(), words) {
			t.Errorf("%s: %s is %d %q, want %d %q", when, path, w.Code, w.Body, code, words)
		}
	}
	says("at first", "/readyz", http.StatusServiceUnavailable, "starting")
	says("at first", "/healthz", http.StatusOK, "ok")
	p.SetUnready("kinds are missing")
	says("while it waits", "/readyz", http.StatusServiceUnavailable, "kinds are missing")
	says("while it waits", "/healthz", http.StatusOK, "ok")
	p.SetReady()
	says("when it can work", "/readyz", http.StatusOK, "ok")
	says("always", "/metrics", http.StatusNotFound, "")
}

func TestItServesUntilItsContextEnds(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- new(healthz.Probe).Serve(ctx, l) }()
	res, err := http.Get("http://" + l.Addr().String() + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(res.Body)
	if err != nil || string(raw) != "ok\n" {
		t.Errorf("it says %q, %v", raw, err)
	}
	if err := res.Body.Close(); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("it listens on")
	}
}
