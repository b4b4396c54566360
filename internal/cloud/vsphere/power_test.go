package vsphere

import (
	"testing"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/types"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/cloud/cloudtest"
)

func TestPower(t *testing.T) {
	cloudtest.Run(t, func(t *testing.T) cloudtest.Cloud {
		t.Parallel()
		v := newCenter(t)
		return cloudtest.Cloud{
			Against:  "govmomi's simulator of vCenter",
			Actuator: newPower(t, newHub(v)),
			Create: func(t *testing.T, infraID string, workers int) cloud.Ref {
				v.cluster(infraID, workers)
				return refTo(infraID, v.server())
			},
			Vanish: func(_ *testing.T, _ cloud.Ref, name string) { v.destroy(v.named(name)) },
			Break:  func(_ *testing.T, _ cloud.Ref, name string) { v.strand(v.named(name)) },
			Depths: []cloud.Depth{cloud.DepthSuspend},
			Faults: cloudtest.Faults{
				RefuseDepth: func(*testing.T, cloud.Ref, cloud.Depth) { v.fail(&types.NotSupported{}, "SuspendVM_Task") },
				Many:        func(_ *testing.T, ref cloud.Ref, n int) { v.grow(ref.InfraID, n) },
				Throttle:    func(_ *testing.T, n int) { v.throttle(n) },
				Expire:      func(*testing.T) { v.lock() },
				Refuse:      func(_ *testing.T, _ cloud.Ref, name string) { v.forbid(v.named(name)) },
				Odd:         func(_ *testing.T, _ cloud.Ref, name string) { v.odd(v.named(name)) },
				Hang:        func(*testing.T) <-chan struct{} { return v.hang() },
				Planted:     []string{testPassword[:7]},
			},
		}
	})
}

func (v *vcenter) destroy(ref types.ManagedObjectReference) {
	v.Helper()
	task, err := object.NewVirtualMachine(v.admin.Client, ref).Destroy(v.Context())
	v.must(err)
	v.must(task.Wait(v.Context()))
}

// strand moves a machine to another host, in maintenance mode, where vCenter cannot power it on.
func (v *vcenter) strand(ref types.ManagedObjectReference) {
	v.Helper()
	building.Lock()
	defer building.Unlock()
	folders, err := v.dc.Folders(v.Context())
	v.must(err)
	task, err := folders.HostFolder.AddStandaloneHost(v.Context(), types.HostConnectSpec{HostName: "shut"}, true, nil, nil)
	v.must(err)
	v.must(task.Wait(v.Context()))
	for _, e := range v.model.Service.Context.Map.All("HostSystem") {
		if host := e.Reference(); host != v.host.Reference() {
			v.set(host, "runtime.inMaintenanceMode", true)
			v.set(ref, "runtime.host", &host)
		}
	}
}

// rig is a cluster c-12345 with one control plane machine and one worker in one vCenter.
type rig struct {
	*vcenter
	hub            *hub
	p              *Actuator
	ref            cloud.Ref
	master, worker types.ManagedObjectReference
}

func newRig(t *testing.T) *rig {
	t.Helper()
	t.Parallel()
	v := newCenter(t)
	refs := v.cluster("c-12345", 1)
	h := newHub(v)
	return &rig{vcenter: v, hub: h, p: newPower(t, h), ref: refTo("c-12345", v.server()), master: refs[0], worker: refs[1]}
}

func (r *rig) observe() cloud.Machines {
	r.Helper()
	ms, err := r.p.Observe(r.Context(), r.ref)
	r.must(err)
	return ms
}

func (r *rig) sees(want string) {
	r.Helper()
	if got := r.observe().String(); got != want {
		r.Fatalf("saw %q, want %q", got, want)
	}
}

// run starts the cluster by calling Start.
func (r *rig) run() {
	r.Helper()
	for range 3 {
		r.must(r.p.Start(r.Context(), r.ref))
	}
	r.sees("c-12345-master-0 Running, c-12345-worker-0 Running")
}

func (r *rig) stop() {
	r.Helper()
	r.must(r.p.Stop(r.Context(), r.ref))
}
