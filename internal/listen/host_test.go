package listen

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestOnlyNamesOfThisComputerAreServed(t *testing.T) {
	h := RequireLocalHost(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for host, want := range map[string]int{
		"127.0.0.1:9090": http.StatusOK, "127.0.0.1": http.StatusOK, "localhost:9090": http.StatusOK, "LOCALHOST": http.StatusOK,
		"[::1]:9090": http.StatusOK, "[::1]": http.StatusOK,
		"evil.example.com:9090": http.StatusMisdirectedRequest, "evil.example.com": http.StatusMisdirectedRequest,
		"127.0.0.1.nip.io": http.StatusMisdirectedRequest, "10.0.0.1": http.StatusMisdirectedRequest, "": http.StatusMisdirectedRequest,
	} {
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.Host = host
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%q: %d, want %d", host, w.Code, want)
		}
	}
}
