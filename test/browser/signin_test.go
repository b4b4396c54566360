//go:build browser

package browser

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// signedIn opens a tab for the administrator.
func signedIn(tb testing.TB, h *hub) *tab {
	tb.Helper()
	p := open(tb, h.console)
	p.enterByLink(h)
	return p
}

// enterByLink follows a link of hotspare console.
func (t *tab) enterByLink(h *hub) {
	t.Helper()
	at, err := h.link()
	if err != nil {
		t.Fatal(err)
	}
	t.runActions("following the link", chromedp.Navigate(at))
	t.waitUntil("it leads to the overview", `location.pathname === "/" && document.querySelector("h1")?.innerText === "Overview"`)
}

// enterByToken signs in with a token.
func (t *tab) enterByToken(token string) {
	t.Helper()
	t.visit("/signin")
	t.enter("input[name=token]", token)
	t.submit("form button", "Sign in")
}

// viewer returns a token that may read namespace team and nothing else.
func viewer(tb testing.TB, h *hub) string {
	tb.Helper()
	return h.hotspare(tb, "kubectl", "create", "token", "viewer", "-n", "team")
}

func TestALinkLetsOneInOnce(t *testing.T) {
	h := sharedDemoHub(t)
	at, err := h.link()
	if err != nil {
		t.Fatal(err)
	}
	p := open(t, h.console)
	p.runActions("following the link", chromedp.Navigate(at))
	p.waitForText("Overview", "Sign out")
	if got := p.path(); got != "/" {
		t.Errorf("the page is at %s: a code should not stay in the address", got)
	}
	for _, c := range p.cookies() {
		if !strings.Contains(c.Name, "session") {
			continue
		}
		if !c.HTTPOnly || c.SameSite != network.CookieSameSiteStrict || c.Path != "/" || strings.Contains(at, c.Value) {
			t.Errorf("the session's cookie is %+v", c)
		}
	}
	if n := len(p.cookies()); n != 1 {
		t.Errorf("there are %d cookies, want that of the session", n)
	}

	second := open(t, h.console)
	second.expect("401")
	second.runActions("following the link again", chromedp.Navigate(at))
	second.waitForText("has already been used", "hotspare console")
	if second.isVisible("nav a", "Pools") || len(second.cookies()) > 0 {
		t.Errorf("a link has let a second one in:\n%s", second.text())
	}
	second.runActions("following a forged link", chromedp.Navigate(at[:len(at)-3]+"AAA"))
	second.waitForText("is not valid")
	second.checkAccessibility("a link that is used")

	t.Log("who signs out is out, in all tabs, and also by going back")
	p.submit("button", "Sign out")
	p.waitUntil("the door is shown", `location.pathname === "/signin"`)
	p.visit("/pools")
	p.waitUntil("the door is shown", `location.pathname === "/signin"`)
	if p.isVisible("nav a", "Pools") {
		t.Error("pages are shown to who has signed out")
	}
	p.runActions("going back", chromedp.Evaluate("history.back()", nil))
	p.waitUntil("a page is there", `document.readyState === "complete" && document.body.innerText`)
	if strings.Contains(p.text(), "scarce") {
		t.Errorf("going back shows what was there:\n%s", p.text())
	}
}

func (t *tab) cookies() (out []*network.Cookie) {
	t.Helper()
	t.runActions("reading cookies", chromedp.ActionFunc(func(ctx context.Context) (err error) {
		out, err = network.GetCookies().Do(ctx)
		return err
	}))
	return out
}

func TestATokenLetsOneIn(t *testing.T) {
	h := sharedDemoHub(t)
	p := open(t, h.console)
	p.visit("/inventory")
	p.waitUntil("the door is shown first", `location.pathname === "/signin"`)
	p.checkPage("signin", p.path(), "Sign in")

	p.expect("401")
	for _, bad := range []string{"no-token-of-anybody", "eyJhbGciOiJub25lIn0.e30."} {
		p.enter("input[name=token]", bad)
		p.submit("form button", "Sign in")
		p.waitForText("The hub does not accept this token")
		if strings.Contains(p.html(), bad) || strings.Contains(p.path(), bad) {
			t.Error("the page repeats the token")
		}
	}
	p.takeScreenshot("signin-refused")
	p.checkAccessibility("a refused token")

	p.enter("input[name=token]", viewer(t, h))
	p.submit("form button", "Sign in")
	p.waitUntil("it leads to where one wanted to go", `location.pathname === "/inventory"`)
}

// Pages hide what the user may not see, and do not offer what they may not do.
func TestWhoMaySeeOneNamespaceSeesNoMore(t *testing.T) {
	h := sharedDemoHub(t)
	p := open(t, h.console)
	p.enterByToken(viewer(t, h))
	p.waitForText("You do not have permission to list ClusterPools in all namespaces")
	p.takeScreenshot("viewer-everywhere")
	p.checkAccessibility("the overview of who may see little")
	p.enter("input[name=namespace]", "team")
	p.submit("button", "Show")
	p.waitUntil("it looks at the namespace", `location.search === "?namespace=team"`)
	p.waitForText("theirs", "You do not have permission to list ClusterDeployments")
	p.takeScreenshot("viewer-team")
	p.checkAccessibility("the overview of a namespace")

	t.Log("links stay in the namespace")
	p.click("nav a", "Pools")
	p.waitUntil("it looks at the pools of the namespace", `location.pathname === "/pools" && location.search === "?namespace=team"`)
	p.click("a", "theirs")
	p.waitUntil("it looks at the pool", `location.pathname === "/pools/team/theirs"`)
	p.waitForText("ours", "theirs")
	p.takeScreenshot("viewer-pool")
	for _, verb := range []string{"Claim", "Release", "Resize", "Hibernate", "Resume"} {
		if p.isVisible("main button", verb) {
			t.Errorf("%s is offered to who may only look", verb)
		}
	}

	t.Log("what is elsewhere is refused, and nothing is told of it")
	p.expect("403", "404")
	for _, path := range []string{
		"/", "/pools", "/pools/default/dev", "/pools/default/never", "/inventory", "/fleet", "/fleet/fleet/laptop", "/activity",
		"/?namespace=default", "/pools?namespace=default", "/inventory?namespace=default", "/fleet?namespace=fleet", "/activity?namespace=default",
	} {
		p.visit(path)
		p.waitForText("You do not have")
		for _, secret := range []string{"scarce", "forgetful", "pull-request-4711", "laptop-", "ours"} {
			if strings.Contains(p.html(), secret) {
				t.Errorf("%s tells of %s:\n%s", path, secret, p.text())
			}
		}
	}

	t.Log("a form that is made by hand is refused by the hub")
	mark := evaluate[string](p, `document.querySelector("input[name=csrf-token]").value`)
	p.post("/pools/team/theirs/release?namespace=team", map[string]string{"csrf-token": mark, "claim": "ours"})
	p.waitForText("Failed:", "cannot delete")
	p.post("/pools/team/theirs/resize?namespace=team", map[string]string{"csrf-token": mark, "size": "9", "size-was": "2", "running": "1", "running-was": "1"})
	p.waitForText("Failed:", "cannot patch")
	if got := h.hotspare(t, "kubectl", "get", "clusterclaims,clusterpools", "-n", "team", "-o", "jsonpath={.items[*].metadata.name} {.items[*].spec.size}"); got != "ours theirs 2" {
		t.Errorf("there is now %s", got)
	}
}

// post sends a form that is not on the page.
func (t *tab) post(path string, fields map[string]string) {
	t.Helper()
	var names []string
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	script := `(() => { const f = document.createElement("form"); f.method = "post"; f.action = ` + quote(path) + `;`
	for _, name := range names {
		script += `f.append(Object.assign(document.createElement("input"), {name: ` + quote(name) + `, value: ` + quote(fields[name]) + `}));`
	}
	t.waitForNewPage(func() {
		t.runActions("posting to "+path, chromedp.Evaluate(script+` document.body.append(f); f.submit() })()`, nil))
	})
}
