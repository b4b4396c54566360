package azure

import (
	"strings"
	"testing"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/fault"
)

func providerID(group, name string) string {
	return "azure:///subscriptions/" + subscription + "/resourceGroups/" + group + "/providers/Microsoft.Compute/virtualMachines/" + name
}

func TestSelectedMachinesAreControlledByProviderID(t *testing.T) {
	l := newLab(t)
	ref := l.cluster(t, 1) // the infraID marks these, and they are not selected
	ref.Metadata = nil     // Cluster API has no resource group in the metadata
	l.add("one", "", "control-plane-x", "running")
	l.add("two", "", "worker-y", "running")
	l.add("one", "", "worker-y", "running") // the same name in another resource group
	a, err := l.ForInstances([]cloud.Instance{
		{ProviderID: providerID("one", "control-plane-x"), Name: "cp-0", ControlPlane: true},
		{ProviderID: strings.ToLower(providerID("two", "worker-y")), Name: "md-0"},
		{ProviderID: providerID("two", "never-was"), Name: "md-1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 6 {
		if err := a.Stop(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
		l.step()
	}
	ms, err := a.Observe(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	if ms.String() != "cp-0 Stopped, md-0 Stopped" || !ms[0].ControlPlane || ms[1].ProviderID != strings.ToLower(providerID("two", "worker-y")) {
		t.Errorf("got %+v", ms)
	}
	if want := "control-plane-x deallocated, master-0 running, worker-eastus0-0000 running, worker-y deallocated, worker-y running"; l.states() != want {
		t.Errorf("got %s, want %s", l.states(), want)
	}
	for range 6 {
		if err := a.Start(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
		l.step()
	}
	if ms, err = a.Observe(t.Context(), ref); err != nil || !ms.AllIn(cloud.Running) {
		t.Errorf("after the start: %v, %v", ms, err)
	}
}

func TestSelectionsThatCannotWorkAreDenied(t *testing.T) {
	l := newLab(t)
	for id, want := range map[string]string{
		"aws:///a/i-1": "not that of a virtual machine of Azure",
		strings.Replace(providerID("one", "a/virtualMachines/0"), "/virtualMachines/", "/virtualMachineScaleSets/", 1): "instance of a scale set",
		providerID("one", "a/b"): "not that of a virtual machine of Azure",
	} {
		if _, err := l.ForInstances([]cloud.Instance{{Name: "md-0", ProviderID: id}}); fault.KindOf(err) != fault.Denied || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", id, err)
		}
	}
	a, err := l.ForInstances([]cloud.Instance{{Name: "md-0", ProviderID: strings.Replace(providerID("one", "n"), subscription, "other", 1)}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Observe(t.Context(), refTo(infra, "")); fault.KindOf(err) != fault.Denied || !strings.Contains(err.Error(), "is in subscription other") {
		t.Errorf("a machine of another subscription: %v", err)
	}
}
