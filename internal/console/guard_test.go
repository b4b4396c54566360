package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

func TestTheConsoleIsServedUnderItsOwnNamesOnly(t *testing.T) {
	r := newRig(t, newHub(t), func(o *Options) { o.Hosts = []string{"console.example.com"} })
	for host, ok := range map[string]bool{
		"127.0.0.1:8080": true, "localhost": true, "LOCALHOST:1": true, "[::1]:80": true, "127.8.8.8": true,
		"console.example.com": true, "Console.Example.com:443": true,
		"evil.example": false, "evil.example:8080": false, "localhost.evil.example": false, "10.0.0.1": false, "": false, "xconsole.example.com": false,
	} {
		req := r.browser().request(http.MethodGet, "/signin", nil)
		req.Host = host
		if host == "" {
			req.Host = "." // Go's client would fill in an empty one
		}
		want := http.StatusOK
		if !ok {
			want = http.StatusMisdirectedRequest
		}
		if a := r.browser().do(req); a.StatusCode != want {
			t.Errorf("%q: %s, want %d", host, a.Status, want)
		}
	}
}

func TestEveryAnswerTellsBrowsersToTrustNobodyElse(t *testing.T) {
	r := newRig(t, newHub(t))
	b := r.in("admin-token-of-the-hub")
	for _, path := range []string{"/", "/pools", "/nowhere", "/signin", "/static/style.css", "/static/none", "/healthz"} {
		a := b.get(path)
		for name, want := range map[string]string{
			"Content-Security-Policy": contentSecurityPolicy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY",
		} {
			if got := a.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q", path, name, got)
			}
		}
		if cache := a.Header.Get("Cache-Control"); cache != "no-store" && !strings.HasPrefix(path, "/static/") {
			t.Errorf("%s may be kept: %s", path, cache)
		}
	}
}

func TestWhatOthersSendIsNotDone(t *testing.T) {
	pool := poolOf("default", "dev")
	h := newHub(t, pool)
	h.admit("bob", "token-of-bob", nil)
	r := newRig(t, h)
	b, bob := r.in("admin-token-of-the-hub"), r.in("token-of-bob")
	mark := b.mark()
	for name, c := range map[string]struct {
		mark   string
		header http.Header
	}{
		"a form of no page":             {"", nil},
		"a form of somebody else's":     {bob.mark(), nil},
		"a form from another site":      {mark, http.Header{"Sec-Fetch-Site": {"cross-site"}}},
		"a form from a site nearby":     {mark, http.Header{"Sec-Fetch-Site": {"same-site"}}},
		"a form of an older browser":    {mark, http.Header{"Origin": {"https://evil.example"}}},
		"a form from a page of no site": {mark, http.Header{"Origin": {"null"}}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, path := range []string{"/pools/default/dev/claim", "/signout"} {
				req := b.request(http.MethodPost, path, url.Values{"claim": {"x"}, "csrf-token": {c.mark}})
				for k, v := range c.header {
					req.Header[k] = v
				}
				if a := b.do(req); a.StatusCode != http.StatusForbidden || !strings.Contains(a.text, "hotspare ignored it") {
					t.Errorf("%s: %s\n%s", path, a.Status, a.text)
				}
			}
			var claims hivev1.ClusterClaimList
			if err := h.store.List(t.Context(), &claims); err != nil || len(claims.Items) != 0 {
				t.Errorf("%d claims were made, %v", len(claims.Items), err)
			}
		})
	}
	if a := b.get("/pools/default/dev/claim?csrf-token=" + mark); a.StatusCode != http.StatusNotFound {
		t.Errorf("a link does something: %s", a.Status)
	}
}
