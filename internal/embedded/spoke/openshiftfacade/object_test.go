package openshiftfacade

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestMachine(t *testing.T) {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "c1-worker-0", UID: "u"},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: "127.0.0.1"},
			{Type: corev1.NodeInternalDNS, Address: "c1-worker-0"},
		}},
	}
	m := newMachineObject(node, worker, "c1")
	if m.GetName() != "c1-worker-0" || m.GetLabels()["machine.openshift.io/cluster-api-cluster"] != "c1" {
		t.Errorf("it is %s with %v", m.GetName(), m.GetLabels())
	}
	want := status{
		"phase": "Running",
		"addresses": []any{
			map[string]any{"type": "InternalIP", "address": "127.0.0.1"},
			map[string]any{"type": "InternalDNS", "address": "c1-worker-0"},
		},
		"nodeRef": map[string]any{"kind": "Node", "name": "c1-worker-0", "uid": "u"},
	}
	if diff := cmp.Diff(want, m.Object["status"]); diff != "" {
		t.Error(diff)
	}
}

func TestRoles(t *testing.T) {
	for role, want := range map[string]map[string]string{
		worker: {"node-role.kubernetes.io/worker": ""},
		master: {"node-role.kubernetes.io/master": "", "node-role.kubernetes.io/control-plane": ""},
	} {
		labels := newNodeRoleLabels(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u"}}, role)
		if diff := cmp.Diff(want, labels.GetLabels()); diff != "" || labels.GetUID() != "u" {
			t.Errorf("for UID %q: %s", labels.GetUID(), diff)
		}
	}
}

// The dynamic client accepts only JSON types.
func TestStatusesCanBeCopied(t *testing.T) {
	for _, s := range []status{versionStatus("4.18.20", "t"), operatorStatus("4.18.20", "t")} {
		(&unstructured.Unstructured{Object: s}).DeepCopy()
	}
}

func TestInstalledVersion(t *testing.T) {
	s := versionStatus("4.18.20", "2026-11-21T12:00:00Z")
	got, _, err := unstructured.NestedString(s, "desired", "version")
	if err != nil || got != "4.18.20" {
		t.Errorf("desired %q: %v", got, err)
	}
	history, _, err := unstructured.NestedSlice(s, "history")
	if err != nil || len(history) != 1 || history[0].(map[string]any)["state"] != "Completed" {
		t.Errorf("history %v: %v", history, err)
	}
}
