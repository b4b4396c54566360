//go:build containers

package containers

import (
	"strings"
	"testing"
	"time"
)

// busyManifest is a Deployment that always uses its limit of CPU, which is more than its
// HorizontalPodAutoscaler wants.
const busyManifest = `apiVersion: apps/v1
kind: Deployment
metadata: {name: busy}
spec:
  replicas: 1
  selector: {matchLabels: {app: busy}}
  template:
    metadata: {labels: {app: busy}}
    spec:
      containers:
      - name: main
        image: hotspare.test/testpod:1
        command: [sh, -c, "while :; do :; done"]
        resources: {requests: {cpu: 20m}, limits: {cpu: 100m}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: busy}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: busy}
  minReplicas: 1
  maxReplicas: 2
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 100}}}]
`

func testTop(t *testing.T, c *cluster) {
	c.apply(`apiVersion: v1
kind: Pod
metadata: {name: measured}
spec:
  containers: [{name: main, image: "hotspare.test/testpod:1"}]
`)
	c.kubectl("wait", "pod/measured", "--for=condition=Ready", "--timeout=3m")
	began := time.Now()
	c.eventually(time.Minute, "Mi", "top", "pod", "measured", "--no-headers")
	t.Logf("a pod has metrics %s after it is ready", time.Since(began).Round(100*time.Millisecond))
	nodes := map[string]bool{} // whether it has metrics
	for line := range strings.Lines(c.kubectl("top", "nodes", "--no-headers")) {
		fields := strings.Fields(line)
		_, _, isWorker := strings.Cut(fields[0], "-worker-")
		if nodes[fields[0]] = fields[1] != "<unknown>"; nodes[fields[0]] != isWorker {
			t.Errorf("the node whose pods are simulated has no metrics, all others do: %s", line)
		}
	}
	if len(nodes) != 3 {
		t.Errorf("top printed %d nodes", len(nodes))
	}

	c.kubectl("create", "rolebinding", "viewer", "--clusterrole=view", "--user=viewer")
	c.eventually(time.Minute, "measured", "top", "pods", "--as=viewer")
	for _, stranger := range [][]string{
		{"top", "pods", "--as=stranger"},
		{"top", "pods", "--all-namespaces", "--as=viewer"},
		{"exec", "client", "--", "testpod", "get", "https://kubernetes.default.svc/apis/metrics.k8s.io/v1beta1/pods"},
		{"exec", "client", "--", "testpod", "get", "https://10.128.0.1:6443/apis/metrics.k8s.io/v1beta1/pods"}, // without a token
	} {
		if out, err := c.try(t.Context(), "", stranger...); err == nil || !strings.Contains(strings.ToLower(out), "forbidden") {
			t.Errorf("%q: %v\n%s", stranger, err, out)
		}
	}
}

func testAutoscaling(t *testing.T, c *cluster) {
	began := time.Now()
	c.eventually(90*time.Second, "2", "get", "deployment", "busy", "-o", "jsonpath={.status.replicas}")
	t.Logf("waited for the second replica for %s", time.Since(began).Round(100*time.Millisecond))
}

// testOwnMetricsServer registers a server, as the manifest and the chart of metrics-server do, and
// deletes it.
func testOwnMetricsServer(t *testing.T, c *cluster) {
	const apiService = `apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.metrics.k8s.io}
spec:
  service: {name: metrics-server, namespace: kube-system}
  group: metrics.k8s.io
  version: v1beta1
  insecureSkipTLSVerify: true
  groupPriorityMinimum: 100
  versionPriority: 100
`
	create := func(manifest string) {
		if out, err := c.try(t.Context(), manifest, "create", "-f", "-"); err != nil {
			t.Fatalf("hotspare's own API is in the way: %v\n%s", err, out)
		}
	}
	create(`apiVersion: v1
kind: Pod
metadata: {name: metrics-server, namespace: kube-system, labels: {app: metrics-server}}
spec:
  containers:
  - name: main
    image: hotspare.test/testpod:1
    command: [testpod, answer, ":8443", theirs]
    readinessProbe: {tcpSocket: {port: 8443}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: metrics-server, namespace: kube-system}
spec:
  selector: {app: metrics-server}
  ports: [{name: https, port: 443, targetPort: 8443}]
`)
	create(apiService)
	c.eventually(60*time.Second, "theirs", "get", "--raw", "/apis/metrics.k8s.io/v1beta1/nodes")
	c.kubectl("wait", "apiservice/v1beta1.metrics.k8s.io", "--for=condition=Available", "--timeout=3m")
	if out := c.kubectl("get", "--raw", "/apis/metrics.k8s.io/v1beta1/nodes"); out != "theirs\n" {
		t.Errorf("an available metrics-server is not asked: %s", out)
	}
	if _, err := c.try(t.Context(), apiService, "delete", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	c.eventually(30*time.Second, `"kind":"NodeMetricsList"`, "get", "--raw", "/apis/metrics.k8s.io/v1beta1/nodes")
	c.kubectl("delete", "-n", "kube-system", "service/metrics-server", "pod/metrics-server", "--now")
}
