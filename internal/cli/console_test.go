package cli

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"hotspare.io/hotspare/internal/console/localauth"
)

// plate is that of a console that answers so.
func plate(t *testing.T, dir string, code int) localauth.Endpoint {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }))
	t.Cleanup(server.Close)
	p := localauth.Endpoint{URL: server.URL + "/", Key: localauth.NewKey()}
	if err := p.WriteFile(localauth.EndpointPath(dir)); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestConsolePrintsALinkThatOpensIt(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, interceptor.Funcs{})
	p := plate(t, dir, http.StatusOK)
	if code := r.run("console", "--data-dir", dir); code != 0 {
		t.Fatalf("exit code %d: %s", code, r.stderr.String())
	}
	link, err := url.Parse(strings.TrimSpace(r.stdout.String()))
	if err != nil || !strings.HasPrefix(link.String(), p.URL) {
		t.Fatalf("it prints %q, %v", r.stdout.String(), err)
	}
	if err := localauth.NewCodeVerifier(p.Key).VerifyOnce(link.Query().Get("code"), now); err != nil {
		t.Errorf("the code: %v", err)
	}
	if r.stderr.String() != "" {
		t.Errorf("a pipe is told %q", r.stderr.String())
	}
}

func TestConsoleSaysWhyThereIsNone(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(t *testing.T, dir string)
		want    string
	}{
		"never served": {func(*testing.T, string) {}, "no console is served from"},
		"stopped": {func(t *testing.T, dir string) {
			t.Helper()
			if err := (localauth.Endpoint{URL: "http://127.0.0.1:1/"}).WriteFile(localauth.EndpointPath(dir)); err != nil {
				t.Fatal(err)
			}
		}, "no hotspare with a console is running on"},
		"killed": {func(t *testing.T, dir string) {
			t.Helper()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			p := localauth.Endpoint{URL: "http://" + l.Addr().String() + "/", Key: localauth.NewKey()}
			if err := p.WriteFile(localauth.EndpointPath(dir)); err != nil {
				t.Fatal(err)
			}
			l.Close()
		}, "no hotspare with a console is running on"},
		"something else is there": {func(t *testing.T, dir string) { t.Helper(); plate(t, dir, http.StatusNotFound) }, "no hotspare with a console is running on"},
		"spoilt":                  {func(t *testing.T, dir string) { t.Helper(); write(t, localauth.EndpointPath(dir), "x") }, "does not contain a URL"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c.prepare(t, dir)
			r := newRig(t, interceptor.Funcs{})
			if code := r.run("console", "--data-dir", dir); code != 1 || !strings.Contains(r.stderr.String(), c.want) {
				t.Errorf("exit code %d: %s", code, r.stderr.String())
			}
			if strings.Contains(r.stdout.String(), "code=") {
				t.Errorf("it prints %s", r.stdout.String())
			}
		})
	}
}

// Others see with what a program is started, and the code would let them in.
func TestConsoleHandsNoCodeToAProgram(t *testing.T) {
	dir, bin := t.TempDir(), t.TempDir()
	said := filepath.Join(bin, "said")
	write(t, filepath.Join(bin, "xdg-open"), "#!/bin/sh\necho \"$@\" > "+said+"\ncat \"$1\" >> "+said+"\n")
	if err := os.Chmod(filepath.Join(bin, "xdg-open"), 0o700); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, interceptor.Funcs{})
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	p := plate(t, dir, http.StatusOK)
	if code := r.run("console", "--open", "--data-dir", dir); code != 0 {
		t.Fatalf("exit code %d: %s", code, r.stderr.String())
	}
	raw, err := os.ReadFile(said)
	if err != nil {
		t.Fatal(err)
	}
	arguments, page, _ := strings.Cut(string(raw), "\n")
	if strings.Contains(arguments, "code=") || !strings.Contains(page, p.URL+"enter?code=") {
		t.Errorf("it was started with %s, and shows\n%s", arguments, page)
	}
	info, err := os.Stat(filepath.Join(dir, "console.html"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the page has mode %v, %v", info.Mode(), err)
	}
	write(t, filepath.Join(bin, "xdg-open"), "#!/bin/sh\nexit 3\n")
	if code := r.run("console", "--open", "--data-dir", dir); code != 1 || !strings.Contains(r.stderr.String(), "open the link above in a browser") {
		t.Errorf("without a browser: exit code %d: %s", code, r.stderr.String())
	}
}

func TestStatusTellsWhereTheConsoleIs(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, interceptor.Funcs{})
	t.Setenv("KUBECONFIG", "")
	raw, err := os.ReadFile(kubeconfigFile(t))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "kubeconfig"), string(raw))
	p := plate(t, dir, http.StatusOK)
	if code := r.run("status", "--data-dir", dir); code != 0 || !strings.Contains(r.stdout.String(), "Console    "+p.URL) {
		t.Errorf("exit code %d:\n%s%s", code, r.stdout.String(), r.stderr.String())
	}
	p.Key = nil
	if err := p.WriteFile(localauth.EndpointPath(dir)); err != nil {
		t.Fatal(err)
	}
	if code := r.run("status", "--data-dir", dir); code != 0 || strings.Contains(r.stdout.String(), "\nConsole") {
		t.Errorf("one that has stopped: exit code %d:\n%s", code, r.stdout.String())
	}
}
