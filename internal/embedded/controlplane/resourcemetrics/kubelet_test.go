package resourcemetrics

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// start is the time at which the containers of the tests started.
var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// fakeKubelet serves measurements as a kubelet does.
type fakeKubelet struct {
	server *httptest.Server

	mu       sync.Mutex
	answer   string // "" is an error
	requests int
}

func newFakeKubelet(t *testing.T) *fakeKubelet {
	t.Helper()
	k := &fakeKubelet{}
	k.server = httptest.NewTLSServer(http.HandlerFunc(k.serve))
	t.Cleanup(k.server.Close)
	return k
}

func (k *fakeKubelet) serve(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.requests++
	if r.URL.Path != "/metrics/resource" || k.answer == "" {
		http.Error(w, "no such metrics", http.StatusNotFound)
		return
	}
	fmt.Fprint(w, k.answer)
}

// requested returns how many requests the kubelet has received.
func (k *fakeKubelet) requested() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.requests
}

// measure sets the answer of the kubelet to what it measures at an age of its containers.
func (k *fakeKubelet) measure(age time.Duration, containers ...measurement) {
	var out strings.Builder
	now := start.Add(age).UnixMilli()
	node := measurement{cpu: age.Seconds(), memory: 1 << 30}
	fmt.Fprintf(&out, "node_cpu_usage_seconds_total %g %d\nnode_memory_working_set_bytes %d %d\n", node.cpu, now, node.memory, now)
	for _, c := range containers {
		labels := fmt.Sprintf(`{container="main",namespace="ns",pod=%q}`, c.pod)
		fmt.Fprintf(&out, "container_cpu_usage_seconds_total%s %g %d\n", labels, c.cpu, now)
		fmt.Fprintf(&out, "container_memory_working_set_bytes%s %d %d\n", labels, c.memory, now)
		fmt.Fprintf(&out, "container_start_time_seconds%s %d\n", labels, start.Unix())
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.answer = out.String()
}

// fail lets the kubelet answer with an error.
func (k *fakeKubelet) fail() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.answer = ""
}

// measurement is what a pod's container has used since its start.
type measurement struct {
	pod    string
	cpu    float64 // seconds
	memory int64
}

// node returns the Node of the kubelet.
func (k *fakeKubelet) node(name string, conditions ...corev1.NodeCondition) *corev1.Node {
	at := netip.MustParseAddrPort(k.server.Listener.Addr().String())
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"name": name}, Annotations: map[string]string{"metrics.k8s.io/resource-metrics-path": "/exec"}},
		Status: corev1.NodeStatus{
			Conditions:      conditions,
			Addresses:       []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "unresolvable.invalid"}, {Type: corev1.NodeInternalIP, Address: at.Addr().String()}},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: int32(at.Port())}},
		},
	}
}

// Conditions of nodes.
var (
	ready     = corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue}
	notReady  = corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}
	simulated = corev1.NodeCondition{Type: "Simulated", Status: corev1.ConditionTrue}
)
