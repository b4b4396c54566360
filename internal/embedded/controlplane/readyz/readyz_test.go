package readyz

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"
)

const unready = "[+]ping ok\n[-]etcd failed: reason withheld\n[-]poststarthook/rbac/bootstrap-roles failed: not finished\n"

// server answers /readyz with unready the given number of times, and then with ok. Each answer
// except the last calls asked.
func server(t *testing.T, times int, asked func()) *rest.Config {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if times == 0 {
			return
		}
		times--
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = w.Write([]byte(unready)) // the client reports an incomplete response
		asked()
	}))
	t.Cleanup(s.Close)
	return &rest.Config{Host: s.URL}
}

func TestAwait(t *testing.T) {
	const missing = "not ready: etcd, poststarthook/rbac/bootstrap-roles"
	var p Probe
	config := server(t, 1, func() {})
	if err := p.WaitUntilReady(t.Context(), config, nil); err != nil || p.LastAnswer() != "ready" {
		t.Errorf("it is ready in the end: %v, %s", err, p.LastAnswer())
	}

	ctx, cancel := context.WithCancel(t.Context())
	config = server(t, 1000, cancel)
	if err := p.WaitUntilReady(ctx, config, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with its context: %v", err)
	}

	gone := make(chan struct{})
	config = server(t, 1, func() { close(gone) })
	if err := p.WaitUntilReady(t.Context(), config, gone); !errors.Is(err, ErrGone) || p.LastAnswer() != missing {
		t.Errorf("it does not wait for the dead: %v, %s", err, p.LastAnswer())
	}
}

func TestSummary(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		err  error
		want string
	}{
		"checks that failed are named":           {unready, errors.New("500"), "not ready: etcd, poststarthook/rbac/bootstrap-roles"},
		"without them it is the request's error": {"", errors.New("connection refused"), "connection refused"},
		"a server that is ready says so":         {"ok", nil, "ready"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := summarizeChecks([]byte(c.body), c.err); got != c.want {
				t.Errorf("got %q", got)
			}
		})
	}
}
