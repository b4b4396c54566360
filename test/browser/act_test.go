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

// checkNoSecretsLogged checks that the log of a hub contains none of the secrets.
func (h *hub) checkNoSecretsLogged(t *testing.T, secrets map[string]string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(h.dir, "hotspare.log"))
	if err != nil {
		t.Fatal(err)
	}
	for what, value := range secrets {
		if strings.Contains(string(raw), value) || strings.Contains(h.output.String(), value) {
			t.Errorf("the log tells %s", what)
		}
	}
}

// createFakePool creates a pool of fake clusters for one test and opens its page.
func createFakePool(p *tab, h *hub, name string) {
	p.Helper()
	h.hotspare(p, "pool", "create", name, "--size", "3", "--running", "1", "--fake")
	p.visit("/pools/default/" + name)
	p.waitUntil("its clusters are there", `document.querySelectorAll(".tile.standby").length === 2 && document.querySelectorAll(".tile.assignable").length === 1`)
}

// claimRow returns an expression for the table row of a claim.
func claimRow(name string) string { return `document.getElementById("claim-` + name + `")` }

// TestOneActsOnAPool performs every action on a pool and checks the result.
func TestOneActsOnAPool(t *testing.T) {
	h := sharedDemoHub(t)
	p := signedIn(t, h)
	createFakePool(p, h, "acts")
	actsOnAPool(t, h, p, "acts")
}

// Every action works without scripts, too.
func TestOneActsWithoutScripts(t *testing.T) {
	h := sharedDemoHub(t)
	p := open(t, h.console)
	p.withoutScript()
	p.enterByLink(h)
	h.hotspare(t, "pool", "create", "plain", "--size", "3", "--running", "1", "--fake")
	if _, err := h.run("", "kubectl", "wait", "clusterpool", "plain", "--for=jsonpath={.status.ready}=1", fmt.Sprintf("--timeout=%s", timeout)); err != nil {
		t.Fatal(err)
	}
	p.visit("/pools/default/plain")
	p.takeScreenshot("pool-without-scripts")
	actsOnAPool(t, h, p, "plain")
}

func actsOnAPool(t *testing.T, h *hub, p *tab, pool string) {
	t.Helper()
	mine := pool + "-mine"
	t.Log("a lifetime that is none is refused, with a remedy")
	p.click("button", "Claim a cluster")
	p.enter("#claim-name", mine)
	p.enter("#claim-life", "soon")
	p.takeScreenshot("claim-form")
	p.checkAccessibility("the form of a claim")
	p.submit("#claim button", "Claim")
	p.waitForText("Failed:", `lifetime "soon"`, "8h")
	p.takeScreenshot("refused")

	t.Log("a claim is made and served")
	p.click("button", "Claim a cluster")
	p.enter("#claim-name", mine)
	p.enter("#claim-life", "90m")
	p.submit("#claim button", "Claim")
	p.waitForText("Claim " + mine + " created")
	p.reloadUntil("the claim has its cluster", claimRow(mine)+`?.innerText.includes("Running")`)
	p.waitForText("in 8")
	if got := h.hotspare(t, "kubectl", "get", "clusterclaim", mine, "-o", "jsonpath={.spec.clusterPoolName} {.spec.lifetime}"); got != pool+" 90m" {
		t.Errorf("the claim is on %s", got)
	}

	t.Log("a name that is taken is refused")
	p.click("button", "Claim a cluster")
	p.enter("#claim-name", mine)
	p.submit("#claim button", "Claim")
	p.waitForText("Failed:", "already has", "another name")

	t.Log("its cluster goes to sleep, and wakes up")
	p.submit("#claim-"+mine+" button", "Hibernate")
	p.waitForText("is hibernating")
	p.reloadUntil("it sleeps", claimRow(mine)+`?.innerText.includes("Hibernating")`)
	p.submit("#claim-"+mine+" button", "Resume")
	p.waitForText("is resuming")
	p.reloadUntil("it runs", claimRow(mine)+`?.innerText.includes("Running")`)

	t.Log("the pool is resized")
	p.click("button", "Resize")
	p.enter("#resize input[name=size]", "5")
	p.enter("#resize input[name=running]", "2")
	p.takeScreenshot("resize-form")
	p.checkAccessibility("the form for a size")
	p.submit("#resize button", "Resize")
	p.waitForText("keeps 5 spare clusters, 2 of them running")
	p.reloadUntil("it has them", `document.querySelectorAll(".tile.standby").length === 3 && document.querySelectorAll(".tile.assignable").length === 2`)

	t.Log("a release asks first, and can be called off")
	p.click("#claim-"+mine+" button", "Release")
	p.waitForText("Release claim "+mine+"?", "This destroys cluster")
	p.takeScreenshot("release-asks")
	p.checkAccessibility("the question before a release")
	p.click("#release-"+mine+" button", "Keep claim")
	p.waitUntil("the question goes", `!document.querySelector("#release-`+mine+`")?.checkVisibility()`)
	p.click("#claim-"+mine+" button", "Release")
	p.submit("#release-"+mine+" button", "Release claim")
	p.waitForText("Claim " + mine + " released")
	p.reloadUntil("it is gone", "!"+claimRow(mine))
	if out, err := h.run("", "kubectl", "get", "clusterclaim", mine); err == nil {
		t.Errorf("the claim is there:\n%s", out)
	}
}

// reloadUntil waits until an expression is true. Without scripts it reloads the page.
func (t *tab) reloadUntil(what, expression string) {
	t.Helper()
	if evaluate[bool](t, "!!window.Idiomorph") {
		t.waitUntil(what, expression)
		return
	}
	for !evaluate[bool](t, "!!("+expression+")") {
		if t.ctx.Err() != nil {
			t.Fatal(t.ctx.Err())
		}
		t.visit(t.path())
	}
}

// A page of another site cannot act for a user who is signed in.
func TestAnotherSiteCannotAct(t *testing.T) {
	h := sharedDemoHub(t)
	p := signedIn(t, h)
	createFakePool(p, h, "coveted")
	h.hotspare(t, "claim", "create", "coveted", "--name", "precious", "--wait")
	mark := evaluate[string](p, `document.querySelector("main input[name=csrf-token]").value`)

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
		p.runActions("going to another site", navigate(evil.URL))
		p.submit("button", button)
		p.waitForText("Request from another site", "hotspare ignored it")
	}
	p.takeScreenshot("another-site")
	p.visit("/pools/default/coveted")
	p.waitForText("precious", "Sign out")

	t.Log("nor can a form of a session that has ended, or one without a mark")
	p.post("/pools/default/coveted/release", map[string]string{"claim": "precious", "csrf-token": "made-up"})
	p.waitForText("This form is out of date")
	p.post("/pools/default/coveted/release", map[string]string{"claim": "precious"})
	p.waitForText("This form is out of date")
	if h.hotspare(t, "kubectl", "get", "clusterclaim", "precious", "-o", "name") == "" {
		t.Error("the claim is gone")
	}
}
