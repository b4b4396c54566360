//go:build realclusters

package recipes

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var image = flag.String("image", "localhost/busybox:latest", "an image with busybox that all nodes of a new cluster can use")

// application is a web server behind a service, with its data in a volume of the node, and a client.
// The first start of the server creates the data.
const application = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: IMAGE
        imagePullPolicy: IfNotPresent
        command: [sh, -c, "echo the server starts; [ -e /data/index.html ] || cat /proc/sys/kernel/random/uuid >/data/index.html; exec httpd -f -p 8080 -h /data"]
        readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1}
        volumeMounts: [{name: data, mountPath: /data}]
      volumes: [{name: data, hostPath: {path: /var/web, type: DirectoryOrCreate}}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080}]
---
apiVersion: v1
kind: Pod
metadata: {name: client}
spec:
  containers: [{name: client, image: IMAGE, imagePullPolicy: IfNotPresent, command: [sleep, "2147483647"]}]
  terminationGracePeriodSeconds: 0
`

// steps measures the steps of a test.
type steps struct {
	rows []string
	last time.Time
}

// begin starts the measurement of the next step.
func (s *steps) begin() { s.last = time.Now() }

// end records the time since begin.
func (s *steps) end(step string) {
	s.rows = append(s.rows, fmt.Sprintf("| %s | %.1f s |", step, time.Since(s.last).Seconds()))
}

// String returns the steps as a table in Markdown.
func (s *steps) String() string {
	return "| step | time |\n|---|---|\n" + strings.Join(s.rows, "\n") + "\n"
}

func TestAPoolOfTheRecipeServesAClaim(t *testing.T) {
	h := newHub(t)
	before := observeMachine(t, h.recipe.Dir)
	s := &steps{}
	s.begin()
	h.start(t)
	s.end("start hotspare")

	s.begin()
	h.createPool(t, "real", 2, 1)
	h.run(t, "kubectl", "wait", "clusterpool/real", "--for=jsonpath={.status.ready}=1", "--timeout=10m")
	s.end("create the pool, until one cluster runs")
	h.run(t, "pool", "watch", "real", "--until-settled", "--timeout=10m")
	s.end("create the pool, until one cluster runs and one hibernates")
	h.showAll(t)
	h.restart(t, 2)

	s.begin()
	h.run(t, "claim", "create", "real", "--name", "mine", "--wait")
	s.end("claim, until the cluster can be used")
	claimed := time.Now()
	h.showAll(t)
	h.show(t, "explain", "claim", "mine")

	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	h.run(t, "cluster", "kubeconfig", "mine", "-o", kubeconfig)
	c := cluster{kubeconfig}
	data := c.deployApplication(t, s)
	c.hibernateAndResume(t, h, s, data)

	h.run(t, "pool", "watch", "real", "--until-settled", "--timeout=10m")
	s.last = claimed
	s.end("replace the claimed cluster, counted from the claim and beside the steps above")
	h.showAll(t)

	name := h.field(t, ".spec.namespace", "clusterclaim", "mine")
	s.begin()
	h.run(t, "claim", "release", "mine")
	h.run(t, "kubectl", "wait", "--for=delete", "clusterdeployment/"+name, "-n", name, "--timeout=10m")
	s.end("release, until the cluster is destroyed")
	h.run(t, "pool", "watch", "real", "--until-settled", "--timeout=10m")
	h.showAll(t)

	s.begin()
	h.run(t, "pool", "delete", "real")
	h.run(t, "kubectl", "wait", "--for=delete", "clusterdeployments", "--all", "--all-namespaces", "--timeout=10m")
	s.end("delete the pool, until its two clusters are destroyed")
	h.stop(t)
	compareMachine(t, h.recipe.Dir, before)
	fmt.Printf("\n%s", s)
}

// restart stops and starts the hub while the recipe has that many clusters. They stay as they are.
func (h *hub) restart(t *testing.T, clusters int) {
	t.Helper()
	uids := h.field(t, ".items[*].metadata.uid", "clusterdeployments", "--all-namespaces")
	out := h.run(t, "down")
	h.pid = 0
	if !strings.Contains(out, fmt.Sprintf("may be running: %d", clusters)) {
		t.Errorf("hotspare down does not say that %d clusters are left: %s", clusters, out)
	}
	h.start(t)
	if now := h.field(t, ".items[*].metadata.uid", "clusterdeployments", "--all-namespaces"); now != uids {
		t.Errorf("before the restart there were the clusters %q, and now %q", uids, now)
	}
	h.run(t, "kubectl", "wait", "clusterpool/real", "--for=jsonpath={.status.ready}=1", "--timeout=10m")
}

// showAll logs the pool and its clusters as a user sees them.
func (h *hub) showAll(t *testing.T) {
	t.Helper()
	for _, args := range [][]string{{"pool", "list"}, {"cluster", "list"}, {"explain", "pool", "real"}} {
		h.show(t, args...)
	}
}

// cluster is a claimed cluster.
type cluster struct{ kubeconfig string }

func (c cluster) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	return run(t, append([]string{"kubectl", "--kubeconfig", c.kubeconfig}, args...)...)
}

// waitForAnswer returns what the service answers to the client, once it answers. It logs each other
// problem on the way.
func (c cluster) waitForAnswer(t *testing.T) (answer string) {
	t.Helper()
	last := ""
	waitFor(t, "an answer of the service", func() bool {
		out, err := runCommand(t.Context(), "kubectl", "--kubeconfig", c.kubeconfig, "exec", "client", "--", "wget", "-qO-", "http://web")
		out = strings.TrimSpace(out)
		if err != nil && out != last {
			t.Logf("%s no answer yet: %s", time.Now().Format(time.TimeOnly), out)
			last = out
		}
		answer = out
		return err == nil
	})
	return answer
}

// deployApplication deploys the application, and returns its data.
func (c cluster) deployApplication(t *testing.T, s *steps) string {
	t.Helper()
	manifest := filepath.Join(t.TempDir(), "application.yaml")
	if err := os.WriteFile(manifest, []byte(strings.ReplaceAll(application, "IMAGE", *image)), 0o600); err != nil {
		t.Fatal(err)
	}
	s.begin()
	c.kubectl(t, "apply", "-f", manifest)
	c.kubectl(t, "wait", "--for=condition=Available", "deployment/web", "--timeout=5m")
	c.kubectl(t, "wait", "--for=condition=Ready", "pod/client", "--timeout=5m")
	data := c.waitForAnswer(t)
	s.end("deploy, until another pod gets an HTTP answer from http://web")

	s.begin()
	if out := c.kubectl(t, "logs", "deployment/web"); !strings.Contains(out, "the server starts") {
		t.Errorf("kubectl logs prints %q", out)
	}
	s.end("kubectl logs")
	s.begin()
	if out := c.kubectl(t, "exec", "deployment/web", "--", "cat", "/data/index.html"); strings.TrimSpace(out) != data {
		t.Errorf("kubectl exec prints %q, and the service answers %q", out, data)
	}
	s.end("kubectl exec")
	return data
}

// hibernateAndResume hibernates and resumes the claimed cluster, and confirms that the application
// serves the same data again.
func (c cluster) hibernateAndResume(t *testing.T, h *hub, s *steps, data string) {
	t.Helper()
	pod := c.kubectl(t, "get", "pods", "-l", "app=web", "-o", "name")
	s.begin()
	h.run(t, "cluster", "hibernate", "mine", "--wait")
	s.end("hibernate")
	h.show(t, "cluster", "list")
	h.show(t, "explain", "claim", "mine")
	if out, err := runCommand(t.Context(), "kubectl", "--kubeconfig", c.kubeconfig, "get", "--raw", "/readyz"); err == nil {
		t.Errorf("the API of the hibernating cluster answers %q", out)
	}
	s.begin()
	h.run(t, "cluster", "resume", "mine", "--wait")
	s.end("resume, until the cluster can be used")
	answer := c.waitForAnswer(t)
	s.end("resume, until the same pods answer again")
	if answer != data {
		t.Errorf("before the hibernation the service answered %q, and now %q", data, answer)
	}
	if now := c.kubectl(t, "get", "pods", "-l", "app=web", "-o", "name"); now != pod {
		t.Errorf("pod %s was replaced by %s", pod, now)
	}
	h.show(t, "explain", "claim", "mine")
}
