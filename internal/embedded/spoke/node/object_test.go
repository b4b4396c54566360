package node

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	local "hotspare.io/hotspare/internal/embedded/machine"
)

func readiness(s corev1.NodeStatus) corev1.NodeCondition {
	for _, c := range s.Conditions {
		if c.Type == corev1.NodeReady {
			return c
		}
	}
	return corev1.NodeCondition{}
}

func TestStatus(t *testing.T) {
	m := bootInfo{name: "n", bootID: "1", port: 10250}
	first, _ := m.nextNodeStatus(corev1.NodeStatus{}, noon)
	later := func(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(d)) }
	lost := *first.DeepCopy()
	for i := range lost.Conditions {
		lost.Conditions[i].Status = corev1.ConditionUnknown
	}
	for name, c := range map[string]struct {
		old     corev1.NodeStatus
		m       bootInfo
		now     metav1.Time
		changed bool
		since   metav1.Time // when Ready last changed
	}{
		"a new node tells":                          {corev1.NodeStatus{}, m, noon, true, noon},
		"nothing new is not told":                   {first, m, later(time.Second), false, noon},
		"now and then it is told nevertheless":      {first, m, later(time.Minute), true, noon},
		"a node that was called dead contradicts":   {lost, m, later(time.Second), true, later(time.Second)},
		"another boot is told":                      {first, bootInfo{"n", "2", 10250, ""}, later(time.Second), true, noon},
		"another port is told, since logs go there": {first, bootInfo{"n", "1", 10251, ""}, later(time.Second), true, noon},
	} {
		t.Run(name, func(t *testing.T) {
			got, changed := c.m.nextNodeStatus(c.old, c.now)
			if changed != c.changed {
				t.Errorf("changed: %v", changed)
			}
			ready := readiness(got)
			if ready.Status != corev1.ConditionTrue || !ready.LastTransitionTime.Equal(&c.since) {
				t.Errorf("ready: %v", ready)
			}
			if changed && !ready.LastHeartbeatTime.Equal(&c.now) {
				t.Errorf("heartbeat: %v", ready)
			}
		})
	}
}

func TestStatusKeepsWhatOthersSay(t *testing.T) {
	other := corev1.NodeCondition{Type: "Other", Status: corev1.ConditionTrue}
	got, _ := bootInfo{}.nextNodeStatus(corev1.NodeStatus{Conditions: []corev1.NodeCondition{other}}, noon)
	if got.Conditions[0].Type != "Other" || len(got.Conditions) != 1+len(bootInfo{}.nodeConditions()) {
		t.Errorf("%v", got.Conditions)
	}
}

func TestTheStatusSaysWhyPodsAreSimulated(t *testing.T) {
	for cause, want := range map[string]corev1.NodeCondition{
		"": {Reason: "ContainersNotRequested", Message: "the nodes of this local cluster only report that pods run"},
		"runc is missing: install it": {
			Reason:  "ContainersUnavailable",
			Message: "the nodes of this local cluster only report that pods run, because runc is missing: install it",
		},
	} {
		status, _ := bootInfo{simulationCause: cause}.nextNodeStatus(corev1.NodeStatus{}, noon)
		got := status.Conditions[len(status.Conditions)-1]
		if got.Type != local.SimulatedPods || got.Status != corev1.ConditionTrue || got.Reason != want.Reason || got.Message != want.Message {
			t.Errorf("cause %q: %+v", cause, got)
		}
	}
}

func TestOnlyNodesThatRunContainersInControlGroupsMeasurePods(t *testing.T) {
	simulated, _ := bootInfo{}.nextNodeStatus(corev1.NodeStatus{}, noon)
	for name, tc := range map[string]struct {
		conditions []corev1.NodeCondition
		labels     map[string]string
		want       bool
	}{
		"a node of this package":                   {simulated.Conditions, nil, false},
		"another node":                             {[]corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}, nil, true},
		"another node, which says that it does so": {[]corev1.NodeCondition{{Type: local.SimulatedPods, Status: corev1.ConditionFalse}}, nil, true},
		"another node, without control groups":     {nil, map[string]string{local.LabelUnmeasuredPods: ""}, false},
	} {
		if got := MeasuresPods(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: tc.labels}, Status: corev1.NodeStatus{Conditions: tc.conditions}}); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
