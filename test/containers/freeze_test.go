//go:build containers

package containers

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// nodeGrace is longer than the time after which a node that sends no heartbeat counts as lost.
const nodeGrace = 20 * time.Second

// TestAFrozenClusterContinues tests that everything in a frozen cluster stops where it is, and continues: pods are not
// started again, no node is taken for lost, and an exec that was open works on. Meanwhile, clients are refused.
func TestAFrozenClusterContinues(t *testing.T) {
	t.Parallel()
	c := shared.newCluster(t, "frozen", 1)
	c.apply(`apiVersion: v1
kind: Pod
metadata: {name: kept, labels: {app: kept}}
spec:
  containers:
  - name: main
    image: hotspare.test/testpod:1
    command: [sh, -c, "echo started >> /host/log; while :; do date +%s > /host/clock; sleep 0.1; done"]
    volumeMounts: [{name: host, mountPath: /host}]
  - {name: deaf, image: "hotspare.test/testpod:1", command: [testpod, wait, deaf]}
  - {name: web, image: "hotspare.test/testpod:1", command: [testpod, serve, ":8080"]}
  volumes: [{name: host, hostPath: {path: /var/lib/kept, type: DirectoryOrCreate}}]
---
apiVersion: v1
kind: Service
metadata: {name: kept}
spec:
  type: LoadBalancer
  selector: {app: kept}
  ports: [{port: 80, targetPort: 8080}]
`)
	c.kubectl("wait", "pod/kept", "--for=condition=Ready", "--timeout=3m")
	address := c.loadBalancerAddress("kept")
	getFromHost(t, "http://"+address+"/hostname")
	say, hear := c.openExec("kept", "web", "cat")
	say("before\n")
	hear("before")
	processes := processesOfMachines(t, c)
	ready := c.readyTimes()

	c.freeze()
	for _, dir := range machinesOf(t, c) {
		checkFrozen(t, dir)
	}
	waitUntilRefused(t, address+":80")
	began := time.Now()
	if out, err := c.try(t.Context(), "", "get", "nodes"); err == nil || !strings.Contains(out, "refused") || time.Since(began) > time.Minute {
		t.Errorf("a client of a frozen cluster got after %s: %v\n%s", time.Since(began), err, out)
	}
	time.Sleep(nodeGrace) // otherwise no controller would take a node for lost

	began = time.Now()
	c.hub.setPowerState(t, c.name, "Running")
	c.eventually(time.Minute, "ok", "get", "--raw=/readyz")
	t.Logf("the API answered %s after the request to thaw", time.Since(began).Round(time.Millisecond))
	c.waitForPowerState("Running")
	t.Logf("running again after %s", time.Since(began).Round(100*time.Millisecond))
	getFromHost(t, "http://"+address+"/hostname")
	say("after\n")
	hear("after")
	if after := processesOfMachines(t, c); after != processes {
		t.Errorf("the processes of the machines were %s and are %s", processes, after)
	}
	c.eventually(30*time.Second, "0 0 0", "get", "pod", "kept", "-o", "jsonpath={.status.containerStatuses[*].restartCount}")
	c.eventually(30*time.Second, "true true true", "get", "pod", "kept", "-o", "jsonpath={.status.containerStatuses[*].ready}")
	if log := c.kubectl("exec", "kept", "-c", "main", "--", "cat", "/host/log"); log != "started\n" {
		t.Errorf("the volume has:\n%s", log)
	}
	c.eventually(30*time.Second, "True", "get", "nodes", "-o", `jsonpath={.items[1].status.conditions[?(@.type=="Ready")].status}`)
	if after := c.readyTimes(); after != ready {
		t.Errorf("nodes and pods were ready since %s, and are since %s", ready, after)
	}
	c.kubectl("create", "deployment", "new", "--image=hotspare.test/testpod:1", "--", "testpod", "wait")
	c.kubectl("rollout", "status", "deployment/new", "--timeout=3m")
	c.freeze() // the cleanup deletes a frozen cluster
}

// TestAFrozenClusterOutlivesItsCertificates freezes a cluster for longer than the certificates of its nodes are valid.
func TestAFrozenClusterOutlivesItsCertificates(t *testing.T) {
	t.Parallel()
	c := shared.newClusterOf(t, "expired", "workers: 1, containers: Always, certificateDuration: 1m")
	c.apply(`apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  containers:
  - {name: main, image: "hotspare.test/testpod:1", command: [testpod, serve, ":8080"], readinessProbe: {httpGet: {path: /hostname, port: 8080}, periodSeconds: 1}}
`)
	c.kubectl("wait", "pod/web", "--for=condition=Ready", "--timeout=3m")
	c.freeze()
	time.Sleep(75 * time.Second) // the certificates expire
	began := time.Now()
	c.setPowerState("Running")
	t.Logf("running again after %s", time.Since(began).Round(100*time.Millisecond))
	c.eventually(2*time.Minute, "true 0", "get", "pod", "web", "-o", "jsonpath={.status.containerStatuses[0].ready} {.status.containerStatuses[0].restartCount}")
	c.eventually(2*time.Minute, "ok", "exec", "web", "--", "sh", "-c", "echo ok")
	// kube-proxy sees a new Service. With a connection whose certificate has expired, it would after 5 minutes.
	c.kubectl("expose", "pod", "web", "--port=80", "--target-port=8080")
	c.eventually(time.Minute, "web", "exec", "web", "--", "testpod", "get", "http://web.default.svc/hostname")
}

// TestAKilledHubEndsFrozenClusters kills a hub while a cluster is frozen. Its processes end by themselves; the next hub says
// that the cluster is stopped, and resumes it.
func TestAKilledHubEndsFrozenClusters(t *testing.T) {
	dir, err := os.MkdirTemp("", "TestContainers")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // after the others
	h, err := startHub(filepath.Join(dir, "data"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.stop(); err != nil {
			t.Error(err)
		}
		if left := leftovers(h.dir); len(left) > 0 {
			t.Errorf("left:\n%s", strings.Join(left, "\n"))
		}
	})
	c := h.newCluster(t, "orphan", 1)
	c.apply(`apiVersion: v1
kind: Pod
metadata: {name: kept}
spec:
  containers:
  - name: main
    image: hotspare.test/testpod:1
    command: [sh, -c, "echo started >> /host/log; exec testpod wait deaf"]
    volumeMounts: [{name: host, mountPath: /host}]
  volumes: [{name: host, hostPath: {path: /var/lib/kept, type: DirectoryOrCreate}}]
`)
	c.kubectl("wait", "pod/kept", "--for=condition=Ready", "--timeout=3m")
	c.freeze()
	killHub(t, h)
	h.run(t, "kubectl", "wait", "clusterdeployment/"+c.name, "--for=jsonpath={.status.powerTransition.depth}=stop", "--timeout=2m")
	const want = "hotspare has ended while it was frozen, which stops it"
	if got := c.hibernatingMessage(); !strings.Contains(got, want) {
		t.Errorf("the message is %q", got)
	}
	c.setPowerState("Running")
	c.eventually(2*time.Minute, "started\nstarted\n", "exec", "kept", "--", "cat", "/host/log")
}

// freeze hibernates the cluster at depth freeze and waits until it sleeps.
func (c *cluster) freeze() {
	c.t.Helper()
	began := time.Now()
	c.hub.run(c.t, "cluster", "hibernate", c.name, "--depth", "freeze", "--wait", "--timeout", "3m")
	c.t.Logf("frozen after %s", time.Since(began).Round(100*time.Millisecond))
	if got := c.hibernatingMessage(); got != "The cluster is hibernating at depth freeze." {
		c.t.Errorf("the message is %q", got)
	}
	if out := c.hub.run(c.t, "cluster", "list"); !strings.Contains(out, "Hibernating (freeze)") {
		c.t.Errorf("the list is:\n%s", out)
	}
}

func (c *cluster) hibernatingMessage() string {
	c.t.Helper()
	return c.hub.run(c.t, "kubectl", "get", "clusterdeployment", c.name, "-o", `jsonpath={.status.conditions[?(@.type=="Hibernating")].message}`)
}

// readyTimes are the times since which nodes and pods are ready.
func (c *cluster) readyTimes() string {
	c.t.Helper()
	const path = `jsonpath={range .items[*]}{.metadata.name} {.status.conditions[?(@.type=="Ready")].lastTransitionTime} {end}`
	return c.kubectl("get", "nodes,pods", "-o", path)
}

// openExec starts a program in a container, and returns what writes to it, and what waits for a line of its output.
func (c *cluster) openExec(pod, container string, command ...string) (say, hear func(string)) {
	c.t.Helper()
	ctx, cancel := context.WithCancel(context.Background()) // it ends with the test's cleanup
	arguments := append([]string{"kubectl", "exec", "-i", pod, "-c", container, "--"}, command...)
	cmd := exec.CommandContext(ctx, binary, arguments...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig)
	in, err := cmd.StdinPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	lines := make(chan string, 100)
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			lines <- scanner.Text()
		}
	}()
	c.t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was killed
	})
	say = func(text string) {
		if _, err := io.WriteString(in, text); err != nil {
			c.t.Errorf("writing to an open exec: %v", err)
		}
	}
	hear = func(want string) {
		c.t.Helper()
		select {
		case line, ok := <-lines:
			if !ok || line != want {
				c.t.Errorf("an open exec printed %q (%t), want %q", line, ok, want)
			}
		case <-time.After(30 * time.Second):
			c.t.Errorf("an open exec does not print %q", want)
		}
	}
	return say, hear
}

// processesOfMachines returns the IDs of the processes of the cluster's machines.
func processesOfMachines(t *testing.T, c *cluster) string {
	t.Helper()
	var ids []int
	for _, dir := range machinesOf(t, c) {
		ids = append(ids, machineProcess(dir))
	}
	return fmt.Sprint(ids)
}

// checkFrozen fails the test if a process of the machine runs.
func checkFrozen(t *testing.T, dir string) {
	t.Helper()
	todo, count := []int{machineProcess(dir)}, 0
	for len(todo) > 0 {
		id := todo[0]
		todo = append(todo[1:], childrenOf(id)...)
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id))
		if err != nil {
			continue
		}
		count++
		_, state, _ := strings.Cut(string(raw), ") ")
		if !strings.HasPrefix(state, "T") && !strings.HasPrefix(state, "Z") {
			t.Errorf("process %d of %s is not frozen: %.60s", id, filepath.Base(dir), raw)
		}
	}
	t.Logf("%d processes of %s are frozen", count, filepath.Base(dir))
}
