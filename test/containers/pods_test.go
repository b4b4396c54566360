//go:build containers

package containers

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestPods tests what a CI job needs of a cluster.
func TestPods(t *testing.T) {
	c := shared.newCluster(t, "pods", 2)
	c.apply(podsManifest)
	c.apply(busyManifest)
	began := time.Now()
	c.kubectl("rollout", "status", "deployment/web", "--timeout=3m")
	c.kubectl("wait", "pod/client", "--for=condition=Ready", "--timeout=3m")
	t.Logf("two replicas and a client are ready after %s", time.Since(began).Round(100*time.Millisecond))
	for name, test := range map[string]func(*testing.T, *cluster){
		"a Service is reached by its address, its name and a port of each node": testServices,
		"a LoadBalancer Service is reached from this computer":                  testLoadBalancer,
		"a pod reaches the API by its name, with the rights of its account":     testAPIFromPod,
		"exec, logs and cp": testExec,
		"port-forward":      testPortForward,
		"volumes":           testVolumes,
		"a pod that shares the memory of its node does not share that of this computer": testSharedMemory,
		"a taint with effect NoExecute ends the pods that do not tolerate it":           testNoExecute,
		"a Job with an init container":                                                  testJob,
		"nodes that are deleted do not come back":                                       testDeletedNodes,
		"limits of memory":                     testLimits,
		"limits of disk space":                 testDiskLimit,
		"a volume of a CSI driver is attached": testAttachment,
		"a limit of processes":                 testProcessLimit,
		"images that cannot be pulled say why in the events of their pods":           testBadImages,
		"a registry in the cluster":                                                  testClusterRegistry,
		"top prints what nodes and pods use, and only to those who may read it":      testTop,
		"a HorizontalPodAutoscaler scales a busy Deployment":                         testAutoscaling,
		"a metrics-server of the cluster's users replaces ours for as long as it is": testOwnMetricsServer,
	} {
		t.Run(name, func(t *testing.T) { test(t, c.of(t)) })
	}
}

const podsManifest = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}
      containers:
      - name: web
        image: hotspare.test/testpod:1
        command: [testpod, serve, ":8080"]
        readinessProbe: {httpGet: {path: /hostname, port: 8080}, periodSeconds: 1}
        livenessProbe: {exec: {command: [sh, -c, "true"]}, periodSeconds: 5}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  type: NodePort
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: 8080}]
---
apiVersion: v1
kind: Pod
metadata: {name: client}
spec:
  containers: [{name: main, image: "hotspare.test/testpod:1"}]
`

func testServices(t *testing.T, c *cluster) {
	address := c.kubectl("get", "service", "web", "-o", "jsonpath={.spec.clusterIP}")
	port := c.kubectl("get", "service", "web", "-o", "jsonpath={.spec.ports[0].nodePort}")
	nodes := strings.Fields(c.kubectl("get", "nodes", "-l", "node-role.kubernetes.io/worker", "-o", "jsonpath={.items[*].status.addresses[0].address}"))
	if len(nodes) != 2 {
		t.Fatalf("workers: %q", nodes)
	}
	urls := []string{"http://" + address, "http://web", "http://web.default.svc.cluster.local"}
	for _, node := range nodes {
		urls = append(urls, "http://"+node+":"+port)
	}
	answered := map[string]bool{}
	for _, url := range urls {
		for range 6 {
			answered[c.kubectl("exec", "client", "--", "testpod", "get", url+"/hostname")] = true
		}
	}
	if len(answered) != 2 {
		t.Errorf("these replicas answered: %v", answered)
	}
}

// testSharedMemory looks for a file in this computer's /dev/shm, from a pod with hostIPC.
func testSharedMemory(t *testing.T, c *cluster) {
	f, err := os.CreateTemp("/dev/shm", "hotspare-test-")
	if err != nil {
		t.Skipf("this computer has no /dev/shm: %v", err)
	}
	t.Cleanup(func() { _ = os.Remove(f.Name()) })
	_ = f.Close()
	c.apply(fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: ipc}
spec:
  hostIPC: true
  restartPolicy: Never
  containers:
  - {name: main, image: "hotspare.test/testpod:1", command: [sh, -c, "echo > /dev/shm/of-the-pod && if [ -e %s ]; then echo seen; else echo hidden; fi"]}
`, f.Name()))
	c.kubectl("wait", "pod/ipc", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=3m")
	if out := strings.TrimSpace(c.kubectl("logs", "ipc")); out != "hidden" {
		t.Errorf("the file of this computer is %s", out)
	}
	if _, err := os.Stat("/dev/shm/of-the-pod"); err == nil {
		t.Error("the pod has written to the memory of this computer")
	}
}

// testNoExecute taints the node that the client is not on.
func testNoExecute(t *testing.T, c *cluster) {
	const nodeOf = "jsonpath={.spec.nodeName}"
	busy := c.kubectl("get", "pod", "client", "-o", nodeOf)
	c.apply(fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: intolerant}
spec:
  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [
    {matchExpressions: [{key: kubernetes.io/hostname, operator: NotIn, values: [%s]}]}]}}}
  containers: [{name: main, image: "hotspare.test/testpod:1"}]
`, busy))
	c.kubectl("wait", "pod/intolerant", "--for=condition=Ready", "--timeout=3m")
	node := c.kubectl("get", "pod", "intolerant", "-o", nodeOf)
	c.kubectl("taint", "node", node, "test=now:NoExecute")
	c.kubectl("wait", "pod/intolerant", "--for=delete", "--timeout=3m")
	c.kubectl("taint", "node", node, "test-")
	c.kubectl("rollout", "status", "deployment/web", "--timeout=3m")
}

// testDeletedNodes creates nodes and deletes them while the controllers of the cluster label the first of them.
func testDeletedNodes(t *testing.T, c *cluster) {
	var manifest strings.Builder
	for i := range 60 {
		fmt.Fprintf(&manifest, "apiVersion: v1\nkind: Node\nmetadata: {name: short-lived-%d, labels: {short-lived: yes}}\n---\n", i)
	}
	for range 3 {
		c.apply(strings.ReplaceAll(manifest.String(), "yes", `"yes"`))
		c.kubectl("delete", "nodes", "-l", "short-lived=yes", "--wait=false")
	}
	time.Sleep(3 * time.Second) // what labels nodes has acted by then
	if out := c.kubectl("get", "nodes", "-o", "name"); strings.Contains(out, "short-lived") {
		t.Errorf("nodes that were deleted exist: %s", out)
	}
}

func testAPIFromPod(t *testing.T, c *cluster) {
	const url = "https://kubernetes.default.svc/api/v1/namespaces/default/pods"
	if out, err := c.try(t.Context(), "", "exec", "client", "--", "testpod", "get", url); err == nil || !strings.Contains(out, "403") {
		t.Errorf("the account of the pod has no rights yet: %v\n%s", err, out)
	}
	c.kubectl("create", "rolebinding", "client", "--clusterrole=view", "--serviceaccount=default:default")
	c.eventually(time.Minute, `"kind":"PodList"`, "exec", "client", "--", "testpod", "get", url)
}

func testExec(t *testing.T, c *cluster) {
	if out := c.kubectl("exec", "client", "--", "sh", "-c", "echo hello; hostname"); out != "hello\nclient\n" {
		t.Errorf("exec printed %q", out)
	}
	if out, err := c.try(t.Context(), "from stdin", "exec", "-i", "client", "--", "sh", "-c", "cat; exit 7"); err == nil || !strings.Contains(out, "from stdin") || !strings.Contains(out, "exit code 7") {
		t.Errorf("exec with stdin: %v\n%s", err, out)
	}
	if out := c.kubectl("logs", "deployment/web"); !strings.Contains(out, "serving at :8080") {
		t.Errorf("logs printed %q", out)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("copied"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.kubectl("cp", file, "client:/tmp/file")
	if out := c.kubectl("exec", "client", "--", "cat", "/tmp/file"); out != "copied" {
		t.Errorf("the copy contains %q", out)
	}
}

func testPortForward(t *testing.T, c *cluster) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "kubectl", "port-forward", "service/web", ":80", "--address", "127.0.0.1")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait() //nolint:errcheck // it is killed
	defer cancel()
	line, err := bufio.NewReader(out).ReadString('\n') // Forwarding from 127.0.0.1:PORT -> 8080
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(line)
	response, err := http.Get("http://" + fields[2] + "/hostname") //nolint:noctx // a test
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	body, err := io.ReadAll(response.Body)
	if err != nil || !strings.HasPrefix(string(body), "web-") {
		t.Errorf("the answer is %q: %v", body, err)
	}
}

func testVolumes(t *testing.T, c *cluster) {
	c.apply(`apiVersion: v1
kind: ConfigMap
metadata: {name: config}
data: {key: from-config}
---
apiVersion: v1
kind: Secret
metadata: {name: secret}
stringData: {key: from-secret}
---
apiVersion: v1
kind: Pod
metadata: {name: volumes, labels: {color: blue}}
spec:
  containers:
  - name: main
    image: hotspare.test/testpod:1
    env:
    - {name: FROM_ENV, valueFrom: {configMapKeyRef: {name: config, key: key}}}
    volumeMounts:
    - {name: all, mountPath: /all}
    - {name: empty, mountPath: /empty}
    - {name: memory, mountPath: /memory}
    - {name: host, mountPath: /host}
  - name: second
    image: hotspare.test/testpod:1
    volumeMounts: [{name: empty, mountPath: /empty}]
  volumes:
  - name: all
    projected:
      sources:
      - configMap: {name: config, items: [{key: key, path: config}]}
      - secret: {name: secret, items: [{key: key, path: secret}]}
      - downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}
      - serviceAccountToken: {path: token, audience: somebody}
  - {name: empty, emptyDir: {}}
  - {name: memory, emptyDir: {medium: Memory, sizeLimit: 1Mi}}
  - {name: host, hostPath: {path: /var/lib/shared, type: DirectoryOrCreate}}
`)
	c.kubectl("wait", "pod/volumes", "--for=condition=Ready", "--timeout=3m")
	out := c.kubectl("exec", "volumes", "-c", "main", "--", "sh", "-c",
		`cat /all/config /all/secret /all/labels; echo; wc -c < /all/token; echo $FROM_ENV; echo shared > /empty/file; echo kept > /host/file; grep -c " /memory tmpfs" /proc/mounts`)
	for _, want := range []string{"from-config", "from-secret", `color="blue"`, "\nfrom-config\n1\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	if out := c.kubectl("exec", "volumes", "-c", "second", "--", "cat", "/empty/file"); out != "shared\n" {
		t.Errorf("the second container reads %q", out)
	}
	if _, err := os.Stat("/var/lib/shared"); err == nil {
		t.Error("a hostPath volume is a folder of this computer")
	}
}

func testJob(t *testing.T, c *cluster) {
	c.apply(`apiVersion: batch/v1
kind: Job
metadata: {name: sum}
spec:
  completions: 3
  parallelism: 3
  template:
    spec:
      restartPolicy: Never
      initContainers:
      - {name: before, image: "hotspare.test/testpod:1", command: [sh, -c, "echo 41 > /work/number"], volumeMounts: [{name: work, mountPath: /work}]}
      containers:
      - {name: main, image: "hotspare.test/testpod:1", command: [sh, -c, "echo $(($(cat /work/number)+1))"], volumeMounts: [{name: work, mountPath: /work}]}
      volumes: [{name: work, emptyDir: {}}]
`)
	c.kubectl("wait", "job/sum", "--for=condition=Complete", "--timeout=3m")
	if out := c.kubectl("logs", "job/sum", "-c", "main"); !strings.HasSuffix(out, "42\n") {
		t.Errorf("the Job printed %q", out)
	}
}

// testLimits tests that a container that uses too much memory is killed, and nothing else is.
func testLimits(t *testing.T, c *cluster) {
	c.apply(`apiVersion: v1
kind: Pod
metadata: {name: hog}
spec:
  restartPolicy: Never
  containers:
  - name: main
    image: hotspare.test/testpod:1
    command: [sh, -c, "dd if=/dev/zero of=/dev/null bs=128M count=1"]
    resources: {limits: {memory: 32Mi}}
`)
	c.eventually(60*time.Second, "OOMKilled", "get", "pod", "hog", "-o", "jsonpath={.status.containerStatuses[0].state.terminated.reason}")
	if out := c.kubectl("get", "pods", "-l", "app=web", "-o", "jsonpath={.items[*].status.containerStatuses[0].restartCount}"); out != "0 0" {
		t.Errorf("the other pods have restarted: %s", out)
	}
}

func TestClustersAreIsolated(t *testing.T) {
	t.Parallel()
	one, other := shared.newCluster(t, "one", 1), shared.newCluster(t, "other", 1)
	for _, c := range []*cluster{one, other} {
		c.apply(`apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - {name: main, image: "hotspare.test/testpod:1", command: [sh, -c, "hostname > /name; exec testpod serve :8080"]}
`)
		c.kubectl("wait", "pod/web", "--for=condition=Ready", "--timeout=3m")
		c.kubectl("exec", "web", "--", "sh", "-c", "echo "+c.name+" > /cluster")
	}
	// Both pods have the same address; each cluster reaches its own.
	addresses := map[string]bool{}
	for _, c := range []*cluster{one, other} {
		address := c.kubectl("get", "pod", "web", "-o", "jsonpath={.status.podIP}")
		addresses[address] = true
		if out := c.kubectl("exec", "web", "--", "testpod", "get", "http://"+address+":8080/cluster"); out != c.name+"\n" {
			t.Errorf("cluster %s reaches %s", c.name, out)
		}
	}
	if len(addresses) != 1 {
		t.Logf("the pods have different addresses: %v", addresses)
	}
	for _, c := range []*cluster{one, other} {
		for _, target := range []*cluster{one, other} {
			server := target.kubectl("config", "view", "-o", "jsonpath={.clusters[0].cluster.server}") // https://127.0.0.1:PORT
			_, port, _ := strings.Cut(strings.TrimPrefix(server, "https://"), ":")
			for _, host := range []string{"127.0.0.1", "10.128.0.1", "169.254.169.254"} {
				url := fmt.Sprintf("http://%s:%s/", host, port)
				if out, err := c.try(t.Context(), "", "exec", "web", "--", "testpod", "get", url); err == nil || strings.Contains(out, "400") {
					t.Errorf("a pod of %s reaches the API of %s at %s: %s", c.name, target.name, url, out)
				}
			}
		}
	}
}

// testProcessLimit starts processes in a pod until it cannot start more.
func testProcessLimit(t *testing.T, c *cluster) {
	c.apply(`apiVersion: v1
kind: Pod
metadata: {name: bomb}
spec:
  restartPolicy: Never
  containers:
  - name: main
    image: hotspare.test/testpod:1
    command: [sh, -c, "i=0; while [ $i -lt 6000 ]; do sleep 1000 & i=$((i+1)); done; echo all of them"]
`)
	c.eventually(2*time.Minute, "Failed", "get", "pod", "bomb", "-o", "jsonpath={.status.phase}")
	if out := c.kubectl("logs", "bomb"); !strings.Contains(out, "can't fork") || strings.Contains(out, "all of them") {
		t.Errorf("the pod printed:\n%s", out)
	}
	if out := c.kubectl("exec", "client", "--", "echo", "alive"); out != "alive\n" {
		t.Errorf("another pod printed %q", out)
	}
}
