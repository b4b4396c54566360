package console

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/console/userclient"
)

// nasty is text that a user or an installer may put into an object.
const nasty = `<script src="https://evil.example/x.js"></script>"'><img src=x onerror=alert(1)>`

// forbidden is content that the content security policy blocks.
var forbidden = map[string]*regexp.Regexp{
	"an inline script":    regexp.MustCompile(`<script(?:[^>]*)>[^<]`),
	"an inline style":     regexp.MustCompile(`<style|\sstyle="`),
	"a handler":           regexp.MustCompile(`<[^>]*\son[a-z]+=`),
	"another host's file": regexp.MustCompile(`(?:src|href|action)="(?:https?:)?//`),
	"an evil tag":         regexp.MustCompile(`<img|<script src="https`),
}

func TestPagesShowWhatThereIsAndNothingElse(t *testing.T) {
	pool := poolOf("default", "dev")
	pool.Status.Plan = nasty
	pool.Status.Conditions = []hivev1.Condition{{Type: hivev1.PoolMissingDependencies, Status: corev1.ConditionTrue, Reason: "X", Message: nasty}}
	cd := clusterOf(pool, "dev-1", "mine")
	broken := clusterOf(pool, "dev-2", "")
	broken.Spec.Installed = false
	broken.Status.Conditions = []hivev1.Condition{{Type: hivev1.ClusterProvisionStopped, Status: corev1.ConditionTrue, Message: nasty}}
	pool.Status.StepsVersion, pool.Status.GatesVersion = "v1", "g1"
	at, end := metav1.NewTime(start), metav1.NewTime(start.Add(time.Hour))
	steps := clusterOf(pool, "dev-3", "")
	steps.Status.Bootstrap = &hivev1.BootstrapRecord{Version: "v1", Step: "base", StepStartedAt: &at, Deadline: &end}
	steps.Status.Conditions = []hivev1.Condition{{Type: hivev1.ClusterBootstrapped, Status: corev1.ConditionFalse, Reason: hivev1.ReasonStepInProgress, Message: nasty}}
	gates := clusterOf(pool, "dev-4", "")
	gates.Status.Bootstrap = &hivev1.BootstrapRecord{Version: "v1", FinishedAt: &at}
	gates.Status.Gates = &hivev1.GateRecord{Version: "g1", FailedSince: &at, Deadline: &end}
	gates.Status.Conditions = []hivev1.Condition{{Type: hivev1.ClusterGatesPassed, Status: corev1.ConditionFalse, Reason: hivev1.ReasonGateFailed, Message: nasty}}
	event := &corev1.Event{Reason: "Claimed", Message: nasty, InvolvedObject: corev1.ObjectReference{Kind: "ClusterClaim", Namespace: "default", Name: "mine"}}
	event.Namespace, event.Name = "default", "e"
	secret := &corev1.Secret{Data: map[string][]byte{"password": []byte("planted-in-a-secret")}}
	secret.Namespace, secret.Name = "dev-1", "dev-1-admin-password"
	h := newHub(t, pool, cd, broken, steps, gates, claimed(pool, "mine", "dev-1"), claimed(pool, "waits", ""), event, secret)
	b := newRig(t, h).in("admin-token-of-the-hub")

	for path, wants := range map[string][]string{
		"/": {
			"0<small> of 3 spare clusters", "Needs attention", "Missing dependencies", "evil.example", "dev-2", "claim</span> default/mine",
			"Bootstrap fails", "no claim gets it: &lt;script",
		},
		"/pools": {"default /", "dev", "1 claim waiting", "3 spare clusters desired"},
		"/pools/default/dev": {
			"dev-1", "claim mine", "Broken", "Claim a cluster", "Resize", "Release claim mine?", "Hibernate",
			`<span class="dim">It runs, and takes the steps of the bootstrap: &lt;script`, `<span class="problem">It runs, and no claim gets it: &lt;script`,
		},
		"/pools/default/dev?phase=broken":   {"dev-2", "Only clusters in phase broken"},
		"/pools/default/dev?phase=deleting": {"No cluster is in phase deleting"},
	} {
		a := b.get(path)
		if a.StatusCode != http.StatusOK {
			t.Errorf("%s: %s\n%s", path, a.Status, a.text)
		}
		for _, want := range wants {
			if !strings.Contains(a.text, want) {
				t.Errorf("%s does not tell %q", path, want)
			}
		}
		for what, bad := range forbidden {
			if found := bad.FindString(a.text); found != "" {
				t.Errorf("%s has %s: %s", path, what, found)
			}
		}
		if strings.Contains(a.text, "planted-in-a-secret") {
			t.Errorf("%s tells a secret", path)
		}
	}
	if strings.Contains(b.get("/pools/default/dev?phase=broken").text, "claim mine ·") {
		t.Error("a page of one part shows others")
	}
}

func TestPagesThatAreNotThereSaySo(t *testing.T) {
	b := newRig(t, newHub(t)).in("admin-token-of-the-hub")
	for path, want := range map[string]string{
		"/nowhere": "Page not found", "/pools/default/none": "Namespace default has no pool none", "/pools/": "Page not found",
	} {
		if a := b.get(path); a.StatusCode != http.StatusNotFound || !strings.Contains(a.text, want) {
			t.Errorf("%s: %s", path, a.Status)
		}
	}
	if a := b.get("/"); !strings.Contains(a.text, "hotspare pool create") {
		t.Error("the first page of an empty hub does not tell what to type")
	}
}

func TestWhoMaySeeLittleSeesThat(t *testing.T) {
	pool, theirs := poolOf("team", "dev"), poolOf("other", "theirs")
	pool.Status.Ready = 7
	h := newHub(t, pool, theirs, clusterOf(pool, "dev-1", "mine"), claimed(pool, "mine", "dev-1"), claimed(theirs, "secretive", ""))
	h.admit("alice", token, only("list clusterpools team", "watch clusterpools team", "list clusterclaims team", "watch clusterclaims team", "patch clusterdeployments dev-1"))
	h.admit("eve", "token-of-eve", only("list clusterpools other")) // without the permission to watch
	r := newRig(t, h)
	alice, eve := r.in(token), r.in("token-of-eve")

	if a := alice.get("/"); !strings.Contains(a.text, "You do not have permission to list ClusterPools in all namespaces") || !strings.Contains(a.text, `name="namespace"`) {
		t.Errorf("%s", a.text)
	}
	a := alice.get("/pools?namespace=team")
	if !strings.Contains(a.text, "/pools/team/dev?namespace=team") || strings.Contains(a.text, "theirs") {
		t.Errorf("%s", a.text)
	}
	if !strings.Contains(text(a.text), "7 ready to claim") {
		t.Error("it does not tell what the pool says of clusters that are not seen")
	}
	if !strings.Contains(a.text, "You do not have permission to list ClusterDeployments in all namespaces") {
		t.Error("it does not tell what is missing")
	}
	a = alice.get("/pools/team/dev")
	for word, want := range map[string]bool{"mine": true, "Hibernate": true, "Claim a cluster": false, "Resize": false, "Release": false} {
		if got := strings.Contains(a.text, word); got != want {
			t.Errorf("%q is there: %t", word, got)
		}
	}
	if a := alice.get("/pools/other/theirs"); a.StatusCode != http.StatusForbidden || strings.Contains(a.text, "secretive") {
		t.Errorf("%s\n%s", a.Status, a.text)
	}
	if a := eve.get("/pools/other/theirs"); a.StatusCode != http.StatusForbidden || !strings.Contains(a.text, "You do not have permission to list ClusterPools in namespace other") {
		t.Errorf("%s\n%s", a.Status, a.text)
	}
}

// The console cannot even request Secrets.
func TestTheConsoleKnowsNoSecrets(t *testing.T) {
	look := &PageReader{Viewer: &person{hub: newHub(t)}}
	if err := look.List(t.Context(), &corev1.SecretList{}); err == nil {
		t.Error("Secrets can be listed")
	}
	for _, kind := range []string{"Secret", "ConfigMap", "Pod"} {
		if m, err := userclient.NewRESTMapper().RESTMapping(corev1.SchemeGroupVersion.WithKind(kind).GroupKind(), "v1"); err == nil {
			t.Errorf("%s can be read: %v", kind, m.Resource)
		}
	}
}

func TestAPageChangesWhenMoreThanItsTimesDo(t *testing.T) {
	at := func(words, name string) []byte {
		return []byte(`<b>` + name + `</b><time datetime="x">` + words + `</time> ago`)
	}
	if pageDigest(at("5s", "a")) != pageDigest(at("7m", "a")) {
		t.Error("the words of a time make another page")
	}
	if pageDigest(at("5s", "a")) == pageDigest(at("5s", "b")) {
		t.Error("another name makes no other page")
	}
	if pageDigest([]byte(`<time datetime="x">1s</time>`)) == pageDigest([]byte(`<time datetime="y">1s</time>`)) {
		t.Error("another time makes no other page")
	}
}

func TestFilesAreServedAsWhatTheyAre(t *testing.T) {
	b := newRig(t, newHub(t)).browser()
	for name, kind := range staticTypes {
		a := b.get("/static/" + name)
		if a.StatusCode != http.StatusOK || a.Header.Get("Content-Type") != kind || len(a.text) < 100 {
			t.Errorf("%s: %s, %s, %d bytes", name, a.Status, a.Header.Get("Content-Type"), len(a.text))
		}
		again := b.request(http.MethodGet, "/static/"+name, nil)
		again.Header.Set("If-None-Match", a.Header.Get("ETag"))
		if a := b.do(again); a.StatusCode != http.StatusNotModified {
			t.Errorf("%s again: %s", name, a.Status)
		}
	}
	for _, name := range []string{"layout.html", "idiomorph.NOTICE", "", "x"} {
		if a := b.get("/static/" + name); a.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s", name, a.Status)
		}
	}
}
