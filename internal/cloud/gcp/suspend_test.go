package gcp

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/api/compute/v1"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/fault"
)

// suspendedRef returns a cluster that should be suspended.
func suspendedRef() cloud.Ref {
	ref := refTo(infra, "")
	ref.Depth = cloud.DepthSuspend
	return ref
}

// takeRequests returns the requests for instances so far, and forgets them.
func (l *lab) takeRequests() string {
	got := strings.ReplaceAll(strings.Join(l.calls, ", "), infra+"-", "")
	l.calls = nil
	return got
}

// refusals returns the refused depths of err, and fails the test if there is another error.
func refusals(t *testing.T, err error) []*cloud.DepthRefusedError {
	t.Helper()
	refused, others := cloud.SplitRefusedDepths(err)
	if others != nil {
		t.Fatal(others)
	}
	return refused
}

func TestInstancesThatCannotBeSuspendedAreStopped(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(*instance)
		obstacle string
	}{
		"an ordinary one": {func(*instance) {}, ""},
		"one with GPUs":   {func(i *instance) { i.GuestAccelerators = []*compute.AcceleratorConfig{{AcceleratorCount: 1}} }, "GPUs"},
		"a confidential": {func(i *instance) {
			i.ConfidentialInstanceConfig = &compute.ConfidentialInstanceConfig{EnableConfidentialCompute: true}
		}, "Confidential VM"},
		"bare metal":       {func(i *instance) { i.MachineType = "…/machineTypes/c3-standard-192-metal" }, "bare metal"},
		"with a local SSD": {func(i *instance) { i.Disks = append(i.Disks, &compute.AttachedDisk{Type: "SCRATCH"}) }, "local SSD"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			ref := refTo(infra, `,"discardLocalSsdOnHibernate":false`)
			c.change(l.add(infra, infra+"-worker-a", zones[0], "RUNNING"))
			if got := l.observe(t, ref)[0]; got.DepthObstacle != "" {
				t.Errorf("nobody wants to suspend it, and its obstacle is %q", got.DepthObstacle)
			}
			ref.Depth = cloud.DepthSuspend
			if got := l.observe(t, ref)[0].DepthObstacle; !strings.Contains(got, c.obstacle) || (got == "") != (c.obstacle == "") {
				t.Errorf("its obstacle is %q", got)
			}
			if err := l.Stop(t.Context(), ref); err != nil {
				t.Fatal(err)
			}
			want := map[bool]string{true: "suspend worker-a", false: "stop worker-a"}[c.obstacle == ""]
			if got := l.takeRequests(); got != want {
				t.Errorf("asked %s, want %s", got, want)
			}
		})
	}
}

func TestWhatIsAskedOfAnInstanceThatShouldBeSuspended(t *testing.T) {
	for status, want := range map[string]string{
		"PENDING": "stop worker-a", "PROVISIONING": "", "STAGING": "", "RUNNING": "suspend worker-a", "SUSPENDING": "",
		"SUSPENDED": "", "STOPPING": "", "TERMINATED": "", "REPAIRING": "",
	} {
		t.Run(status, func(t *testing.T) {
			l := newLab(t)
			l.add(infra, infra+"-worker-a", zones[0], status)
			if err := l.Stop(t.Context(), suspendedRef()); err != nil {
				t.Fatal(err)
			}
			if got := l.takeRequests(); got != want {
				t.Errorf("asked %q, want %q", got, want)
			}
		})
	}
}

func TestASuspendedInstanceThatGoogleDoesNotStopIsResumedAndStopped(t *testing.T) {
	l := newLab(t)
	l.noStop = true
	ref := refTo(infra, "")
	l.add(infra, infra+"-worker-a", zones[0], "SUSPENDED")
	for range 6 {
		if err := l.Stop(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
		l.step()
	}
	if got := l.states(); got != "worker-a TERMINATED" {
		t.Error(got)
	}
	if got := l.takeRequests(); got != "stop worker-a, resume worker-a, stop worker-a, stop worker-a" && got != "stop worker-a, resume worker-a, stop worker-a" {
		t.Errorf("asked %s", got)
	}
}

func TestARefusalToSuspend(t *testing.T) {
	for name, c := range map[string]struct {
		failure
		refused bool
		kind    fault.Kind
	}{
		"the kind of instance":           {failure{400, "badRequest", "too much memory", false}, true, fault.Denied},
		"not implemented":                {failure{501, "notImplemented", "not here", false}, true, fault.Denied},
		"a missing permission":           {failure{403, "forbidden", "Required 'compute.instances.suspend'", false}, true, fault.Denied},
		"it is busy":                     {failure{400, "resourceNotReady", "being changed", false}, false, fault.Wait},
		"too many calls":                 {failure{429, "rateLimitExceeded", "slow down", false}, false, fault.Wait},
		"a server fails":                 {failure{500, "internalError", "oh", false}, false, fault.Wait},
		"it is unsupported, says the op": {failure{200, "UNSUPPORTED_OPERATION", "too much memory", true}, true, fault.Denied},
		"the operation fails otherwise":  {failure{200, "CONDITION_NOT_MET", "no", true}, false, fault.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.add(infra, infra+"-worker-a", zones[0], "RUNNING")
			l.fail, l.tokens.echo = &c.failure, true
			err := l.Stop(t.Context(), suspendedRef())
			mustSay(t, err, c.kind, infra+"-worker-a", c.message)
			mustHide(t, err)
			if refused, _ := cloud.SplitRefusedDepths(err); (len(refused) == 1) != c.refused {
				t.Errorf("refused: %v", refused)
			}
		})
	}
}

func TestAnInstanceThatWasSuspendedMeanwhileIsNoRefusal(t *testing.T) {
	l := newLab(t)
	l.add(infra, infra+"-worker-a", zones[0], "RUNNING")
	first := true
	l.meanwhile = func(call string) {
		if first && strings.HasPrefix(call, "suspend") {
			first = false
			l.named(infra + "-worker-a").Status = "SUSPENDED"
		}
	}
	if err := l.Stop(t.Context(), suspendedRef()); err != nil {
		t.Error(err)
	}
}

// Google accepts the request, and reports only in its operation that the guest did not react.
func TestAGuestThatDoesNotReactIsStoppedInstead(t *testing.T) {
	l := newLab(t)
	ref := suspendedRef()
	l.add(infra, infra+"-worker-a", zones[0], "RUNNING").deaf = true
	ref.Since = l.clock
	if got := refusals(t, l.Stop(t.Context(), ref)); len(got) > 0 {
		t.Fatalf("refused at once: %v", got)
	}
	l.step()
	got := refusals(t, l.Stop(t.Context(), ref))
	if len(got) != 1 || got[0].Machine != infra+"-worker-a" || !strings.Contains(got[0].Reason, "did not react") {
		t.Fatalf("refused: %v", got)
	}
	if got := l.takeRequests(); got != "suspend worker-a" {
		t.Errorf("asked %s", got)
	}
	later := ref
	later.Since = l.clock.Add(time.Hour)
	if got := refusals(t, l.Stop(t.Context(), later)); len(got) > 0 {
		t.Errorf("the next hibernation does not try again: %v", got)
	}
	l.step()
	ref.RefusedDepths = []cloud.Depth{cloud.DepthSuspend}
	if err := l.Stop(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	l.step()
	if got := l.states(); got != "worker-a TERMINATED" {
		t.Error(got)
	}
}

func TestAnAccountThatMayNotListOperationsIsNamed(t *testing.T) {
	l := newLab(t)
	ref := suspendedRef()
	ref.Since = l.clock
	l.add(infra, infra+"-worker-a", zones[0], "RUNNING")
	l.noOperations = true
	mustSay(t, l.Stop(t.Context(), ref), fault.Denied, "compute.zoneOperations.list", email)
}

func TestTheControlPlaneWaitsForAWorkerThatCannotBeSuspended(t *testing.T) {
	l := newLab(t)
	ref := suspendedRef()
	l.add(infra, infra+"-master-0", zones[0], "RUNNING")
	l.add(infra, infra+"-worker-a", zones[0], "RUNNING").noSuspend = &failure{400, "badRequest", "no", false}
	stop := func(ref cloud.Ref) []*cloud.DepthRefusedError {
		return refusals(t, l.Stop(context.WithoutCancel(t.Context()), ref))
	}
	if got := stop(ref); len(got) != 1 || l.states() != "master-0 RUNNING, worker-a RUNNING" {
		t.Fatalf("%v; %s", got, l.states())
	}
	ref.RefusedDepths = []cloud.Depth{cloud.DepthSuspend}
	for range 4 {
		stop(ref)
		l.step()
	}
	if got := l.states(); got != "master-0 TERMINATED, worker-a TERMINATED" {
		t.Error(got)
	}
}
