package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// visitor is a browser at the console, without its script.
type visitor struct {
	*testing.T
	http *http.Client
	url  string
}

// console is where the hub's is, as hotspare up has written it down.
func (h *hub) console(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(h.dir, "console"))
	if err != nil {
		t.Fatal(err)
	}
	where, _, _ := strings.Cut(string(raw), "\n")
	return strings.TrimSuffix(where, "/")
}

func (h *hub) visitor(t *testing.T) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &visitor{t, &http.Client{Jar: jar}, h.console(t)}
}

func (v *visitor) answer(res *http.Response, err error) (int, string) {
	v.Helper()
	if err != nil {
		v.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		v.Fatal(err)
	}
	return res.StatusCode, string(raw)
}

func (v *visitor) get(path string) (int, string) {
	v.Helper()
	req, err := http.NewRequestWithContext(v.Context(), http.MethodGet, v.url+path, nil)
	if err != nil {
		v.Fatal(err)
	}
	return v.answer(v.http.Do(req))
}

// post sends a form of a page that the visitor has open.
func (v *visitor) post(path string, form url.Values) (int, string) {
	v.Helper()
	_, page := v.get("/")
	if found := formMark.FindStringSubmatch(page); found != nil {
		form.Set("csrf-token", found[1])
	}
	req, err := http.NewRequestWithContext(v.Context(), http.MethodPost, v.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		v.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return v.answer(v.http.Do(req))
}

var formMark = regexp.MustCompile(`name="csrf-token" value="([^"]+)"`)

func (v *visitor) signIn(token string) {
	v.Helper()
	if code, page := v.post("/signin", url.Values{"token": {token}}); code != http.StatusOK || strings.Contains(page, `name="token"`) {
		v.Fatalf("signing in: %d\n%s", code, page)
	}
}

// until waits until a page shows all of these.
func (v *visitor) until(path string, words ...string) {
	v.Helper()
	eventually(v.T, fmt.Sprintf("%s shows %q", path, words), func(context.Context) error {
		code, page := v.get(path)
		if code != http.StatusOK {
			return fmt.Errorf("it answers %d", code)
		}
		for _, w := range words {
			if !strings.Contains(page, w) {
				return fmt.Errorf("it does not show %q", w)
			}
		}
		return nil
	})
}

func TestOurConsoleShowsAndDoesWhatTheViewerMay(t *testing.T) {
	h := shared(t)
	ns := h.namespace(t)
	p := fakePool(ns, "seen", 2, 1)
	h.create(t, p)
	h.settled(t, p)
	page := "/pools/" + ns + "/seen"

	t.Log("hotspare console prints a link that lets its owner in, once")
	link := strings.TrimSpace(h.hotspare(t, "console"))
	path, found := strings.CutPrefix(link, h.console(t))
	if !found {
		t.Fatalf("it prints %q, and the console is at %s", link, h.console(t))
	}
	admin, stranger := h.visitor(t), h.visitor(t)
	if code, text := stranger.get(page); code != http.StatusOK || !strings.Contains(text, "Sign in") || strings.Contains(text, "seen<") {
		t.Errorf("a stranger is shown, with code %d:\n%s", code, text)
	}
	if code, text := admin.get(path); code != http.StatusOK || !strings.Contains(text, "hotspare-admin") {
		t.Fatalf("the link leads to %d\n%s", code, text)
	}
	if code, _ := stranger.get(path); code != http.StatusUnauthorized {
		t.Errorf("a second time it leads to %d", code)
	}
	says(t, h.hotspare(t, "status"), h.console(t))

	t.Log("what the admin does in the browser is done, and shown")
	admin.until(page, "Assignable", "Standby", "Claim a cluster")
	if _, text := admin.post(page+"/claim", url.Values{"claim": {"mine"}, "lifetime": {"8h"}}); !strings.Contains(text, "Claim mine created") {
		t.Fatalf("claiming: %s", text)
	}
	claim := claimOn(p, "mine")
	cd := h.served(t, claim)
	admin.until(page, "claim mine", "in 7h", cd.Name)
	if _, text := admin.post(page+"/hibernate", url.Values{"claim": {"mine"}}); !strings.Contains(text, "is hibernating") {
		t.Errorf("hibernating: %s", text)
	}
	admin.until(page, "/resume")
	if _, text := admin.post(page+"/resize", url.Values{"size": {"3"}, "size-was": {"2"}, "running": {"1"}, "running-was": {"1"}}); !strings.Contains(text, "keeps 3 spare clusters") {
		t.Errorf("resizing: %s", text)
	}

	t.Log("somebody with a token sees what that may see, and does what that may do")
	h.kubectl(t, "create", "serviceaccount", "viewer", "-n", ns)
	h.kubectl(t, "create", "role", "viewer", "--verb=get,list,watch", "--resource=clusterpools.hive.openshift.io,clusterclaims.hive.openshift.io", "-n", ns)
	h.kubectl(t, "create", "rolebinding", "viewer", "--role=viewer", "--serviceaccount="+ns+":viewer", "-n", ns)
	token := strings.TrimSpace(h.kubectl(t, "create", "token", "viewer", "-n", ns))
	viewer := h.visitor(t)
	viewer.signIn(token)
	viewer.until(page, "seen", "mine", "You do not have permission to list ClusterDeployments in all namespaces")
	if _, text := viewer.get(page); strings.Contains(text, "Claim a cluster") || strings.Contains(text, "Release claim") || strings.Contains(text, "tile-") {
		t.Errorf("it offers or shows what the viewer may not do or see:\n%s", text)
	}
	if _, text := viewer.get("/"); !strings.Contains(text, "You do not have permission to list ClusterPools in all namespaces") {
		t.Error("it does not tell what it leaves out")
	}
	if _, text := viewer.post(page+"/release", url.Values{"claim": {"mine"}}); !strings.Contains(text, "forbidden") {
		t.Errorf("releasing without the right: %s", text)
	}
	h.kubectl(t, "create", "rolebinding", "admin", "--clusterrole=hive-cluster-pool-admin", "--serviceaccount="+ns+":viewer", "-n", ns)
	viewer.until(page, "Release claim")
	if _, text := viewer.post(page+"/release", url.Values{"claim": {"mine"}}); !strings.Contains(text, "Claim mine released") {
		t.Errorf("releasing with the right: %s", text)
	}
	h.gone(t, claim)

	t.Log("who is no more is out")
	h.kubectl(t, "delete", "serviceaccount", "viewer", "-n", ns)
	idle(func() {
		eventually(t, "the viewer is asked who they are", func(context.Context) error {
			if _, text := viewer.get(page); !strings.Contains(text, `name="token"`) {
				return errors.New("they are still in")
			}
			return nil
		})
	})
	h.noneOfTheseIsLogged(t, token, strings.TrimPrefix(path, "/enter?code="))
}

func (h *hub) noneOfTheseIsLogged(t *testing.T, secrets ...string) {
	t.Helper()
	raw, err := os.ReadFile(h.log())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range secrets {
		if len(s) < 20 || strings.Contains(string(raw), s) {
			t.Errorf("the log has a secret of %d characters", len(s))
		}
	}
	says(t, string(raw), "signed in")
}

func TestOurConsoleTellsNoSecret(t *testing.T) {
	h := shared(t)
	ns := h.namespace(t)
	const planted = "cGxhbnRlZC1mb3ItdGhlLWNvbnNvbGU"
	pool := localPool(ns, "dev", 1, 1)
	h.create(t, secretOf(ns, "pull", hivev1.SecretKeyPullSecret, `{"auths":{"registry.example":{"auth":"`+planted+`"}}}`))
	pool.Spec.PullSecretRef = &corev1.LocalObjectReference{Name: "pull"}
	claim := claimOn(pool, "mine")
	h.create(t, pool, claim)
	cd := h.served(t, claim)
	secrets := h.credentials(t, cd)
	secrets["the pull secret"] = planted
	admin := h.visitor(t)
	link := strings.TrimSpace(h.hotspare(t, "console"))
	admin.get(strings.TrimPrefix(link, h.console(t)))
	for _, path := range []string{"/", "/pools", "/pools/" + ns + "/dev", "/inventory", "/fleet", "/activity"} {
		_, text := admin.get(path)
		for what, value := range secrets {
			if strings.Contains(text, value) {
				t.Errorf("%s tells %s", path, what)
			}
		}
	}
	h.delete(t, claim)
	h.delete(t, pool)
}

func TestOurConsoleIsForThisMachineOnly(t *testing.T) {
	h := &hub{dir: t.TempDir()}
	refused(t, h.run(t, "", "up", "--console-address", "0.0.0.0:9080"), "could be reached from elsewhere", "127.0.0.1:9080")
	refused(t, h.run(t, "", "console"), "no console is served", "hotspare up")
}
