package vsphere

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/vmware/govmomi/vim25/types"

	"hotspare.io/hotspare/internal/fault"
)

const (
	poweredOn  = types.VirtualMachinePowerStatePoweredOn
	poweredOff = types.VirtualMachinePowerStatePoweredOff
)

func TestAGuestThatDoesNotShutDownIsPoweredOffAfterTheGrace(t *testing.T) {
	r := newRig(t)
	r.run()
	r.deafen(r.worker)
	r.stop()
	r.pass(shutdownGrace - time.Minute)
	r.stop()
	if got := r.power(r.worker); got != poweredOn || r.count("ShutdownGuest") != 1 {
		t.Fatalf("within the grace the worker is %s, and was asked %d times", got, r.count("ShutdownGuest"))
	}
	r.pass(2 * time.Minute)
	// Another process continues where this one has ended.
	r.p = newPower(t, r.hub)
	r.stop()
	r.sees("c-12345-master-0 Running, c-12345-worker-0 Stopped")
	if n := r.count("ShutdownGuest"); n != 1 {
		t.Errorf("the guest was asked %d times", n)
	}
}

func TestAGuestWhoseToolsHaveEndedWhileItShutsDownIsNotPoweredOff(t *testing.T) {
	r := newRig(t)
	r.run()
	r.deafen(r.worker)
	r.stop()
	r.tools(r.worker, toolsDown)
	r.pass(time.Minute)
	r.stop()
	if got := r.power(r.worker); got != poweredOn {
		t.Errorf("the worker is %s", got)
	}
}

func TestARequestOfAnEarlierStopGivesNobodyLessGrace(t *testing.T) {
	r := newRig(t)
	r.run()
	r.deafen(r.worker)
	r.stop()
	r.pass(shutdownRequestTTL + time.Minute)
	r.stop()
	if got, n := r.power(r.worker), r.count("ShutdownGuest"); got != poweredOn || n != 2 {
		t.Errorf("the worker is %s, and was asked %d times", got, n)
	}
}

func TestAMachineWithoutToolsIsPoweredOff(t *testing.T) {
	r := newRig(t)
	r.run()
	r.tools(r.worker, toolsDown)
	r.stop()
	if got := r.power(r.worker); got != poweredOff || r.count("ShutdownGuest") != 0 {
		t.Errorf("the worker is %s", got)
	}
}

func TestToolsUnavailableMeansPowerOff(t *testing.T) {
	r := newRig(t)
	r.run()
	r.fail(&types.ToolsUnavailable{}, "ShutdownGuest", r.worker)
	r.stop()
	if got := r.power(r.worker); got != poweredOff {
		t.Errorf("the worker is %s", got)
	}
}

func TestInvalidPowerStateMeansToLookAgain(t *testing.T) {
	r := newRig(t)
	r.run()
	r.fail(&types.InvalidPowerState{}, "ShutdownGuest", r.worker)
	r.stop()
	r.sees("c-12345-master-0 Running, c-12345-worker-0 Running")
	r.fail(nil, "ShutdownGuest", r.worker)
	r.stop()
	r.stop()
	r.stop()
	r.sees("c-12345-master-0 Stopped, c-12345-worker-0 Stopped")
}

func TestAMachineThatMayNotBeStoppedHoldsNobodyUp(t *testing.T) {
	r := newRig(t)
	r.run()
	r.fail(&types.NoPermission{PrivilegeId: "VirtualMachine.Interact.PowerOff"}, "ShutdownGuest", r.worker)
	err := r.p.Stop(t.Context(), r.ref)
	if fault.KindOf(err) != fault.Denied || !strings.Contains(err.Error(), "stopping c-12345-worker-0") || !strings.Contains(err.Error(), "VirtualMachine.Interact.PowerOff") {
		t.Errorf("got %v", err)
	}
	if got := r.power(r.master); got != poweredOff {
		t.Errorf("the control plane is %s", got)
	}
}

func TestAControlPlaneWaitsForAWorkerThatFailsToStop(t *testing.T) {
	r := newRig(t)
	r.run()
	r.fail(&types.HostCommunication{}, "ShutdownGuest", r.worker)
	if err := r.p.Stop(t.Context(), r.ref); err == nil || fault.KindOf(err) != fault.Unknown {
		t.Errorf("got %v", err)
	}
	if got := r.power(r.master); got != poweredOn {
		t.Errorf("the control plane is %s", got)
	}
}

func TestStartingFallsBackToOneByOne(t *testing.T) {
	r := newRig(t)
	r.fail(&types.NotSupported{}, "PowerOnMultiVM_Task")
	r.run()
	if r.count("PowerOnVM_Task") != 2 {
		t.Errorf("powered on %d by themselves", r.count("PowerOnVM_Task"))
	}
}

func TestStartingAsksTheDatacenter(t *testing.T) {
	r := newRig(t)
	r.run()
	if r.count("PowerOnMultiVM_Task") != 2 || r.count("PowerOnVM_Task") != 0 {
		t.Errorf("asked the datacenter %d times", r.count("PowerOnMultiVM_Task"))
	}
}

func TestAMachineThatCannotBePoweredOnIsAnErrorThatNamesIt(t *testing.T) {
	r := newRig(t)
	r.strand(r.worker)
	r.must(r.p.Start(t.Context(), r.ref))
	err := r.p.Start(t.Context(), r.ref)
	if err == nil || !strings.Contains(err.Error(), "starting c-12345-worker-0: InvalidState") {
		t.Errorf("got %v", err)
	}
	if got := r.observe()[1]; got.Reason != "vCenter could not power it on: InvalidState" {
		t.Errorf("got %v: %s", got.State, got.Reason)
	}
	// A cluster that hibernates therefore does not wait for it forever.
	r.pass(startFailureTTL + time.Minute)
	r.sees("c-12345-master-0 Running, c-12345-worker-0 Stopped")
}

func TestAFaultOfOneMachineHasItsKind(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want fault.Kind
	}{
		"no host has room":             {of(&types.InsufficientMemoryResourcesFault{}), fault.Capacity},
		"no host fits":                 {of(&types.NoCompatibleHost{}), fault.Capacity},
		"it has gone":                  {of(&types.ManagedObjectNotFound{}), fault.Gone},
		"a privilege is missing":       {of(&types.NoPermission{PrivilegeId: "x"}), fault.Denied},
		"the session has ended":        {of(&types.NotAuthenticated{}), fault.Unknown},
		"another fault":                {of(&types.HostCommunication{}), fault.Unknown},
		"too many requests":            {statusError(429), fault.Wait},
		"vCenter is starting":          {statusError(503), fault.Unknown},
		"tags may not be read":         {statusError(403), fault.Denied},
		"something that nobody expect": {errors.New("boom"), fault.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fault.KindOf(translateError(c.err)); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func of(f types.BaseMethodFault) error {
	return taskError{&types.LocalizedMethodFault{Fault: f, LocalizedMessage: "It did not work."}}
}

func TestTheNextStepOfAStop(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		tools       bool
		boot, asked time.Duration // before now; 0 is never
		want        stopStep
	}{
		"a guest with tools is asked":                     {true, time.Hour, 0, stepShutDownGuest},
		"one without is not":                              {false, time.Hour, 0, stepPowerOff},
		"it has the grace":                                {true, time.Hour, shutdownGrace - 1, stepWaitForGuest},
		"it has the grace without tools too":              {false, time.Hour, shutdownGrace - 1, stepWaitForGuest},
		"after the grace it is powered off":               {true, time.Hour, shutdownGrace, stepPowerOff},
		"a request before its last start does not count":  {true, time.Minute, shutdownGrace, stepShutDownGuest},
		"one that is long ago does not count":             {true, time.Hour, shutdownRequestTTL + 1, stepShutDownGuest},
		"a machine whose start is not known is asked too": {true, 0, 0, stepShutDownGuest},
	} {
		t.Run(name, func(t *testing.T) {
			ago := func(d time.Duration) (at time.Time) {
				if d != 0 {
					at = now.Add(-d)
				}
				return at
			}
			if got := (vm{tools: c.tools, bootedAt: ago(c.boot)}).nextStopStep(ago(c.asked), now); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
