//go:build browser

package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tellsNone checks that the log of a hub contains none of the secrets.
func (h *hub) tellsNone(t *testing.T, secrets map[string]string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(h.dir, "hotspare.log"))
	if err != nil {
		t.Fatal(err)
	}
	for what, value := range secrets {
		if strings.Contains(string(raw), value) || strings.Contains(h.said.String(), value) {
			t.Errorf("the log tells %s", what)
		}
	}
}

// fakes creates a pool of fake clusters for one test and opens its page.
func fakes(p *tab, h *hub, name string) {
	p.Helper()
	h.hotspare(p, "pool", "create", name, "--size", "3", "--running", "1", "--fake")
	p.visit("/pools/default/" + name)
	p.until("its clusters are there", `document.querySelectorAll(".tile.standby").length === 2 && document.querySelectorAll(".tile.assignable").length === 1`)
}

// claimed returns an expression for the table row of a claim.
func claimed(name string) string { return `document.getElementById("claim-` + name + `")` }

// TestOneActsOnAPool performs every action on a pool and checks the result.
func TestOneActsOnAPool(t *testing.T) {
	h := demo(t)
	p := signedIn(t, h)
	fakes(p, h, "acts")
	actsOnAPool(t, h, p, "acts")
}

// Every action works without scripts, too.
func TestOneActsWithoutScripts(t *testing.T) {
	h := demo(t)
	p := open(t, h.console)
	p.withoutScript()
	p.enterByLink(h)
	h.hotspare(t, "pool", "create", "plain", "--size", "3", "--running", "1", "--fake")
	if _, err := h.run("", "kubectl", "wait", "clusterpool", "plain", "--for=jsonpath={.status.ready}=1", fmt.Sprintf("--timeout=%s", patience)); err != nil {
		t.Fatal(err)
	}
	p.visit("/pools/default/plain")
	p.shoot("pool-without-scripts")
	actsOnAPool(t, h, p, "plain")
}

func actsOnAPool(t *testing.T, h *hub, p *tab, pool string) {
	t.Helper()
	mine := pool + "-mine"
	t.Log("a lifetime that is none is refused, with a remedy")
	p.click("button", "Claim a cluster")
	p.enter("#claim-name", mine)
	p.enter("#claim-life", "soon")
	p.shoot("claim-form")
	p.accessible("the form of a claim")
	p.submit("#claim button", "Claim")
	p.shows("Failed:", `lifetime "soon"`, "8h")
	p.shoot("refused")

	t.Log("a claim is made and served")
	p.click("button", "Claim a cluster")
	p.enter("#claim-name", mine)
	p.enter("#claim-life", "90m")
	p.submit("#claim button", "Claim")
	p.shows("Claim " + mine + " created")
	p.reloadUntil("the claim has its cluster", claimed(mine)+`?.innerText.includes("Running")`)
	p.shows("in 89m")
	if got := h.hotspare(t, "kubectl", "get", "clusterclaim", mine, "-o", "jsonpath={.spec.clusterPoolName} {.spec.lifetime}"); got != pool+" 90m" {
		t.Errorf("the claim is on %s", got)
	}

	t.Log("a name that is taken is refused")
	p.click("button", "Claim a cluster")
	p.enter("#claim-name", mine)
	p.submit("#claim button", "Claim")
	p.shows("Failed:", "already has", "another name")

	t.Log("its cluster goes to sleep, and wakes up")
	p.submit("#claim-"+mine+" button", "Hibernate")
	p.shows("is hibernating")
	p.reloadUntil("it sleeps", claimed(mine)+`?.innerText.includes("Hibernating")`)
	p.submit("#claim-"+mine+" button", "Resume")
	p.shows("is resuming")
	p.reloadUntil("it runs", claimed(mine)+`?.innerText.includes("Running")`)

	t.Log("the pool is resized")
	p.click("button", "Resize")
	p.enter("#resize input[name=size]", "5")
	p.enter("#resize input[name=running]", "2")
	p.shoot("resize-form")
	p.accessible("the form for a size")
	p.submit("#resize button", "Resize")
	p.shows("keeps 5 spare clusters, 2 of them running")
	p.reloadUntil("it has them", `document.querySelectorAll(".tile.standby").length === 3 && document.querySelectorAll(".tile.assignable").length === 2`)

	t.Log("a release asks first, and can be called off")
	p.click("#claim-"+mine+" button", "Release")
	p.shows("Release claim "+mine+"?", "This destroys cluster")
	p.shoot("release-asks")
	p.accessible("the question before a release")
	p.click("#release-"+mine+" button", "Keep claim")
	p.until("the question goes", `!document.querySelector("#release-`+mine+`")?.checkVisibility()`)
	p.click("#claim-"+mine+" button", "Release")
	p.submit("#release-"+mine+" button", "Release claim")
	p.shows("Claim " + mine + " released")
	p.reloadUntil("it is gone", "!"+claimed(mine))
	if out, err := h.run("", "kubectl", "get", "clusterclaim", mine); err == nil {
		t.Errorf("the claim is there:\n%s", out)
	}
}

// reloadUntil waits until an expression is true. Without scripts it reloads the page.
func (p *tab) reloadUntil(what, expression string) {
	p.Helper()
	if ask[bool](p, "!!window.Idiomorph") {
		p.until(what, expression)
		return
	}
	for !ask[bool](p, "!!("+expression+")") {
		if p.ctx.Err() != nil {
			p.Fatal(p.ctx.Err())
		}
		p.visit(p.path())
	}
}

// A page of another site cannot act for a user who is signed in.
func TestAnotherSiteCannotAct(t *testing.T) {
	h := demo(t)
	p := signedIn(t, h)
	fakes(p, h, "coveted")
	h.hotspare(t, "claim", "create", "coveted", "--name", "precious", "--wait")
	mark := ask[string](p, `document.querySelector("main input[name=csrf-token]").value`)

	// Another port of the same computer: browsers send it the same cookies.
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, aPage, fmt.Sprintf(`<form method="post" action="%s/pools/default/coveted/release">
			<input type="hidden" name="csrf-token" value="%s"><input type="hidden" name="claim" value="precious"><button>A gift</button></form>
			<form method="post" action="%s/signout"><input type="hidden" name="csrf-token" value="%s"><button>Another</button></form>`, h.console, mark, h.console, mark))
	}))
	defer evil.Close()
	p.allow(host(evil.URL))
	p.expect("403")
	for _, button := range []string{"A gift", "Another"} {
		p.do("going to another site", navigate(evil.URL))
		p.submit("button", button)
		p.shows("Request from another site", "hotspare ignored it")
	}
	p.shoot("another-site")
	p.visit("/pools/default/coveted")
	p.shows("precious", "Sign out")

	t.Log("nor can a form of a session that has ended, or one without a mark")
	p.post("/pools/default/coveted/release", map[string]string{"claim": "precious", "csrf-token": "made-up"})
	p.shows("This form is out of date")
	p.post("/pools/default/coveted/release", map[string]string{"claim": "precious"})
	p.shows("This form is out of date")
	if h.hotspare(t, "kubectl", "get", "clusterclaim", "precious", "-o", "name") == "" {
		t.Error("the claim is gone")
	}
}
