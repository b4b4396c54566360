package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// installKind is a kind of another installer, as small as the contract allows.
const installKind = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: imageclusterinstalls.extensions.hive.openshift.io
spec:
  group: extensions.hive.openshift.io
  names: {kind: ImageClusterInstall, plural: imageclusterinstalls}
  scope: Namespaced
  versions:
  - name: v1alpha1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// TestAnotherInstallerMakesACluster is what the assisted service does: it writes the
// names of what it makes and its conditions on an object of its own.
func TestAnotherInstallerMakesACluster(t *testing.T) {
	h := shared(t)
	space := h.namespace(t)
	cd := &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "single-node"}}
	h.apply(t, fmt.Sprintf(`
apiVersion: hive.openshift.io/v1
kind: ClusterDeployment
metadata: {name: single-node, namespace: %s}
spec:
  baseDomain: hive.example.com
  clusterInstallRef: {group: extensions.hive.openshift.io, kind: ImageClusterInstall, name: ici, version: v1alpha1}
  clusterName: test-cluster
  platform: {agentBareMetal: {agentSelector: {matchLabels: {bla: aaa}}}}
  pullSecretRef: {name: pull-secret}
`, space))

	t.Log("before the other installer is there, the cluster says what is missing")
	says(t, h.conditioned(t, cd, hivev1.ClusterRequirementsMet, corev1.ConditionFalse).Message, "which this hub does not have")
	h.apply(t, installKind)
	h.kubectl(t, "wait", "--for=condition=Established", "crd/imageclusterinstalls.extensions.hive.openshift.io", "--timeout=4m")

	object := fmt.Sprintf(`{"apiVersion":"extensions.hive.openshift.io/v1alpha1","kind":"ImageClusterInstall","metadata":{"name":"ici","namespace":%q}}`, space)
	eventually(t, "the API server knows the kind", func(context.Context) error {
		if r := h.apply(t, object); r.code != 0 {
			return errors.New(r.all())
		}
		return nil
	})
	h.kubectl(t, "annotate", "cd", "-n", space, "single-node", "woken=by-the-test") // else it is looked at within a minute
	h.conditioned(t, cd, hivev1.ClusterInstallCompleted, corev1.ConditionUnknown)

	t.Log("from now on it is watched: what it says is told at once")
	tell := func(conditions string) {
		h.kubectl(t, "patch", "imageclusterinstalls", "-n", space, "ici", "--subresource=status", "--type=merge", "-p", `{"status":{"conditions":[`+conditions+`]}}`)
	}
	tell(`{"type":"RequirementsMet","status":"False","reason":"HostValidationFailed","message":"host has no disk"}`)
	says(t, h.conditioned(t, cd, hivev1.ClusterRequirementsMet, corev1.ConditionFalse).Message, "ImageClusterInstall ici reports unmet requirements: host has no disk.")
	tell(`{"type":"RequirementsMet","status":"True","reason":"Ok","message":"ok"},{"type":"Completed","status":"False","reason":"InProgress","message":"42 %"}`)
	h.conditioned(t, cd, hivev1.ClusterRequirementsMet, corev1.ConditionTrue)
	h.kubectl(t, "patch", "imageclusterinstalls", "-n", space, "ici", "--type=merge", "-p",
		`{"spec":{"clusterMetadata":{"clusterID":"4711","infraID":"test-cluster-x","adminKubeconfigSecretRef":{"name":"k"}}}}`)
	tell(`{"type":"Completed","status":"True","reason":"Done","message":"done"}`)
	eventually(t, "the cluster is installed", func(context.Context) error {
		got := get(t, h, cd)
		if !got.Spec.Installed || got.Spec.ClusterMetadata.InfraID != "test-cluster-x" || got.Status.InstalledTimestamp == nil {
			return fmt.Errorf("installed %v as %+v", got.Spec.Installed, got.Spec.ClusterMetadata)
		}
		return nil
	})
	if row := h.kubectl(t, "get", "cd", "-n", space, "single-node"); !strings.Contains(row, "Provisioned") {
		t.Errorf("its row is\n%s", row)
	}

	t.Log("its cluster is the other installer's: it goes without being destroyed")
	h.delete(t, cd)
	h.gone(t, cd)
}
