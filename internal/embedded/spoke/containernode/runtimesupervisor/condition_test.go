package runtimesupervisor

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"

	"hotspare.io/hotspare/internal/embedded/machine"
)

var noon = metav1.NewTime(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))

func condition(status corev1.ConditionStatus, message string) corev1.NodeCondition {
	return corev1.NodeCondition{Type: machine.ContainerRuntimeUnhealthy, Status: status, Message: message}
}

func TestTheConditionOfANode(t *testing.T) {
	const problem = "containerd ended (exit status 1): no such plugin"
	for name, c := range map[string]struct {
		before  []corev1.NodeCondition
		problem string
		want    string
	}{
		"no problem, and no condition":   {nil, "", ""},
		"the first problem":              {nil, problem, "True ContainerdEnded " + problem},
		"the same problem":               {[]corev1.NodeCondition{condition("True", problem)}, problem, ""},
		"another problem":                {[]corev1.NodeCondition{condition("True", "another")}, problem, "True ContainerdEnded " + problem},
		"the problem has gone":           {[]corev1.NodeCondition{condition("True", problem)}, "", "False ContainerdRuns containerd runs"},
		"the problem had gone":           {[]corev1.NodeCondition{condition("False", "containerd runs")}, "", ""},
		"the problem is there once more": {[]corev1.NodeCondition{condition("False", "containerd runs")}, problem, "True ContainerdEnded " + problem},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			next, changed := nextCondition(append(c.before, corev1.NodeCondition{Type: corev1.NodeReady}), c.problem, noon)
			if changed {
				got = string(next.Status) + " " + next.Reason + " " + next.Message
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestTheProblemOfContainerdIsAConditionOfItsNode(t *testing.T) {
	client := fake.NewClientset()
	c := clocktesting.NewFakeClock(noon.Time)
	h := NewHealth()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); h.Publish(ctx, client, "worker", c) }()
	h.SetProblem("containerd ended (exit status 1): no such plugin")
	for !c.HasWaiters() { // the node does not exist yet
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: "True"}}}}
	if _, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	await := func(want ...string) {
		t.Helper()
		var got []string
		for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
			got = nil
			now, err := client.CoreV1().Nodes().Get(ctx, "worker", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, one := range now.Status.Conditions {
				got = append(got, string(one.Type)+" "+string(one.Status)+" "+one.Message)
			}
			slices.Sort(got)
			if cmp.Equal(want, got) {
				return
			}
			c.Step(retryDelay)
		}
		t.Fatalf("the conditions differ (-want +got):\n%s", cmp.Diff(want, got))
	}
	await("ContainerRuntimeUnhealthy True containerd ended (exit status 1): no such plugin", "Ready True ")
	h.SetProblem("")
	await("ContainerRuntimeUnhealthy False containerd runs", "Ready True ")
	cancel()
	<-done
}
