package openstack

import (
	"testing"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/fault"
)

func TestSelectedServersAreControlledByProviderID(t *testing.T) {
	l := newLab(t)
	ref := l.cluster(1) // the infraID marks these, and they are not selected
	cp := l.add(vm{server: server{Name: "control-plane-x", Status: "ACTIVE"}})
	worker := l.add(vm{server: server{Name: "worker-y", Status: "ACTIVE"}})
	l.add(vm{server: server{Name: "worker-y", Status: "ACTIVE"}}) // the same name
	a, err := l.ForInstances([]cloud.Instance{
		{ProviderID: "openstack:///" + cp.ID, Name: "cp-0", ControlPlane: true},
		{ProviderID: "openstack://one/" + worker.ID, Name: "md-0"},
		{ProviderID: "openstack:///00000000-0000-4000-8000-00000000dead", Name: "md-1"},
	})
	must(t, err)
	for range 6 {
		must(t, a.Stop(t.Context(), ref))
		l.Step()
	}
	ms, err := a.Observe(t.Context(), ref)
	must(t, err)
	if ms.String() != "cp-0 Stopped, md-0 Stopped" || !ms[0].ControlPlane || ms[1].ControlPlane || ms[1].ProviderID != "openstack://one/"+worker.ID {
		t.Errorf("got %+v", ms)
	}
	l.wantTold(t, "control-plane-x os-stop", "worker-y os-stop")
	for range 6 {
		must(t, a.Start(t.Context(), ref))
		l.Step()
	}
	if ms, err = a.Observe(t.Context(), ref); err != nil || !ms.AllIn(cloud.Running) {
		t.Errorf("after the start: %v, %v", ms, err)
	}
}

func TestSelectionsThatCannotWorkAreDenied(t *testing.T) {
	l := newLab(t)
	ref := l.cluster(0)
	for _, id := range []string{"aws:///a/i-1", "openstack:///no-uuid", "openstack://a/b/00000000-0000-4000-8000-000000000001"} {
		_, err := l.ForInstances([]cloud.Instance{{Name: "md-0", ProviderID: id}})
		mustSay(t, err, fault.Denied, "md-0", "not that of a server of OpenStack")
	}
	a, err := l.ForInstances([]cloud.Instance{{Name: "md-0", ProviderID: "openstack://two/00000000-0000-4000-8000-000000000001"}})
	must(t, err)
	_, err = a.Observe(t.Context(), ref)
	mustSay(t, err, fault.Denied, "md-0 is in region two", "region_name one")
}

// The metadata of a server in a cell that is down is unknown, and its ID is known.
func TestOnlyASelectedServerInACellThatIsDownHidesTheState(t *testing.T) {
	l := newLab(t)
	ref := l.cluster(0)
	up := l.add(vm{server: server{Name: "up", Status: "ACTIVE"}})
	down := l.add(vm{server: server{Name: "down", Status: "ACTIVE"}, down: true})
	l.do(func() { l.cellDown = true })
	a, err := l.ForInstances([]cloud.Instance{{ProviderID: "openstack:///" + up.ID, Name: "cp-0"}})
	must(t, err)
	if ms, err := a.Observe(t.Context(), ref); err != nil || ms.String() != "cp-0 Running" {
		t.Errorf("another server in the cell: %v, %v", ms, err)
	}
	a, err = l.ForInstances([]cloud.Instance{{ProviderID: "openstack:///" + down.ID, Name: "md-0"}})
	must(t, err)
	_, err = a.Observe(t.Context(), ref)
	mustSay(t, err, fault.Wait, "machine md-0")
}
