package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/activity"
	"hotspare.io/hotspare/internal/condition"
)

// inactivityLimit is the shortest that a policy may have.
const inactivityLimit = 10 * time.Second

// TestAClusterThatNobodyUsesSleepsAndWakesWhenAClientConnects follows a claimed cluster whose pool has a limit of
// inactivity.
func TestAClusterThatNobodyUsesSleepsAndWakesWhenAClientConnects(t *testing.T) {
	h := own(t)
	ns := h.namespace(t)
	pool := localPool(ns, "dev", 0, 0)
	policy := &v1alpha1.PoolPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "dev"},
		Spec: v1alpha1.PoolPolicySpec{ClaimedClusters: &v1alpha1.ClaimedClusters{
			HibernateAfterInactivity: hivev1.DurationOf(inactivityLimit), IgnoredNamespaces: []string{"cert-manager"},
		}},
	}
	c := claimOn(pool, "mine")
	h.create(t, pool, c)
	cd := h.served(t, c)
	kubeconfig := h.kubeconfigOf(t, ns, "mine")

	t.Log("a watch that is open keeps it awake")
	watch := h.startWatch(t, "--kubeconfig", kubeconfig)
	h.create(t, policy)
	h.staysAwake(t, cd, 3*inactivityLimit)
	says(t, h.hotspare(t, "explain", "cluster", "mine", "-n", ns), "last request seen", "hibernates in")
	controller := h.watchAsController(t, cd, kubeconfig, "cert-manager")
	if err := watch.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = watch.Wait() // it was killed

	t.Log("it sleeps when nobody uses it but a controller that the policy ignores, and kubectl wakes it")
	defer func() {
		if t.Failed() {
			t.Log(h.run(t, "", "kubectl", "get", "clusterdeployment", cd.Name, "-n", cd.Namespace, "-o", "yaml").all())
			for range 2 { // each question counts as use: a request that has not ended is one more than it
				t.Log(h.run(t, "", "kubectl", "--kubeconfig", kubeconfig, "get", "--raw", activity.Path, "--request-timeout=5s").all())
			}
		}
	}()
	h.sleepsUnused(t, cd, kubeconfig, hivev1.DepthStop)
	_ = controller.Process.Kill() // it may have ended with the API server
	_ = controller.Wait()
	says(t, h.hotspare(t, "explain", "cluster", "mine", "-n", ns), "hibernates because nobody used it")
	h.kubectlWakes(t, kubeconfig, hivev1.DepthStop)

	if runtime.GOOS == "linux" {
		h.kubectl(t, "annotate", "clusterdeployment", cd.Name, "-n", cd.Namespace, hivev1.AnnotationSleepDepth+"="+hivev1.DepthFreeze)
		for range 3 {
			h.sleepsUnused(t, cd, kubeconfig, hivev1.DepthFreeze)
			h.kubectlWakes(t, kubeconfig, hivev1.DepthFreeze)
		}
	}

	t.Log("a port scan does not wake it, and two hundred clients wake it once")
	h.sleepsUnused(t, cd, kubeconfig, "")
	conn, err := net.Dial("tcp4", strings.TrimPrefix(get(t, h, cluster(cd.Name)).Status.APIURL, "https://"))
	if err != nil {
		t.Fatalf("a sleeping cluster refuses connections: %v", err)
	}
	_ = conn.Close()
	before := h.countEvents(t, cd, "WokenByConnection")
	h.clientsWake(t, kubeconfig, 200)
	eventually(t, "the wake has an event", func(context.Context) error {
		if n := h.countEvents(t, cd, "WokenByConnection") - before; n != 1 {
			return fmt.Errorf("%d events", n)
		}
		return nil
	})

	t.Log("a hub that was killed holds the address again")
	h.sleepsUnused(t, cd, kubeconfig, "")
	h.kill(t)
	h.restart(t)
	eventually(t, "kubectl wakes it", func(context.Context) error {
		if r := h.run(t, "", "kubectl", "--kubeconfig", kubeconfig, "get", "nodes"); r.code != 0 {
			return errors.New(r.all())
		}
		return nil
	})

	t.Log("a connection does not end a sleep that a person wanted")
	h.hotspare(t, "cluster", "hibernate", "mine", "-n", ns, "--wait")
	h.refuses(t, cd)
	h.hotspare(t, "cluster", "resume", "mine", "-n", ns, "--wait")

	t.Log("a cluster that is deleted while a client wakes it leaves nothing behind")
	h.sleepsUnused(t, cd, kubeconfig, "")
	impatient := h.command(t, "kubectl", "--kubeconfig", kubeconfig, "get", "pods", "-A", "--watch")
	if err := impatient.Start(); err != nil {
		t.Fatal(err)
	}
	h.hotspare(t, "claim", "release", "mine", "-n", ns, "--wait")
	_ = impatient.Process.Kill() // it may have ended
	_ = impatient.Wait()
	eventually(t, "cluster "+cd.Name+" leaves nothing behind", func(ctx context.Context) error { return h.traces(ctx, cd) })
}

// watchAsController starts a watch in a cluster with the token of a service account, as a controller there does.
func (h *hub) watchAsController(t *testing.T, cd *hivev1.ClusterDeployment, kubeconfig, namespace string) *exec.Cmd {
	t.Helper()
	admin := func(args ...string) string {
		r := h.run(t, "", append([]string{"kubectl", "--kubeconfig", kubeconfig}, args...)...)
		if r.code != 0 {
			t.Fatal(r.all())
		}
		return strings.TrimSpace(r.out)
	}
	admin("create", "namespace", namespace)
	admin("create", "serviceaccount", "controller", "-n", namespace)
	admin("create", "clusterrolebinding", "controller", "--clusterrole=view", "--serviceaccount="+namespace+":controller")
	token := admin("create", "token", "controller", "-n", namespace)
	return h.startWatch(t, "--kubeconfig", os.DevNull, "--server", get(t, h, cluster(cd.Name)).Status.APIURL, "--insecure-skip-tls-verify",
		"--token", token)
}

// startWatch starts a watch of ConfigMaps, and returns when it has begun.
func (h *hub) startWatch(t *testing.T, flags ...string) *exec.Cmd {
	t.Helper()
	watch := h.command(t, append([]string{"kubectl", "get", "configmaps", "-A", "--watch"}, flags...)...)
	out, err := watch.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatalf("the watch does not begin: %v", err)
	}
	return watch
}

// staysAwake checks for a while that nothing puts a cluster to sleep.
func (h *hub) staysAwake(t *testing.T, cd *hivev1.ClusterDeployment, span time.Duration) {
	t.Helper()
	var err error
	idle(func() {
		err = wait.PollUntilContextTimeout(t.Context(), time.Second, span, true, func(context.Context) (bool, error) {
			return get(t, h, cluster(cd.Name)).Spec.PowerState == hivev1.PowerHibernating, nil
		})
	})
	if err == nil {
		t.Error("it sleeps while it is used")
	}
}

// sleepsUnused waits until a cluster sleeps because nobody uses it; at any depth if depth is "".
func (h *hub) sleepsUnused(t *testing.T, cd *hivev1.ClusterDeployment, kubeconfig, depth string) {
	t.Helper()
	eventually(t, "it sleeps because nobody uses it", func(context.Context) error {
		now := get(t, h, cluster(cd.Name))
		if depth == hivev1.DepthFreeze && couldNotFreeze(now) {
			_ = h.run(t, "", "kubectl", "--kubeconfig", kubeconfig, "get", "nodes") // it is to sleep once more
		}
		r := now.Status.PowerTransition
		if now.Status.PowerState != hivev1.StatusHibernating || !strings.HasPrefix(now.Annotations[hivev1.AnnotationInactivity], "Hibernating") || depth != "" && r.Depth != depth {
			return fmt.Errorf("%s at depth %q, the record of inactivity is %q", now.Status.PowerState, r.Depth, now.Annotations[hivev1.AnnotationInactivity])
		}
		return nil
	})
}

// couldNotFreeze reports whether a cluster was stopped because its processes did not come to rest in time, which happens on a
// busy computer.
func couldNotFreeze(cd *hivev1.ClusterDeployment) bool {
	c := condition.Find(cd.Status.Conditions, hivev1.ClusterHibernating)
	return cd.Status.PowerState == hivev1.StatusHibernating && c != nil && strings.Contains(c.Message, "could not be frozen")
}

// kubectlWakes checks that kubectl gets an answer from a sleeping cluster. It gives up after ten seconds, in which a busy
// computer does not start a cluster, and then succeeds when it is called again.
func (h *hub) kubectlWakes(t *testing.T, kubeconfig, depth string) {
	t.Helper()
	began := time.Now()
	get := func() result { return h.run(t, "", "kubectl", "--kubeconfig", kubeconfig, "get", "nodes") }
	r := get()
	for r.code != 0 && (strings.Contains(r.all(), "TLS handshake timeout") || strings.Contains(r.all(), "remote error: tls")) && time.Since(began) < patience {
		t.Logf("kubectl gave up after %.2fs", time.Since(began).Seconds())
		r = get()
	}
	t.Logf("kubectl against a cluster at depth %s answered after %.2fs", depth, time.Since(began).Seconds())
	if r.code != 0 || strings.Count(r.out, "\n") != 3 {
		t.Errorf("exit code %d\n%s", r.code, r.all())
	}
}

// clientsWake checks that many clients at the same time get an answer from a sleeping cluster.
func (h *hub) clientsWake(t *testing.T, kubeconfig string, n int) {
	t.Helper()
	raw, err := os.ReadFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		t.Fatal(err)
	}
	verify, err := rest.TLSConfigFor(config)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	began := time.Now()
	for range n {
		all.Go(func() {
			one := &http.Client{Transport: &http.Transport{TLSClientConfig: verify, DisableKeepAlives: true}, Timeout: patience}
			var answer *http.Response
			err := wait.PollUntilContextTimeout(t.Context(), time.Second, patience, true, func(context.Context) (bool, error) {
				var err error
				answer, err = one.Get(config.Host + "/api/v1/namespaces")
				if err != nil && strings.Contains(err.Error(), "remote error: tls") {
					return false, nil // a busy computer takes more than a minute to start a cluster
				}
				return err == nil, err
			})
			if err != nil {
				t.Errorf("after %.1fs: %v", time.Since(began).Seconds(), err)
				return
			}
			defer answer.Body.Close()
			if body, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusOK {
				t.Errorf("%s: %s, %v", answer.Status, body, err)
			}
		})
	}
	all.Wait()
}

// countEvents counts the events of a reason about a cluster.
func (h *hub) countEvents(t *testing.T, cd *hivev1.ClusterDeployment, reason string) int {
	t.Helper()
	var list eventsv1.EventList
	if err := h.List(t.Context(), &list, client.InNamespace(cd.Namespace)); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range list.Items {
		if e.Reason == reason && e.Regarding.Name == cd.Name {
			n++
			if e.Series != nil {
				n += int(e.Series.Count) - 1
			}
		}
	}
	return n
}
