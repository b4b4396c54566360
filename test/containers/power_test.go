//go:build containers

package containers

import (
	"flag"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestAClusterHibernatesWithItsPods tests that containers stop with the machine, one that ignores its
// stop signal too, that they have a network until then, that nothing of them is left, and that they run again with their data, and at the
// same address of this computer.
func TestAClusterHibernatesWithItsPods(t *testing.T) {
	t.Parallel()
	c := shared.newCluster(t, "sleeper", 1)
	c.apply(`apiVersion: v1
kind: Pod
metadata: {name: kept, labels: {app: kept}}
spec:
  containers:
  - name: main
    image: hotspare.test/testpod:1
    command: [sh, -c, "trap 'testpod lookup kubernetes.default && echo stopped >> /host/log; exit' TERM; echo started >> /host/log; while :; do sleep 0.1; done"]
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
	began := time.Now()
	c.setPowerState("Hibernating")
	t.Logf("hibernating after %s", time.Since(began).Round(100*time.Millisecond))
	machines := machinesOf(t, c)
	for _, dir := range machines {
		if left := leftovers(dir); len(left) > 0 {
			t.Errorf("left by %s:\n%s", filepath.Base(dir), strings.Join(left, "\n"))
		}
	}
	waitUntilRefused(t, address+":80")
	began = time.Now()
	c.setPowerState("Running")
	c.eventually(60*time.Second, "true true true", "get", "pod", "kept", "-o", "jsonpath={.status.containerStatuses[*].ready}")
	c.eventually(60*time.Second, "started\nstopped\nstarted\n", "exec", "kept", "-c", "main", "--", "cat", "/host/log")
	t.Logf("running again after %s", time.Since(began).Round(100*time.Millisecond))
	getFromHost(t, "http://"+address+"/hostname")
	if again := c.loadBalancerAddress("kept"); again != address {
		t.Errorf("the Service had the address %s and has %s", address, again)
	}
}

// Flags of TestNothingIsLeftOfKilledProcesses.
var (
	kills    = flag.Int("kills", usualKills, "how many processes are killed; if more than usual, the hub is one of them")
	killSeed = flag.Int64("kills.seed", time.Now().UnixNano(), "the seed of the choice of processes and moments")
)

const usualKills = 5

// TestNothingIsLeftOfKilledProcesses kills processes of a cluster at random moments, under load. The
// pods run again each time, without any help, and with their data.
func TestNothingIsLeftOfKilledProcesses(t *testing.T) {
	t.Parallel()
	c := shared.newCluster(t, "victim", 1)
	c.apply(`apiVersion: apps/v1
kind: Deployment
metadata: {name: load}
spec:
  replicas: 5
  selector: {matchLabels: {app: load}}
  template:
    metadata: {labels: {app: load}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: hotspare.test/testpod:1
        command: [sh, -c, "echo $HOSTNAME >> /host/log; exec testpod serve :8080"]
        readinessProbe: {httpGet: {path: /hostname, port: 8080}, periodSeconds: 1}
        volumeMounts: [{name: host, mountPath: /host}]
      volumes: [{name: host, hostPath: {path: /var/lib/kept, type: DirectoryOrCreate}}]
`)
	c.kubectl("rollout", "status", "deployment/load", "--timeout=3m")
	t.Logf("-kills.seed=%d", *killSeed)
	random := rand.New(rand.NewSource(*killSeed)) //nolint:gosec // a test
	victims := []string{"containerd-shim-runc-v2", "containerd", "worker-0", "master-0"}
	if *kills > usualKills {
		victims = append(victims, hubVictim)
	}
	log := ""
	for n := range *kills {
		victim := victims[random.Intn(len(victims))]
		if n < len(victims) {
			victim = victims[n] // each at least once
		}
		c.eventually(time.Minute, "restarted", "rollout", "restart", "deployment/load") // something is always in the making
		time.Sleep(time.Duration(random.Int63n(int64(3 * time.Second))))
		began := time.Now()
		killProcess(t, c, victim)
		c.eventually(2*time.Minute, "successfully rolled out", "rollout", "status", "deployment/load", "--timeout=20s")
		c.eventually(60*time.Second, "5", "get", "deployment", "load", "-o", "jsonpath={.status.availableReplicas}")
		log = readMoreLines(c, log)
		t.Logf("%2d: after %s was killed, all pods were ready again in %s", n+1, victim, time.Since(began).Round(100*time.Millisecond))
	}
}

// hubVictim is the hub, as a victim.
const hubVictim = "hub"

// readMoreLines returns the file in the volume of the load when it has more than it had before.
// Requests are repeated: the pod that answers may be one that is ending.
func readMoreLines(c *cluster, before string) string {
	c.t.Helper()
	var log string
	var err error
	deadline := time.Now().Add(30 * time.Second)
	for time.Now().Before(deadline) {
		log, err = c.try(c.t.Context(), "", "exec", "deployment/load", "--", "cat", "/host/log")
		if err == nil && len(log) > len(before) {
			if !strings.HasPrefix(log, before) {
				c.t.Fatalf("the volume lost data; it had:\n%s\nit has:\n%s", before, log)
			}
			return log
		}
		time.Sleep(300 * time.Millisecond)
	}
	c.t.Fatalf("the volume does not have more than before: %v\n%s\nbefore:\n%s", err, log, before)
	return ""
}

// killProcess kills a process of the cluster's machines: the process of a machine, by the end of its
// name, or one with that name in the worker.
func killProcess(t *testing.T, c *cluster, victim string) {
	t.Helper()
	if victim == hubVictim {
		killHub(t, c.hub)
		return
	}
	for _, dir := range machinesOf(t, c) {
		id := machineProcess(dir)
		if strings.HasSuffix(dir, victim) {
			kill(t, id, victim)
			return
		}
		for _, child := range childrenOf(id) {
			if name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", child)); filepath.Base(strings.SplitN(string(name), "\x00", 2)[0]) == victim {
				kill(t, child, victim)
				return
			}
		}
	}
	t.Fatalf("there is no process %s", victim)
}

// killHub kills the hub, waits until its machines have ended, and starts it again.
func killHub(t *testing.T, h *hub) {
	t.Helper()
	if err := h.up.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = h.up.Wait() // it was killed
	deadline := time.Now().Add(30 * time.Second)
	var left []string
	for time.Now().Before(deadline) {
		if left = processesOf(h.dir); len(left) == 0 {
			break
		}
		time.Sleep(200 * time.Millisecond)
	}
	if len(left) > 0 {
		t.Errorf("processes are left 30 s after the hub was killed:\n%s", strings.Join(left, "\n"))
	}
	if err := h.start(); err != nil {
		t.Fatal(err)
	}
}

func kill(t *testing.T, id int, name string) {
	t.Helper()
	if err := syscall.Kill(id, syscall.SIGKILL); err != nil {
		t.Fatalf("killing %s: %v", name, err)
	}
}

func machinesOf(t *testing.T, c *cluster) []string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(c.hub.dir, "machines", c.name+"-*", "*"))
	if err != nil || len(dirs) < 2 {
		t.Fatalf("machines of %s: %q, %v", c.name, dirs, err)
	}
	return dirs
}

func machineProcess(dir string) int {
	raw, _ := os.ReadFile(filepath.Join(dir, "lock"))
	id, _ := strconv.Atoi(strings.TrimSpace(string(raw)))
	return id
}

func childrenOf(id int) []int {
	var ids []int
	paths, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", id))
	for _, path := range paths {
		raw, _ := os.ReadFile(path)
		for field := range strings.FieldsSeq(string(raw)) {
			if child, err := strconv.Atoi(field); err == nil {
				ids = append(ids, child)
			}
		}
	}
	return ids
}

// setPowerState sets the power state of the cluster and waits until it is reached.
func (c *cluster) setPowerState(state string) {
	c.t.Helper()
	c.hub.setPowerState(c.t, c.name, state)
	c.waitForPowerState(state)
}

func (h *hub) setPowerState(t *testing.T, cluster, state string) {
	t.Helper()
	h.run(t, "kubectl", "patch", "clusterdeployment", cluster, "--type=merge", "-p", `{"spec":{"powerState":"`+state+`"}}`)
}

func (c *cluster) waitForPowerState(state string) {
	c.t.Helper()
	c.hub.run(c.t, "kubectl", "wait", "clusterdeployment/"+c.name, "--for=jsonpath={.status.powerState}="+state, "--timeout=3m")
}

// TestAHubThatIsKilledLeavesNothing kills a hub. Its machines end by themselves, and the next start of the hub
// brings them back. A pod of another hub on this computer does not notice it.
func TestAHubThatIsKilledLeavesNothing(t *testing.T) {
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
	c := h.newCluster(t, "survivor", 1)
	c.apply(`apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - {name: main, image: "hotspare.test/testpod:1", command: [testpod, serve, ":8080"], readinessProbe: {httpGet: {path: /hostname, port: 8080}, periodSeconds: 1}}
`)
	c.kubectl("wait", "pod/web", "--for=condition=Ready", "--timeout=3m")
	bystander := shared.newCluster(t, "bystander", 1)
	bystander.apply(fmt.Sprintf(privatePod, "web", imageName))
	bystander.kubectl("wait", "pod/web", "--for=condition=Ready", "--timeout=3m")
	killHub(t, h)
	c.eventually(2*time.Minute, "1", "get", "pod", "web", "-o", "jsonpath={.status.containerStatuses[0].restartCount}")
	c.eventually(2*time.Minute, "true", "get", "pod", "web", "-o", "jsonpath={.status.containerStatuses[0].ready}")
	if out := bystander.kubectl("get", "pod", "web", "-o", "jsonpath={.status.containerStatuses[0].restartCount} {.status.containerStatuses[0].ready}"); out != "0 true" {
		t.Errorf("the pod of the other hub has restarted, or is not ready: %s", out)
	}
}
