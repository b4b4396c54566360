package e2e

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// system is where config installs hotspare, account who it is there.
const (
	system  = "hotspare-system"
	account = "hotspare-manager"
)

// manifests are what config installs.
var manifests = filepath.Join("..", "..", "config")

func TestManagersServeAHubThatTheyDidNotStart(t *testing.T) {
	h := own(t, "--hub-only")
	h.install(t)
	h.kubectl(t, "delete", "crd", "machinepools.hive.openshift.io")
	access := h.accessOf(t, system, account)

	t.Log("without a kind a manager is not ready, and names it; with the kind it goes on")
	one := h.replica(t, access)
	one.answers(t, one.probes(t)+"/readyz", "", http.StatusServiceUnavailable, "machinepools.hive.openshift.io (v1)")
	one.answers(t, one.probes(t)+"/healthz", "", http.StatusOK, "ok")
	h.install(t)
	two := h.replica(t, access)
	for _, r := range []*replica{one, two} {
		r.answers(t, r.probes(t)+"/readyz", "", http.StatusOK, "ok")
	}
	leader, other := leading(t, one, two)

	t.Log("claims are served with the rights of config/ and no others")
	ns := h.namespace(t)
	p := fakePool(ns, "spares", 3, 1)
	h.create(t, p)
	h.settled(t, p)
	first := claimOn(p, "first")
	first.Spec.Subjects = []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "alice"}}
	h.create(t, first)
	h.served(t, first)
	person{h, "alice"}.may(t, "get", "clusterdeployments", "-n", first.Spec.Namespace)

	h.metricsAreGuarded(t, leader, other, p.Name)
	h.consolesAreForTheirViewers(t, leader, other, p)

	t.Log("the leader is killed: the other one takes over when the Lease has run out")
	before := h.holder(t)
	leader.kill(t)
	began := time.Now()
	second := claimOn(p, "second")
	h.create(t, second)
	h.served(t, second)
	t.Logf("a claim was served %.1fs after the leader was killed", time.Since(began).Seconds())
	lease := h.lease(t).Spec
	if now := ptr.Deref(lease.HolderIdentity, ""); now == before || now == "" || ptr.Deref(lease.LeaseDurationSeconds, 0) != leaseSeconds {
		t.Errorf("the Lease was held by %q, and is by %q for %d s", before, now, ptr.Deref(lease.LeaseDurationSeconds, 0))
	}
	t.Logf("another one took the Lease after %s", lease.AcquireTime.Sub(began))

	t.Log("the leader is told to stop: it lets go of the Lease")
	third := h.replica(t, access)
	third.answers(t, third.probes(t)+"/readyz", "", http.StatusOK, "ok")
	held := h.holder(t)
	other.stop(t)
	if now := h.holder(t); now == held || held == "" {
		t.Errorf("the Lease was held by %q, and is by %q", held, now)
	}
	h.delete(t, p)
	h.delete(t, first)
	h.delete(t, second)
	h.gone(t, p)
	for _, r := range []*replica{one, two, third} {
		r.mayAll(t)
	}
}

// leaseSeconds is how long a silent leader keeps the Lease.
const leaseSeconds = 15

// install applies config as people do.
func (h *hub) install(t *testing.T) {
	t.Helper()
	h.kubectl(t, "apply", "--server-side", "--force-conflicts", "-k", manifests)
	eventually(t, "the kinds are served", func(context.Context) error {
		if r := h.run(t, "", "kubectl", "get", "machinepools,clusterpools", "-A"); r.code != 0 {
			return errors.New(r.all())
		}
		return nil
	})
}

// metricsAreGuarded asks for metrics as nobody, as one without the right, and as one
// who has it. Only the leader tells of pools.
func (h *hub) metricsAreGuarded(t *testing.T, leader, other *replica, pool string) {
	t.Helper()
	url := leader.metrics(t) + "/metrics"
	leader.answers(t, url, "", http.StatusUnauthorized, "Unauthorized")
	leader.answers(t, url, "made-up", http.StatusUnauthorized, "Unauthorized")
	leader.answers(t, url, h.token(t, system, account), http.StatusForbidden, "Forbidden")
	scraper := h.scraper(t, system)
	series := fmt.Sprintf("hotspare_pool_size{clusterpool_name=%q", pool)
	leader.answers(t, url, scraper, http.StatusOK, series)
	leader.answers(t, url, scraper, http.StatusOK, "\nhotspare_leader 1\n")
	other.answers(t, other.metrics(t)+"/metrics", scraper, http.StatusOK, "\nhotspare_leader 0\n")
	if _, text := other.ask(t, other.metrics(t)+"/metrics", scraper); strings.Contains(text, "hotspare_pool_size") {
		t.Error("a replica that does not lead tells of pools, so that sums count them twice")
	}
}

// consolesAreForTheirViewers signs in at a replica that leads and at one that does not,
// as somebody who may see the pool. What the replica itself may do is of no use there.
func (h *hub) consolesAreForTheirViewers(t *testing.T, leader, other *replica, p *hivev1.ClusterPool) {
	t.Helper()
	h.kubectl(t, "create", "serviceaccount", "viewer", "-n", system)
	h.kubectl(t, "create", "rolebinding", "viewer", "--clusterrole=hive-cluster-pool-admin", "--serviceaccount="+system+":viewer", "-n", p.Namespace)
	for _, r := range []*replica{leader, other} {
		jar, err := cookiejar.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		v := &visitor{t, &http.Client{Jar: jar, Transport: browser.Transport}, "https://" + r.serves(t, "console")}
		if code, text := v.get("/enter?code=x"); code != http.StatusNotFound {
			t.Errorf("a link leads to %d\n%s", code, text)
		}
		v.signIn(h.token(t, system, "viewer"))
		v.until("/pools/"+p.Namespace+"/"+p.Name, "Claim a cluster", "You do not have permission to list ClusterDeployments in all namespaces")
		if _, text := v.get("/pools"); !strings.Contains(text, "You do not have permission to list ClusterPools in all namespaces") {
			t.Errorf("it shows more than the viewer may see:\n%s", text)
		}
	}
}

// scraper makes one who may see metrics, as the pages say, and returns a token of it.
func (h *hub) scraper(t *testing.T, namespace string) (token string) {
	t.Helper()
	h.kubectl(t, "create", "serviceaccount", "scraper", "-n", namespace)
	h.kubectl(t, "create", "clusterrolebinding", "scraper", "--clusterrole", "hotspare-metrics-reader", "--serviceaccount", namespace+":scraper")
	return h.token(t, namespace, "scraper")
}

// token is one of a ServiceAccount.
func (h *hub) token(t *testing.T, namespace, account string) string {
	t.Helper()
	return strings.TrimSpace(h.kubectl(t, "create", "token", account, "-n", namespace))
}

// accessOf writes a kubeconfig for a ServiceAccount: it has its token and nothing else.
func (h *hub) accessOf(t *testing.T, namespace, account string) string {
	t.Helper()
	admin, err := clientcmd.LoadFromFile(h.kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	for name := range admin.AuthInfos {
		admin.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: h.token(t, namespace, account)}
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*admin, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// holder is who has the Lease; "" if nobody has.
func (h *hub) holder(t *testing.T) string {
	t.Helper()
	return ptr.Deref(h.lease(t).Spec.HolderIdentity, "")
}

func (h *hub) lease(t *testing.T) *coordinationv1.Lease {
	t.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "hotspare-manager"}}
	if err := h.Get(t.Context(), client.ObjectKeyFromObject(lease), lease); err != nil {
		t.Fatal(err)
	}
	return lease
}

// replica is a hotspare-manager that a test has started.
type replica struct {
	cmd   *exec.Cmd
	ended chan struct{}
	said  *transcript
}

func (h *hub) replica(t *testing.T, kubeconfig string) *replica {
	t.Helper()
	return runManager(t, nil, "--kubeconfig", kubeconfig, "-v", "1")
}

// managerBinary is the hotspare-manager that the tests run.
func managerBinary() string {
	return cmp.Or(os.Getenv("HOTSPARE_MANAGER_BINARY"), filepath.Join(filepath.Dir(binary), "hotspare-manager"))
}

// runManager starts a hotspare-manager that serves on ports of its choice.
func runManager(t *testing.T, env []string, args ...string) *replica {
	t.Helper()
	program := managerBinary()
	r := &replica{ended: make(chan struct{}), said: &transcript{news: make(chan struct{}, 1)}}
	r.cmd = exec.Command(program, append(args, "--health-bind-address", "127.0.0.1:0", "--metrics-bind-address", "127.0.0.1:0",
		"--console-bind-address", "127.0.0.1:0")...)
	r.cmd.Env = environment(env...)
	r.cmd.Stdout, r.cmd.Stderr = r.said, r.said
	if err := r.cmd.Start(); err != nil {
		t.Fatalf("starting %s: %v: build it with make build", program, err)
	}
	go func() {
		defer close(r.ended)
		_ = r.cmd.Wait() // how it ended is in ProcessState
	}()
	t.Cleanup(func() {
		r.kill(t)
		if t.Failed() {
			t.Logf("what hotspare-manager (pid %d) logged:\n%s", r.cmd.Process.Pid, r.said)
		}
	})
	return r
}

// kill ends it as a power cut does. One that has ended is none the worse.
func (r *replica) kill(t *testing.T) {
	t.Helper()
	if err := r.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
	<-r.ended
}

// stop tells it to end, and waits until it has, well.
func (r *replica) stop(t *testing.T) {
	t.Helper()
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-r.ended:
	case <-patient(t).Done():
		t.Fatal("it does not end when told to")
	}
	if code := r.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("it ended with %d\n%s", code, r.said)
	}
}

// probes and metrics are where it serves them.
func (r *replica) probes(t *testing.T) string  { return "http://" + r.serves(t, "probes") }
func (r *replica) metrics(t *testing.T) string { return "https://" + r.serves(t, "metrics") }

func (r *replica) serves(t *testing.T, what string) (address string) {
	t.Helper()
	line := regexp.MustCompile(`msg=serving what=` + what + ` address=(\S+)`)
	eventually(t, "it serves "+what, func(context.Context) error {
		found := line.FindStringSubmatch(r.said.String())
		if found == nil {
			return fmt.Errorf("it has not said where:\n%s", r.said)
		}
		address = found[1]
		return nil
	})
	return address
}

// answers waits until it answers so.
func (r *replica) answers(t *testing.T, url, token string, code int, words string) {
	t.Helper()
	eventually(t, url+" answers", func(context.Context) error {
		got, text := r.ask(t, url, token)
		if got != code || !strings.Contains(text, words) {
			return fmt.Errorf("it answers %d, want %d and %s:\n%s", got, code, words, text)
		}
		return nil
	})
}

// browser asks without knowing who signs.
var browser = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}

// ask returns 0 when there is no answer.
func (r *replica) ask(t *testing.T, url, token string) (code int, text string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := browser.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err.Error()
	}
	return res.StatusCode, string(raw)
}

// leading waits until one of two leads.
func leading(t *testing.T, one, two *replica) (leader, other *replica) {
	t.Helper()
	eventually(t, "one of two leads", func(context.Context) error {
		a, b := strings.Contains(one.said.String(), "msg=leads"), strings.Contains(two.said.String(), "msg=leads")
		if a == b {
			return fmt.Errorf("the one: %t, the other: %t", a, b)
		}
		leader, other = one, two
		if b {
			leader, other = two, one
		}
		return nil
	})
	return leader, other
}

// mayAll checks that the hub has refused it nothing.
func (r *replica) mayAll(t *testing.T) {
	t.Helper()
	for line := range strings.Lines(r.said.String()) {
		if strings.Contains(line, "forbidden") || strings.Contains(line, "cannot ") {
			t.Errorf("it lacks a right: %s", line)
		}
	}
}
