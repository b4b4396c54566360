package cli

import (
	"context"
	"net"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"hotspare.io/hotspare/internal/embedded/machine"
)

func TestTheDemoSkipsTheWebServerWhereNodesThatTakePodsSimulateThem(t *testing.T) {
	simulated := func(message string, taints ...corev1.Taint) corev1.Node {
		n := corev1.Node{Spec: corev1.NodeSpec{Taints: taints}}
		n.Status.Conditions = []corev1.NodeCondition{{Type: machine.SimulatedPods, Status: corev1.ConditionTrue, Message: message}}
		return n
	}
	master := simulated("only workers run containers", corev1.Taint{Key: "node-role.kubernetes.io/master", Effect: corev1.TaintEffectNoSchedule})
	if got := simulationCause([]corev1.Node{master, {}}); got != "" {
		t.Errorf("with a worker that runs containers, it says %q", got)
	}
	if got := simulationCause([]corev1.Node{master, simulated("containerd is missing")}); got != "containerd is missing" {
		t.Errorf("with a worker that runs none, it says %q", got)
	}
}

func TestTheAddressOfAForwardedPort(t *testing.T) {
	if got := forwardedAddress("Forwarding from 127.0.0.1:41231 -> 8080"); got != "127.0.0.1:41231" {
		t.Errorf("got %q", got)
	}
}

func TestTheWebServerOfTheDemoNamesItsPodAndCountsRequests(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serveDemo(ctx, listener) }()
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"request 1.", "request 2."} {
		page, err := fetchPage(t.Context(), "http://"+listener.Addr().String())
		if err != nil || !strings.Contains(page, want) || !strings.Contains(page, name) {
			t.Errorf("the page is %q, %v; want %s of %s", page, err, want, name)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("stopping it: %v", err)
	}
}

func TestACommandOfTheDemoIsShownAsAShellReadsIt(t *testing.T) {
	words := []string{"image", "load", "/opt/hot spare/it's", "--name", "example.com/a:1", "", "$HOME"}
	want := `KUBECONFIG='/tmp/a b' hotspare image load '/opt/hot spare/it'\''s' --name example.com/a:1 '' '$HOME'`
	if got := formatCommandLine("hotspare", words, []string{"KUBECONFIG=/tmp/a b"}); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}
