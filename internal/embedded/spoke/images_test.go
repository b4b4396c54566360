package spoke

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"hotspare.io/hotspare/internal/embedded/imagestore/pullthrough"
	"hotspare.io/hotspare/internal/embedded/machine"
)

func TestOnlyNodesUseTheCredentialsOfTheCluster(t *testing.T) {
	answer := func(status int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
	}
	handler := selectHandler(answer(http.StatusOK), answer(http.StatusTeapot))
	worker := machine.Config{Containers: true, Role: machine.Worker, Index: machine.MaxIndex}
	for from, want := range map[string]int{
		"10.128.0.2:1000":                           http.StatusOK,
		worker.NodeAddress().String() + ":1000":     http.StatusOK,
		"[::ffff:10.128.0.2]:1000":                  http.StatusOK,
		worker.PodRange().Addr().String() + ":1000": http.StatusTeapot,
		"10.128.2.5:1000":                           http.StatusTeapot,
		"10.128.0.1:1000":                           http.StatusTeapot,
		"127.0.0.1:1000":                            http.StatusTeapot,
		"":                                          http.StatusTeapot,
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v2/", nil)
		r.RemoteAddr = from
		recorder := httptest.NewRecorder()
		if handler.ServeHTTP(recorder, r); recorder.Code != want {
			t.Errorf("%q: %d, want %d", from, recorder.Code, want)
		}
	}
}

func TestPullThroughFollowsTheSettings(t *testing.T) {
	dir, cache := t.TempDir(), filepath.Join(t.TempDir(), "cache")
	if s, err := newPullThrough(t.Context(), dir, cache); s != nil || err != nil {
		t.Errorf("without settings: %v, %v", s, err)
	}
	if err := pullthrough.WriteSettings(cache, pullthrough.Settings{}); err != nil {
		t.Fatal(err)
	}
	if s, err := newPullThrough(t.Context(), dir, cache); s != nil || err != nil {
		t.Errorf("turned off: %v, %v", s, err)
	}
	if err := pullthrough.WriteSettings(cache, pullthrough.Settings{Limit: 1}); err != nil {
		t.Fatal(err)
	}
	if s, err := newPullThrough(t.Context(), dir, cache); s == nil || err != nil {
		t.Errorf("turned on: %v, %v", s, err)
	}
	for _, path := range []string{machine.PullSecretPath(dir), machine.TrustBundlePath(dir)} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("damaged"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if s, err := newPullThrough(t.Context(), dir, cache); s == nil || err != nil {
		t.Errorf("with a damaged pull secret: %v, %v", s, err)
	}
}
