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
	handler := selectHandler("secret", answer(http.StatusOK), answer(http.StatusTeapot))
	worker := machine.Config{Containers: true, Role: machine.Worker, Index: machine.MaxIndex}
	for _, c := range []struct {
		from, token string
		want        int
	}{
		{"10.128.0.2:1000", "secret", http.StatusOK},
		{worker.NodeAddress().String() + ":1000", "secret", http.StatusOK},
		{"[::ffff:10.128.0.2]:1000", "secret", http.StatusOK},
		{"10.128.0.2:1000", "", http.StatusTeapot}, // a pod in the network of the node
		{"10.128.0.2:1000", "guess", http.StatusTeapot},
		{worker.PodRange().Addr().String() + ":1000", "secret", http.StatusTeapot},
		{"10.128.2.5:1000", "secret", http.StatusTeapot},
		{"10.128.0.1:1000", "secret", http.StatusTeapot},
		{"127.0.0.1:1000", "secret", http.StatusTeapot},
		{"", "secret", http.StatusTeapot},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v2/", nil)
		r.RemoteAddr = c.from
		if c.token != "" {
			r.Header.Set(machine.ImageTokenHeader, c.token)
		}
		recorder := httptest.NewRecorder()
		if handler.ServeHTTP(recorder, r); recorder.Code != c.want {
			t.Errorf("%q with the token %q: %d, want %d", c.from, c.token, recorder.Code, c.want)
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
