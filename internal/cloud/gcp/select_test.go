package gcp

import (
	"fmt"
	"strings"
	"testing"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/fault"
)

func providerID(zone, name string) string {
	return fmt.Sprintf("gce://%s/%s/%s", projectID, zone, name)
}

func TestSelectedInstancesAreControlledByProviderID(t *testing.T) {
	l := newLab(t)
	ref := l.cluster(t, 1) // the infraID marks these, and they are not selected
	l.add("", "control-plane-x", zones[0], "RUNNING")
	l.add("", "worker-y", zones[1], "RUNNING")
	l.add("", "worker-y", zones[2], "RUNNING") // the same name in another zone
	a, err := l.ForInstances([]cloud.Instance{
		{ProviderID: providerID(zones[0], "control-plane-x"), Name: "cp-0", ControlPlane: true},
		{ProviderID: providerID(zones[1], "worker-y"), Name: "md-0"},
		{ProviderID: providerID(zones[1], "never-was"), Name: "md-1"},
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
	if ms.String() != "cp-0 Stopped, md-0 Stopped" || ms[1].ProviderID != providerID(zones[1], "worker-y") || !ms[0].ControlPlane {
		t.Errorf("got %+v", ms)
	}
	for _, i := range l.instances {
		if selected := i.Name == "control-plane-x" || i.Name == "worker-y" && zoneName(&i.Instance) == zones[1]; selected == (i.Status == "RUNNING") {
			t.Errorf("%s in %s is %s", i.Name, zoneName(&i.Instance), i.Status)
		}
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
	if _, err := l.ForInstances([]cloud.Instance{{Name: "md-0", ProviderID: "aws:///a/i-1"}}); fault.KindOf(err) != fault.Denied || !strings.Contains(err.Error(), "md-0") {
		t.Errorf("a provider ID of another cloud: %v", err)
	}
	a, err := l.ForInstances([]cloud.Instance{{Name: "md-0", ProviderID: "gce://other/us-east1-b/n"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Observe(t.Context(), refTo(infra, "")); fault.KindOf(err) != fault.Denied || !strings.Contains(err.Error(), "project other") {
		t.Errorf("an instance of another project: %v", err)
	}
}
