package kubectl

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRunUsesTheHubUnlessToldOtherwise(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	hub, other := named(t, "hub"), named(t, "other")
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"the hub by default":         {[]string{"get", "--raw", "/name"}, "hub"},
		"a kubeconfig of the user's": {[]string{"--kubeconfig", other, "get", "--raw", "/name"}, "other"},
		"flags go through untouched": {[]string{"version", "--client", "-o", "json"}, `"clientVersion"`},
		"its own help":               {[]string{"help", "get"}, "Display one or many resources"},
	} {
		t.Setenv("KUBECONFIG", "") // restored afterwards, though Run sets it
		var out bytes.Buffer
		err := Run(t.Context(), Streams{In: &bytes.Buffer{}, Out: &out, ErrOut: &out}, hub, c.args)
		if err != nil || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: %q, %v", name, out.String(), err)
		}
	}
}

// named is a kubeconfig of an API that says its name.
func named(t *testing.T, name string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, name)
	}))
	t.Cleanup(server.Close)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	content := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c",
"clusters":[{"name":"c","cluster":{"server":%q}}],"contexts":[{"name":"c","context":{"cluster":"c"}}]}`, server.URL)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestNeedsNoHub(t *testing.T) {
	for line, want := range map[string]bool{
		"":                             true,
		"help get":                     true,
		"get pods --help":              true,
		"version --client":             true,
		"get pods --kubeconfig=/x":     true,
		"get pods -s http://127.0.0.1": true,
		"get pods":                     false,
		"exec x -- ls --help":          false,
	} {
		if got := NeedsNoHub(strings.Fields(line)); got != want {
			t.Errorf("%q: %v, want %v", line, got, want)
		}
	}
}
