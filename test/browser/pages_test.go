//go:build browser

package browser

import (
	"strings"
	"testing"
)

func TestThePages(t *testing.T) {
	h := sharedDemoHub(t)
	p := signedIn(t, h)
	for _, c := range []struct {
		name, path string
		shows      []string
	}{
		{"overview", "/", []string{"Overview", "scarce", "forgetful", "never-made"}},
		{"pools", "/pools", []string{"Pools", "dev", "theirs", "prepared"}},
		{"pool", "/pools/default/dev", []string{"dev", "pull-request-4711", "nightly", "Claim a cluster"}},
		{"pool-waiting", "/pools/default/scarce", []string{"scarce", "first", "second", "third", "2nd"}},
		{"inventory", "/inventory", []string{"Inventory", "one", "three", "BrokenByConfiguration"}},
		{"fleet", "/fleet", []string{"Fleet", "laptop", "standard"}},
		{"region", "/fleet/fleet/laptop", []string{"laptop", "standard", "k5"}},
		{"activity", "/activity", []string{"Activity", "dev"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p.TB = t
			p.checkPage(c.name, c.path, c.shows...)
		})
	}
	p.TB = t
}

func TestWhatIsNotThereIsSaid(t *testing.T) {
	p := signedIn(t, sharedDemoHub(t))
	p.expect("404")
	p.checkPage("problem", "/pools/default/never", "Pool not found", "default")
	for _, path := range []string{"/nowhere", "/fleet/fleet/never", "/pools/default", "/pools/default/dev/never"} {
		p.visit(path)
		p.waitForText("not found")
	}
}

// The user can choose light or dark independently of the system, and the choice persists.
func TestOneChoosesLightOrDark(t *testing.T) {
	p := signedIn(t, sharedDemoHub(t))
	ground := func() string { return evaluate[string](p, "getComputedStyle(document.body).backgroundColor") }
	light := ground()
	p.submit(".theme button", "")
	p.waitUntil("it is dark", "getComputedStyle(document.body).backgroundColor !== "+quote(light))
	dim := ground()
	p.visit("/pools")
	if ground() != dim {
		t.Error("the next page is not dark")
	}
	p.setWindow(dark)
	p.submit(".theme button", "")
	p.waitUntil("it is light though the system is dark", "getComputedStyle(document.body).backgroundColor === "+quote(light))
	p.checkAccessibility("light, where the system is dark")
	if got := p.path(); got != "/pools" {
		t.Errorf("choosing has led to %s", got)
	}
}

// No page shows the content of Secrets, and no log contains credentials.
func TestNoPageShowsSecrets(t *testing.T) {
	h := sharedDemoHub(t)
	p := signedIn(t, h)
	token := viewer(t, h)
	other := open(t, h.console)
	other.enterByToken(token)
	secrets := map[string]string{
		"the pull secret": "cGxhbnRlZC1wdWxsLXNlY3JldA",
		"a token":         token,
	}
	for what, path := range map[string]string{
		"a cluster's password": "{.data.password}", "a cluster's kubeconfig": "{.data.kubeconfig}",
	} {
		for _, found := range strings.Fields(h.hotspare(t, "kubectl", "get", "secrets", "-A", "-o", "jsonpath={.items[*]."+path[2:])) {
			secrets[what+" "+found[:6]] = found
		}
	}
	if len(secrets) < 8 {
		t.Fatalf("there are %d secrets to look for, want those of some clusters", len(secrets))
	}
	for _, c := range append(p.cookies(), other.cookies()...) {
		secrets["cookie "+c.Name+" "+c.Value[:3]] = c.Value
	}
	for _, path := range []string{"/", "/pools", "/pools/default/dev", "/pools/default/prepared", "/pools/fleet/spares", "/inventory", "/fleet", "/fleet/fleet/laptop", "/activity"} {
		p.visit(path)
		html := p.html()
		for what, value := range secrets {
			if strings.Contains(html, value) {
				t.Errorf("%s shows %s", path, what)
			}
		}
	}
	h.checkNoSecretsLogged(t, secrets)
}
