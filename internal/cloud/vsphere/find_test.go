package vsphere

import (
	"net/http"
	"strings"
	"testing"

	"github.com/vmware/govmomi/vim25/types"

	"hotspare.io/hotspare/internal/cloud"
)

func TestSelection(t *testing.T) {
	v := newCenter(t)
	p := newPower(t, newHub(v))
	v.cluster("tagged-12345", 1)
	v.vm("tagged-12345", "tagged-12345-byhand") // in the folder and with the same prefix, but not tagged
	v.vm("folder-12345", "master-0")
	v.vm("folder-12345", "compute-0")
	v.vm("elsewhere", "folder-12345-infra")
	v.vm("", "prefix-12345-control-plane-0")
	v.vm("", "prefix-12345-worker-0")
	v.mark("prefix-12345-abcde", v.vm("", "prefix-12345-abcde-worker-0"))

	for name, c := range map[string]struct{ infraID, want string }{
		"the installer's tag decides, and templates are left out": {"tagged-12345", "tagged-12345-master-0* Stopped, tagged-12345-worker-0 Stopped"},
		"without a tag the folder and the name do":                {"folder-12345", "compute-0 Stopped, folder-12345-infra Stopped, master-0* Stopped"},
		"a name that begins alike is not enough for a foreign tag": {
			"prefix-12345",
			"prefix-12345-control-plane-0* Stopped, prefix-12345-worker-0 Stopped",
		},
		"a beginning of an infraID is nobody's": {"prefix-1234", ""},
	} {
		t.Run(name, func(t *testing.T) {
			ms, err := p.Observe(t.Context(), refTo(c.infraID, v.server()))
			v.must(err)
			for i := range ms {
				if ms[i].ControlPlane {
					ms[i].Name += "*"
				}
			}
			if got := ms.String(); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestAMachineThatGoesWhileItIsListedHoldsNobodyUp(t *testing.T) {
	r := newRig(t)
	r.mark("c-12345", types.ManagedObjectReference{Type: kindVM, Value: "vm-99999"})
	r.sees("c-12345-master-0 Stopped, c-12345-worker-0 Stopped")
	r.run()
}

func TestTwoMachinesOfOneNameAreTwo(t *testing.T) {
	r := newRig(t)
	r.mark("c-12345", r.vm("other", "c-12345-worker-0"))
	ms := r.observe()
	if len(ms) != 3 || ms[1].Name == ms[2].Name || !strings.HasPrefix(ms[2].Name, "c-12345-worker-0 (vm-") {
		t.Errorf("saw %v", ms)
	}
}

func TestAClusterMayBeInSeveralCenters(t *testing.T) {
	t.Parallel()
	a, b := newCenter(t), newCenter(t)
	ha := newHub(a)
	ha.put("ca", map[string]string{"a.crt": string(a.ca()), "b.crt": string(b.ca())})
	p := newPower(t, ha)
	master, worker := a.vm("", "c-12345-master-0"), b.vm("", "c-12345-worker-0")
	a.mark("c-12345", master)
	b.mark("c-12345", worker)
	ref := refTo("c-12345", a.server(), b.server())

	a.must(p.Start(t.Context(), ref))
	a.must(p.Start(t.Context(), ref))
	ms, err := p.Observe(t.Context(), ref)
	a.must(err)
	if !ms.AllIn(cloud.Running) || len(ms) != 2 {
		t.Fatalf("saw %v", ms)
	}

	b.doorman(func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	if ms, err := p.Observe(t.Context(), ref); err == nil || !strings.Contains(err.Error(), "vCenter "+b.server()) || ms != nil {
		t.Errorf("with one vCenter away: %v, %v", ms, err)
	}
	if err := p.Stop(t.Context(), ref); err == nil {
		t.Error("stopped with one vCenter away")
	}
	if got := a.power(master); got != poweredOn {
		t.Errorf("the control plane is %s while nobody knows of the workers", got)
	}
	b.doorman(nil)
}

func TestStates(t *testing.T) {
	task := func(kind string, state types.TaskInfoState) *types.TaskInfo {
		return &types.TaskInfo{DescriptionId: kind, State: state}
	}
	failed := task("VirtualMachine.powerOn", types.TaskInfoStateError)
	failed.Error = &types.LocalizedMethodFault{Fault: &types.NoCompatibleHost{}, LocalizedMessage: "No host fits."}
	for name, c := range map[string]struct {
		v    vm
		want string
	}{
		"powered on is running":               {vm{power: poweredOn}, "Running"},
		"powered off is stopped":              {vm{power: poweredOff}, "Stopped"},
		"suspended is stopped":                {vm{power: types.VirtualMachinePowerStateSuspended}, "Stopped"},
		"a disconnected one has failed":       {vm{power: poweredOn, connection: "disconnected"}, "Failed: vCenter reports it as disconnected: check its host and its datastore"},
		"an inaccessible one has failed":      {vm{power: poweredOff, connection: "inaccessible"}, "Failed: vCenter reports it as inaccessible: check its host and its datastore"},
		"an orphaned one has failed":          {vm{power: poweredOff, connection: "orphaned"}, "Failed: vCenter reports it as orphaned: check its host and its datastore"},
		"an invalid one has failed":           {vm{power: poweredOff, connection: "invalid"}, "Failed: vCenter reports it as invalid: check its host and its datastore"},
		"an unknown connection is unknown":    {vm{power: poweredOn, connection: "odd"}, `Unknown: connection state "odd"`},
		"an unknown power state is unknown":   {vm{power: "odd"}, `Unknown: power state "odd"`},
		"being powered on is starting":        {vm{power: poweredOff, switching: task("VirtualMachine.powerOn", types.TaskInfoStateRunning)}, "Starting"},
		"being powered on by DRS is starting": {vm{power: poweredOff, switching: task("Drm.ExecuteVmPowerOnLRO", types.TaskInfoStateQueued)}, "Starting"},
		"being powered off is stopping":       {vm{power: poweredOn, switching: task("VirtualMachine.powerOff", types.TaskInfoStateRunning)}, "Stopping"},
		"one that could not be powered on":    {vm{power: poweredOff, lastOn: failed}, "Failed: vCenter could not power it on: NoCompatibleHost: No host fits"},
		"one that was powered on later runs":  {vm{power: poweredOn, lastOn: failed}, "Running"},
	} {
		t.Run(name, func(t *testing.T) {
			state, reason := c.v.machineState()
			got := string(state)
			if reason != "" {
				got += ": " + reason
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
