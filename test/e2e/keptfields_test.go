package e2e

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// A client with Hive's own types writes whole objects without the fields that those types
// lack. It can do so as soon as the hub says that it is ready, and the fields are kept.
func TestAHubThatIsReadyKeepsTheFieldsThatHivesTypesLack(t *testing.T) {
	h := own(t, "--hub-only")
	timeout := hivev1.Duration("5m")
	pool, cd := fakePool("default", "pool", 0, 0), shortLived("default", "cluster")
	pool.Spec.PowerstateTransitionToRunningTimeout, cd.Spec.PowerstateTransitionToRunningTimeout = &timeout, &timeout
	h.create(t, pool, cd)
	h.keepsTimeout(t, "ClusterPool", pool)
	h.keepsTimeout(t, "ClusterDeployment", cd)
	if err := h.down(); err != nil {
		t.Fatal(err)
	}
	h.restart(t)
	h.keepsTimeout(t, "ClusterPool", pool)
	h.keepsTimeout(t, "ClusterDeployment", cd)

	policies := h.kubectl(t, "get", "mutatingadmissionpolicies,mutatingadmissionpolicybindings", "-o", "name")
	if !strings.Contains(policies, "kept-spec") || strings.Contains(policies, "probe") {
		t.Errorf("hotspare up leaves other policies than those of its manifests:\n%s", policies)
	}
}

// keepsTimeout writes an object back without a timeout that is stored in it.
func (h *hub) keepsTimeout(t *testing.T, kind string, o client.Object) {
	t.Helper()
	const field = "powerstateTransitionToRunningTimeout"
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(hivev1.GroupVersion.WithKind(kind))
	u.SetNamespace(o.GetNamespace())
	u.SetName(o.GetName())
	get(t, h, u)
	stored, _, _ := unstructured.NestedString(u.Object, "spec", field)
	unstructured.RemoveNestedField(u.Object, "spec", field)
	if err := h.Update(t.Context(), u); err != nil {
		t.Errorf("writing %s %s: %v", kind, o.GetName(), err)
		return
	}
	if kept, _, _ := unstructured.NestedString(u.Object, "spec", field); stored == "" || kept != stored {
		t.Errorf("%s %s had the timeout %q, and has %q", kind, o.GetName(), stored, kept)
	}
}
