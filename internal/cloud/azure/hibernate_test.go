package azure

import (
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/fault"
)

// newHibernatingLab returns a lab and a cluster that should be suspended.
func newHibernatingLab(t *testing.T) (*lab, cloud.Ref) {
	t.Helper()
	l, ref := newLab(t), refTo(infra, "")
	l.hibernation, ref.Depth = true, cloud.DepthSuspend
	return l, ref
}

// run adds a running machine for which hibernation is enabled.
func (l *lab) run(name string) *vm {
	m := l.add(infra+"-rg", infra, infra+"-"+name, "running")
	m.hibernates = l.hibernation
	return m
}

// takeRequests returns the requests for machines so far, and forgets them.
func (l *lab) takeRequests() string {
	got := strings.ReplaceAll(strings.Join(l.calls, ", "), infra+"-", "")
	l.calls = nil
	return got
}

func (l *lab) stop(t *testing.T, ref cloud.Ref) []*cloud.DepthRefusedError {
	t.Helper()
	refused, others := cloud.SplitRefusedDepths(l.Stop(t.Context(), ref))
	if others != nil {
		t.Fatal(others)
	}
	return refused
}

func TestMachinesWithoutHibernationAreDeallocated(t *testing.T) {
	l, ref := newHibernatingLab(t)
	l.run("worker-a").hibernates = false
	l.run("worker-b")
	ms := l.observe(t, ref)
	if a, b := ms[0].DepthObstacle, ms[1].DepthObstacle; !strings.Contains(a, "--enable-hibernation") || b != "" {
		t.Errorf("the obstacles are %q and %q", a, b)
	}
	if got := l.observe(t, refTo(infra, "")); got[0].DepthObstacle != "" {
		t.Errorf("nobody wants it to hibernate, and its obstacle is %q", got[0].DepthObstacle)
	}
	l.stop(t, ref)
	if got := l.takeRequests(); got != "deallocate worker-a, hibernate worker-b" && got != "hibernate worker-b, deallocate worker-a" {
		t.Errorf("asked %s", got)
	}
	l.step()
	if got := l.observe(t, ref).String(); got != infra+"-worker-a Stopped, "+infra+"-worker-b Stopped (suspend)" {
		t.Error(got)
	}
}

func TestWhatIsAskedOfAMachineThatShouldHibernate(t *testing.T) {
	for power, want := range map[string]string{
		"starting": "", "running": "hibernate worker-a", "stopped": "deallocate worker-a", "deallocated": "", "deallocating": "",
	} {
		t.Run(power, func(t *testing.T) {
			l, ref := newHibernatingLab(t)
			l.run("worker-a").power = power
			l.stop(t, ref)
			if got := l.takeRequests(); got != want {
				t.Errorf("asked %q, want %q", got, want)
			}
		})
	}
}

func TestARefusalToHibernate(t *testing.T) {
	for name, c := range map[string]struct {
		failure
		refused bool
		kind    fault.Kind
	}{
		"it is not enabled":          {failure{409, "OperationNotAllowed", "can only be triggered on a VM that is enabled for hibernation", ""}, true, fault.Denied},
		"its guest does not":         {failure{409, "VMHibernateNotSupported", "does not support hibernation", ""}, true, fault.Denied},
		"the request is unknown":     {failure{400, "InvalidParameter", "hibernate", ""}, true, fault.Denied},
		"it does not run yet":        {failure{409, "OperationNotAllowed", "can only be triggered on a VM that is successfully provisioned and is running.", ""}, false, fault.Wait},
		"another operation runs":     {failure{409, "Conflict", "in progress", ""}, false, fault.Wait},
		"a lock of the group":        {failure{409, "ScopeLocked", "locked", ""}, false, fault.Denied},
		"a role without permissions": {failure{403, "AuthorizationFailed", "no action deallocate", ""}, false, fault.Denied},
	} {
		t.Run(name, func(t *testing.T) {
			l, ref := newHibernatingLab(t)
			l.run("worker-a").noHibernate = &c.failure
			l.echo = true
			err := l.Stop(t.Context(), ref)
			mustSay(t, err, c.kind, infra+"-worker-a", c.message)
			mustHide(t, err)
			if refused, _ := cloud.SplitRefusedDepths(err); (len(refused) == 1) != c.refused {
				t.Errorf("refused: %v", refused)
			}
		})
	}
}

// Azure accepts the request, and reports only in the instance view that the guest did not hibernate.
func TestAGuestThatDoesNotHibernateIsDeallocatedInstead(t *testing.T) {
	l, ref := newHibernatingLab(t)
	l.run("worker-a").deaf = true
	if got := l.stop(t, ref); len(got) > 0 {
		t.Fatalf("refused at once: %v", got)
	}
	l.step()
	got := l.stop(t, ref)
	if len(got) != 1 || got[0].Machine != infra+"-worker-a" || !strings.Contains(got[0].Reason, "VMHibernateFailed") {
		t.Fatalf("refused: %v", got)
	}
	ref.RefusedDepths = []cloud.Depth{cloud.DepthSuspend}
	l.stop(t, ref)
	l.step()
	if got := l.observe(t, ref).String(); got != infra+"-worker-a Stopped" {
		t.Error(got)
	}
	if got := l.takeRequests(); got != "hibernate worker-a, deallocate worker-a" {
		t.Errorf("asked %s", got)
	}
}

// A machine of which another operation has failed runs, and Azure hibernates it only once somebody has repaired it.
func TestAMachineWhoseLastOperationFailedDoesNotHibernate(t *testing.T) {
	l, ref := newHibernatingLab(t)
	m := l.run("worker-a")
	m.provisioning = "failed/VMExtensionProvisioningError"
	m.noHibernate = &failure{409, "OperationNotAllowed", "can only be triggered on a VM that is successfully provisioned and is running.", ""}
	got := l.stop(t, ref)
	if len(got) != 1 || !strings.Contains(got[0].Reason, "the last operation on it failed: VMExtensionProvisioningError") {
		t.Errorf("refused: %v", got)
	}
}

func TestAFailureOfAnEarlierHibernationDoesNotCount(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	status := func(at *time.Time) []*armcompute.InstanceViewStatus {
		return []*armcompute.InstanceViewStatus{nil, {Code: to.Ptr("PowerState/running")}, {Code: to.Ptr("ProvisioningState/failed/VMHibernateFailed"), Time: at}}
	}
	for name, tc := range map[string]struct {
		at   *time.Time
		want bool
	}{
		"in this one":             {to.Ptr(began.Add(time.Minute)), true},
		"in an earlier one":       {to.Ptr(began.Add(-time.Hour)), false},
		"by a clock that is late": {to.Ptr(began.Add(-time.Minute)), true},
		"Azure does not say when": {nil, true},
	} {
		var m machine
		m.addHibernation(status(tc.at))
		if got := m.hasFailedToHibernate(began); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestSelectedMachinesHibernateWhereAzureAllowsIt(t *testing.T) {
	l, ref := newHibernatingLab(t)
	l.run("worker-a")
	l.run("worker-b").hibernates = false
	id := "azure:///subscriptions/" + subscription + "/resourceGroups/" + infra + "-rg/providers/Microsoft.Compute/virtualMachines/" + infra
	selected, err := l.ForInstances([]cloud.Instance{{Name: "a", ProviderID: id + "-worker-a"}, {Name: "b", ProviderID: id + "-worker-b"}})
	if err != nil {
		t.Fatal(err)
	}
	refused, others := cloud.SplitRefusedDepths(selected.Stop(t.Context(), ref))
	if others != nil || len(refused) != 1 || refused[0].Machine != "b" {
		t.Fatalf("refused %v; %v", refused, others)
	}
	if got := l.states(); got != "worker-a deallocating, worker-b running" {
		t.Error(got)
	}
}
