package power

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
)

// Two people adopt the same cluster in two namespaces: one of them decides about its power.
func TestOnlyTheFirstAdopterStopsTheMachines(t *testing.T) {
	h := newHub(t)
	h.until("Running")
	h.edit(func(cd *hivev1.ClusterDeployment) { cd.Spec.ClusterMetadata.ClusterID = "id" })
	first := newCluster(h.sim.clock.Now())
	first.Namespace, first.Name, first.UID = "first", "first", "first" // less than the UID of the other
	first.Spec.ClusterMetadata.ClusterID = "id"
	if err := h.Client.Create(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	h.edit(wants(hivev1.PowerHibernating))
	for range 5 {
		h.pass()
	}
	for _, m := range h.vms {
		if m.State != cloud.Running {
			t.Errorf("machine %s is %s", m.Name, m.State)
		}
	}
	said := ""
	for _, c := range h.get().Status.Conditions {
		said += c.Message + "\n"
	}
	if !strings.Contains(said, "ClusterDeployment first/first manages the same cluster") {
		t.Errorf("the conditions do not name the other ClusterDeployment:\n%s", said)
	}
	if err := h.Client.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	h.until("Hibernating")
}

// Anybody can write the infraID of another cluster into a ClusterDeployment of theirs.
func TestMachinesOfAClusterOfAPoolAreNotMovedFromElsewhere(t *testing.T) {
	h := newHub(t)
	h.until("Running")
	victim := newCluster(h.sim.clock.Now())
	victim.Namespace, victim.Name, victim.UID = "victim", "victim", "victim"
	victim.Spec.ClusterPoolRef = &hivev1.ClusterPoolReference{Namespace: "pools", PoolName: "p"}
	home := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "victim", Labels: map[string]string{
		hivev1.LabelPoolName: "p", hivev1.LabelPoolNamespace: "pools",
	}}}
	if err := errors.Join(h.Client.Create(t.Context(), home), h.Client.Create(t.Context(), victim)); err != nil {
		t.Fatal(err)
	}
	h.edit(wants(hivev1.PowerHibernating))
	for range 5 {
		h.pass()
	}
	for _, m := range h.vms {
		if m.State != cloud.Running {
			t.Errorf("machine %s is %s", m.Name, m.State)
		}
	}
	said := ""
	for _, c := range h.get().Status.Conditions {
		said += c.Message + "\n"
	}
	if !strings.Contains(said, "infraID infra belongs to ClusterDeployment victim/victim") {
		t.Errorf("the conditions do not say whose machines they are:\n%s", said)
	}

	if err := h.Client.Delete(t.Context(), victim); err != nil {
		t.Fatal(err)
	}
	h.until("Hibernating")
}
