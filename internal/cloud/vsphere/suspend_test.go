package vsphere

import (
	"strings"
	"testing"
	"time"

	"github.com/vmware/govmomi/vim25/types"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/fault"
)

const suspended = types.VirtualMachinePowerStateSuspended

// suspend puts the cluster to sleep at depth suspend.
func (r *rig) suspend() {
	r.Helper()
	r.ref.Depth = cloud.DepthSuspend
	for range 3 {
		r.stop()
	}
	r.sees("c-12345-master-0 Stopped (suspend), c-12345-worker-0 Stopped (suspend)")
}

func TestMachinesAreSuspendedWithoutAskingTheirGuests(t *testing.T) {
	r := newRig(t)
	r.run()
	r.suspend()
	if r.count("ShutdownGuest") != 0 || r.count("SuspendVM_Task") != 2 {
		t.Errorf("%d shutdowns, %d suspensions", r.count("ShutdownGuest"), r.count("SuspendVM_Task"))
	}
	r.run()
}

// Powering it off would be a power failure for its guest.
func TestASuspendedMachineIsResumedAndShutDownToStopIt(t *testing.T) {
	r := newRig(t)
	r.run()
	r.suspend()
	r.ref.Depth = cloud.DepthStop
	r.stop()
	if w, m := r.power(r.worker), r.power(r.master); w != poweredOn || m != suspended {
		t.Errorf("after the first call the worker is %s, the control plane %s", w, m)
	}
	for range 4 {
		r.stop()
	}
	r.sees("c-12345-master-0 Stopped, c-12345-worker-0 Stopped")
	if r.count("ShutdownGuest") != 2 || r.count("PowerOffVM_Task") != 0 {
		t.Errorf("%d shutdowns, %d power-offs", r.count("ShutdownGuest"), r.count("PowerOffVM_Task"))
	}
}

func TestASuspensionThatIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault   types.BaseMethodFault
		refused bool
		kind    fault.Kind
	}{
		"it has a device that passes through": {&types.NotSupported{}, true, fault.Denied},
		"its configuration":                   {&types.GenericVmConfigFault{Reason: "a device"}, true, fault.Denied},
		"its datastore is full":               {&types.NoDiskSpace{}, true, fault.Denied},
		"a privilege is missing":              {&types.NoPermission{PrivilegeId: "VirtualMachine.Interact.Suspend"}, true, fault.Denied},
		"its host does not answer":            {&types.HostCommunication{}, false, fault.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.run()
			r.ref.Depth = cloud.DepthSuspend
			r.fail(c.fault, "SuspendVM_Task", r.worker)
			err := r.p.Stop(r.Context(), r.ref)
			refused, _ := cloud.SplitRefusedDepths(err)
			if fault.KindOf(err) != c.kind || (len(refused) == 1) != c.refused || !strings.Contains(err.Error(), "c-12345-worker-0") {
				t.Fatalf("got %v, which is %v", err, fault.KindOf(err))
			}
			if !c.refused {
				return
			}
			if refused[0].Machine != "c-12345-worker-0" || r.power(r.master) != poweredOn {
				t.Errorf("refused %+v; the control plane is %s", refused[0], r.power(r.master))
			}
			r.ref.RefusedDepths = []cloud.Depth{cloud.DepthSuspend}
			for range 3 {
				r.stop()
			}
			r.sees("c-12345-master-0 Stopped, c-12345-worker-0 Stopped")
		})
	}
}

// The request returns before the memory is written.
func TestASuspensionThatFailsLaterIsRefusedInTheSameHibernation(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	failed := &types.LocalizedMethodFault{Fault: &types.HostCommunication{}, LocalizedMessage: "It did not work."}
	task := func(kind string, at time.Duration, err *types.LocalizedMethodFault) *types.TaskInfo {
		return &types.TaskInfo{DescriptionId: kind, QueueTime: began.Add(at), Error: err}
	}
	for name, c := range map[string]struct {
		last  *types.TaskInfo
		since time.Time
		fails bool
	}{
		"no suspension":                         {nil, began, false},
		"one that failed":                       {task("VirtualMachine.suspend", time.Minute, failed), began, true},
		"one that succeeded":                    {task("VirtualMachine.suspend", time.Minute, nil), began, false},
		"one that failed before":                {task("VirtualMachine.suspend", -time.Hour, failed), began, false},
		"one by a clock that is behind":         {task("VirtualMachine.suspend", -time.Minute, failed), began, true},
		"one that failed, and this just begins": {task("VirtualMachine.suspend", time.Minute, failed), time.Time{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (vm{lastSuspend: c.last}).suspendFailure(c.since); (got != "") != c.fails {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestATaskThatSuspendsIsStopping(t *testing.T) {
	v := vm{power: poweredOn, switching: &types.TaskInfo{DescriptionId: "VirtualMachine.suspend"}}
	if got, _ := v.machineState(); got != cloud.Stopping || v.canStop() {
		t.Errorf("it is %s, and can be stopped: %t", got, v.canStop())
	}
}
