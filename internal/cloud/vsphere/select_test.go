package vsphere

import (
	"strings"
	"testing"

	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/fault"
)

// providerID returns the provider ID of a machine.
func (v *vcenter) providerID(ref types.ManagedObjectReference) string {
	v.Helper()
	var m mo.VirtualMachine
	v.must(v.admin.RetrieveOne(v.Context(), ref, []string{"config.uuid"}, &m))
	return "vsphere://" + strings.ToUpper(m.Config.Uuid)
}

func TestSelectedMachinesAreControlledByProviderID(t *testing.T) {
	r := newRig(t)
	r.run() // the infraID marks these, and they are not selected
	cp, worker := r.vm("a", "control-plane-x"), r.vm("b", "worker-y")
	r.vm("a", "worker-y") // the same name in another folder
	a, err := r.p.ForInstances([]cloud.Instance{
		{ProviderID: r.providerID(cp), Name: "cp-0", ControlPlane: true},
		{ProviderID: r.providerID(worker), Name: "md-0"},
		{ProviderID: "vsphere://00000000-0000-4000-8000-00000000dead", Name: "md-1"},
	})
	r.must(err)
	for range 3 {
		r.must(a.Start(r.Context(), r.ref))
	}
	ms, err := a.Observe(r.Context(), r.ref)
	r.must(err)
	if ms.String() != "cp-0 Running, md-0 Running" || !ms[0].ControlPlane || ms[1].ProviderID != r.providerID(worker) {
		t.Errorf("after the start: %+v", ms)
	}
	for range 3 {
		r.must(a.Stop(r.Context(), r.ref))
	}
	if ms, err = a.Observe(r.Context(), r.ref); err != nil || !ms.AllIn(cloud.Stopped) {
		t.Errorf("after the stop: %v, %v", ms, err)
	}
	r.sees("c-12345-master-0 Running, c-12345-worker-0 Running")
}

func TestSelectionsThatCannotWorkAreDenied(t *testing.T) {
	r := newRig(t)
	for _, id := range []string{"aws:///a/i-1", "vsphere://no-uuid", "vsphere:///00000000-0000-4000-8000-000000000001"} {
		if _, err := r.p.ForInstances([]cloud.Instance{{Name: "md-0", ProviderID: id}}); fault.KindOf(err) != fault.Denied || !strings.Contains(err.Error(), "md-0") {
			t.Errorf("%s: %v", id, err)
		}
	}
	r.set(r.worker, "config.uuid", strings.ToLower(strings.TrimPrefix(r.providerID(r.master), "vsphere://")))
	a, err := r.p.ForInstances([]cloud.Instance{{Name: "md-0", ProviderID: r.providerID(r.master)}})
	r.must(err)
	for _, do := range []func() error{
		func() error { _, err := a.Observe(r.Context(), r.ref); return err },
		func() error { return a.Stop(r.Context(), r.ref) },
	} {
		if err := do(); fault.KindOf(err) != fault.Denied || !strings.Contains(err.Error(), "two virtual machines have that BIOS UUID") {
			t.Errorf("two machines with one UUID: %v", err)
		}
	}
}
