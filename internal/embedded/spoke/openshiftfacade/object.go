package openshiftfacade

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// machineNamespace is the namespace of OpenShift's Machines.
const machineNamespace = "openshift-machine-api"

// Roles of a machine in OpenShift's labels.
const (
	master = "master"
	worker = "worker"
)

// operatorNames are some of the ClusterOperators that every OpenShift cluster has.
var operatorNames = []string{"authentication", "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "machine-approver"}

// A status is the status of an object, as JSON.
type status = map[string]any

// newNodeRoleLabels returns the apply configuration that gives the node its role. A node must not
// be able to set its own role, because it could make itself a master. With the UID, the API server refuses to create a
// node that was deleted in the meantime.
func newNodeRoleLabels(node *corev1.Node, role string) *unstructured.Unstructured {
	labels := map[string]any{"node-role.kubernetes.io/" + role: ""}
	if role == master {
		labels["node-role.kubernetes.io/control-plane"] = ""
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "Node",
		"metadata":   map[string]any{"name": node.Name, "uid": string(node.UID), "labels": labels},
	}}
}

// newMachineObject returns the Machine of the node.
func newMachineObject(node *corev1.Node, role, infraID string) *unstructured.Unstructured {
	m := machineKind.newEmptyObject(node.Name)
	m.SetLabels(map[string]string{
		"machine.openshift.io/cluster-api-cluster":      infraID,
		"machine.openshift.io/cluster-api-machine-role": role,
		"machine.openshift.io/cluster-api-machine-type": role,
	})
	var addresses []any
	for _, a := range node.Status.Addresses {
		addresses = append(addresses, map[string]any{"type": string(a.Type), "address": a.Address})
	}
	m.Object["status"] = status{
		"phase":     "Running",
		"addresses": addresses,
		"nodeRef":   map[string]any{"kind": "Node", "name": node.Name, "uid": string(node.UID)},
	}
	return m
}

// versionStatus returns the status of the ClusterVersion of a cluster that was installed with
// version at the time since.
func versionStatus(version, since string) status {
	return status{
		"desired":            map[string]any{"version": version},
		"observedGeneration": int64(1),
		"history": []any{map[string]any{
			"state": "Completed", "version": version, "verified": false,
			"startedTime": since, "completionTime": since,
		}},
		"conditions": []any{
			newStatusCondition("Available", "True", since),
			newStatusCondition("Progressing", "False", since),
			newStatusCondition("Failing", "False", since),
		},
	}
}

// operatorStatus returns the status of a ClusterOperator that has been available since the time
// since.
func operatorStatus(version, since string) status {
	return status{
		"versions": []any{map[string]any{"name": "operator", "version": version}},
		"conditions": []any{
			newStatusCondition("Available", "True", since),
			newStatusCondition("Progressing", "False", since),
			newStatusCondition("Degraded", "False", since),
			newStatusCondition("Upgradeable", "True", since),
		},
	}
}

func newStatusCondition(kind, value, since string) map[string]any {
	return map[string]any{"type": kind, "status": value, "reason": "AsExpected", "lastTransitionTime": since}
}
