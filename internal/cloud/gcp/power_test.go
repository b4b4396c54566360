package gcp

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"google.golang.org/api/compute/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/cloud/cloudtest"
	"hotspare.io/hotspare/internal/cloud/powerorder"
	"hotspare.io/hotspare/internal/fault"
)

// lab is a simulator with an actuator and its Secret.
type lab struct {
	*sim
	Actuator
	secret map[string][]byte
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{sim: newSim(t)}
	l.secret = map[string][]byte{secretKey: l.account(nil)}
	l.Actuator = New(func(_ context.Context, key types.NamespacedName) (map[string][]byte, error) {
		if want := (types.NamespacedName{Namespace: "clusters", Name: "gcp-creds"}); key != want {
			return nil, fault.NewDenied("no Secret %s", key)
		}
		return l.secret, nil
	}, Options{Endpoint: l.URL + "/compute/v1/"})
	return l
}

// refTo returns a cluster in us-east1; more is JSON for spec.platform.gcp.
func refTo(infraID, more string) cloud.Ref {
	raw := `{"credentialsSecretRef":{"name":"gcp-creds"},"region":"us-east1"` + more + `}`
	return cloud.Ref{
		Cluster: types.NamespacedName{Namespace: "clusters", Name: "mine"}, InfraID: infraID,
		Platform: hivev1.Platform{GCP: &runtime.RawExtension{Raw: []byte(raw)}},
	}
}

// create creates a stopped cluster with one control plane machine and n workers, across all zones.
func (l *lab) create(infraID string, n int) cloud.Ref {
	l.add(infraID, infraID+"-master-0", zones[0], "TERMINATED")
	l.grow(infraID, n)
	return refTo(infraID, "")
}

// grow adds n workers to a cluster.
func (l *lab) grow(infraID string, n int) {
	for range n {
		i := len(l.instances) - 1
		zone := zones[i%3]
		l.add(infraID, fmt.Sprintf("%s-worker-%s-%04d", infraID, zone[len(zone)-1:], i), zone, "TERMINATED")
	}
}

// cluster creates a running cluster with one control plane machine and n workers.
func (l *lab) cluster(t *testing.T, n int) cloud.Ref {
	t.Helper()
	ref := l.create(infra, n)
	for _, i := range l.instances {
		i.Status = "RUNNING"
	}
	return ref
}

func (l *lab) observe(t *testing.T, ref cloud.Ref) cloud.Machines {
	t.Helper()
	ms, err := l.Observe(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	return ms
}

// states returns the instances with their states, according to the simulator.
func (l *lab) states() string {
	var all []string
	for _, i := range l.instances {
		all = append(all, strings.TrimPrefix(i.Name, infra+"-")+" "+i.Status)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func TestPower(t *testing.T) {
	cloudtest.Run(t, func(t *testing.T) cloudtest.Cloud {
		l := newLab(t)
		return cloudtest.Cloud{
			Against:  "our simulator of Compute Engine",
			Actuator: l.Actuator,
			Create:   func(_ *testing.T, infraID string, workers int) cloud.Ref { return l.create(infraID, workers) },
			Vanish: func(t *testing.T, _ cloud.Ref, name string) {
				i := l.named(name)
				delete(l.instances, zoneName(&i.Instance)+"/"+name)
			},
			Break:  func(t *testing.T, _ cloud.Ref, name string) { l.named(name).broken = true },
			Step:   l.step,
			Depths: []cloud.Depth{cloud.DepthSuspend},
			GuestsAreUp: func(cloud.Ref) bool {
				for _, i := range l.instances {
					if !i.guest.IsUp() {
						return false
					}
				}
				return true
			},
			Faults: cloudtest.Faults{
				RefuseDepth: func(*testing.T, cloud.Ref, cloud.Depth) {
					for _, i := range l.instances {
						i.noSuspend = &failure{400, "badRequest", "Instances of this kind cannot be suspended.", false}
					}
					l.tokens.echo = true
				},
				Many: func(_ *testing.T, ref cloud.Ref, n int) {
					l.page = 50
					l.grow(ref.InfraID, n)
				},
				Throttle: func(_ *testing.T, n int) { l.throttle = n },
				Expire:   func(*testing.T) { l.tokens.refused, l.tokens.echo = true, true },
				Refuse: func(_ *testing.T, _ cloud.Ref, name string) {
					l.named(name).refuse, l.tokens.echo = true, true
				},
				Odd: func(_ *testing.T, _ cloud.Ref, name string) { l.named(name).Status = "HOVERING" },
				Hang: func(*testing.T) <-chan struct{} {
					l.hung = make(chan struct{}, 100)
					return l.hung
				},
				Planted: planted(),
			},
		}
	})
}

func TestStates(t *testing.T) {
	for status, want := range map[string]struct {
		state       cloud.State
		start, stop string
	}{
		"PENDING":        {cloud.Starting, "", "stop"},
		"PROVISIONING":   {cloud.Starting, "", "stop"},
		"STAGING":        {cloud.Starting, "", "stop"},
		"RUNNING":        {cloud.Running, "", "stop"},
		"PENDING_STOP":   {cloud.Stopping, "", ""},
		"STOPPING":       {cloud.Stopping, "", ""},
		"DEPROVISIONING": {cloud.Stopping, "", ""},
		"SUSPENDING":     {cloud.Stopping, "", ""},
		"STOPPED":        {cloud.Stopped, "start", ""},
		"TERMINATED":     {cloud.Stopped, "start", ""},
		"SUSPENDED":      {cloud.Stopped, "resume", "stop"},
		"REPAIRING":      {cloud.Failed, "", ""},
		"HOVERING":       {cloud.Unknown, "", ""},
		"":               {cloud.Unknown, "", ""},
	} {
		t.Run("an instance is "+status, func(t *testing.T) {
			l, ref := newLab(t), refTo(infra, "")
			i := l.add(infra, infra+"-master-0", zones[0], status)
			got := l.observe(t, ref)
			if len(got) != 1 || got[0].State != want.state || !got[0].ControlPlane {
				t.Errorf("observed %+v", got)
			}
			if telling := want.state == cloud.Failed || want.state == cloud.Unknown; telling != strings.Contains(got[0].Reason, status) || telling != (got[0].Reason != "") {
				t.Errorf("reason %q", got[0].Reason)
			}
			l.asks(t, "start", want.start, l.Start(t.Context(), ref))
			i.Status, i.next = status, nil
			l.asks(t, "stop", want.stop, l.Stop(t.Context(), ref))
		})
	}
}

// asks checks that the control plane got the request want, or none.
func (l *lab) asks(t *testing.T, doing, want string, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", doing, err)
	}
	if want != "" {
		want += " " + infra + "-master-0"
	}
	if got := strings.Join(l.calls, ", "); got != want {
		t.Errorf("to %s: asked %q, want %q", doing, got, want)
	}
	l.calls = nil
}

func TestSelection(t *testing.T) {
	for name, c := range map[string]struct {
		name, label string
		ours        bool
	}{
		"by name and label":                              {"c-12345-worker-b-x", "kubernetes-io-cluster-c-12345", true},
		"by name, if nothing is labelled":                {"c-12345-worker-b-x", "", true},
		"another infraID that begins alike is not ours":  {"c-12345x-worker-b-x", "", false},
		"nor is the name as a part of another":           {"z-c-12345-worker", "", false},
		"nor is one that only looks alike, with a label": {"c-12345-abcde-worker-b-x", "kubernetes-io-cluster-c-12345-abcde", false},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			i := l.add(infra, c.name, zones[0], "RUNNING")
			i.Labels = map[string]string{"team": "ours"}
			if c.label != "" {
				i.Labels[c.label] = "owned"
			}
			for _, l.loose = range []bool{false, true} { // the actuator must not rely on the server's filter alone
				if got := l.observe(t, refTo(infra, "")); (len(got) == 1) != c.ours {
					t.Errorf("observed %v; loose %t", got, l.loose)
				}
			}
		})
	}
}

func TestTheSameNameInTwoZonesIsTwoMachines(t *testing.T) {
	l, ref := newLab(t), refTo(infra, "")
	l.add(infra, infra+"-worker-0", zones[0], "RUNNING")
	l.add(infra, infra+"-worker-0", zones[1], "RUNNING")
	if got := l.observe(t, ref); len(got) != 2 || got[0].Name == got[1].Name {
		t.Errorf("observed %v", got)
	}
	if err := l.Stop(t.Context(), ref); err != nil || l.states() != "worker-0 STOPPING, worker-0 STOPPING" {
		t.Errorf("%v; %s", err, l.states())
	}
}

func TestAlreadyAsWantedOrGoneIsSuccess(t *testing.T) {
	for name, c := range map[string]struct {
		stale, status string
		do            func(*lab) func(context.Context, cloud.Ref) error
		gone          bool
	}{
		"it runs already (304)":               {"TERMINATED", "RUNNING", func(l *lab) func(context.Context, cloud.Ref) error { return l.Start }, false},
		"it is stopped already (304)":         {"RUNNING", "TERMINATED", func(l *lab) func(context.Context, cloud.Ref) error { return l.Stop }, false},
		"it has vanished after the look, up":  {"TERMINATED", "", func(l *lab) func(context.Context, cloud.Ref) error { return l.Start }, true},
		"it has vanished after the look, off": {"RUNNING", "", func(l *lab) func(context.Context, cloud.Ref) error { return l.Stop }, true},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			i := l.add(infra, infra+"-master-0", zones[0], c.status)
			i.stale = c.stale
			if c.gone {
				i.Name = infra + "-master-9" // lists still contain it, but calls cannot find it
			}
			if err := c.do(l)(t.Context(), refTo(infra, "")); err != nil {
				t.Error(err)
			}
			if len(l.calls) != 1 {
				t.Errorf("asked %v", l.calls)
			}
		})
	}
}

func TestLocalSSDs(t *testing.T) {
	for name, c := range map[string]struct {
		setting string
		denied  bool
	}{
		"are the user's to decide":  {"", true},
		"are discarded if wanted":   {`,"discardLocalSsdOnHibernate":true`, false},
		"are kept if that is asked": {`,"discardLocalSsdOnHibernate":false`, false},
	} {
		t.Run(name, func(t *testing.T) {
			l, ref := newLab(t), refTo(infra, c.setting)
			l.add(infra, infra+"-worker-a", zones[0], "RUNNING").Disks = append([]*compute.AttachedDisk{{Type: "PERSISTENT"}}, &compute.AttachedDisk{Type: "SCRATCH"})
			l.add(infra, infra+"-worker-b", zones[0], "RUNNING")
			err := l.Stop(t.Context(), ref)
			if c.denied {
				mustSay(t, err, fault.Denied, infra+"-worker-a", "spec.platform.gcp.discardLocalSsdOnHibernate", "clusters/mine")
				if got := l.states(); got != "worker-a RUNNING, worker-b STOPPING" {
					t.Error(got)
				}
				return
			}
			if err != nil || l.states() != "worker-a STOPPING, worker-b STOPPING" {
				t.Errorf("%v; %s", err, l.states())
			}
		})
	}
}

func TestAZoneThatCannotBeListed(t *testing.T) {
	for name, c := range map[string]struct {
		zone, region string
		hides        bool
	}{
		"hides machines, so nothing is known of the cluster": {"us-east1-b", "us-east1", true},
		"matters not if the cluster is elsewhere":            {"asia-east1-a", "us-east1", false},
		"matters if nobody knows where the cluster is":       {"asia-east1-a", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			ref := l.cluster(t, 3)
			ref.Platform.GCP.Raw = []byte(strings.Replace(string(ref.Platform.GCP.Raw), `"us-east1"`, `"`+c.region+`"`, 1))
			l.named(infra + "-master-0").Zone = l.URL + "/zones/us-east1-c"
			l.instances["us-east1-c/"+infra+"-master-0"] = l.named(infra + "-master-0")
			delete(l.instances, "us-east1-b/"+infra+"-master-0")
			l.down[c.zone] = "UNREACHABLE"
			_, err := l.Observe(t.Context(), ref)
			if !c.hides {
				if err != nil {
					t.Error(err)
				}
				return
			}
			mustSay(t, err, fault.Wait, c.zone, "UNREACHABLE")
		})
	}
}

func TestWhileAZoneIsHiddenOtherWorkersStopAndTheControlPlaneStays(t *testing.T) {
	l := newLab(t)
	ref := refTo(infra, "")
	l.add(infra, infra+"-master-0", "us-east1-b", "RUNNING")
	l.add(infra, infra+"-worker-b", "us-east1-b", "RUNNING")
	l.add(infra, infra+"-worker-c", "us-east1-c", "RUNNING")
	l.down["us-east1-c"] = "UNREACHABLE"
	for range 3 {
		mustSay(t, l.Stop(t.Context(), ref), fault.Wait, "us-east1-c")
		l.step()
	}
	if got := l.states(); got != "master-0 RUNNING, worker-b TERMINATED, worker-c RUNNING" {
		t.Error(got)
	}
}

// Requests for tokens, lists and changes must have their own deadlines, even if the caller's
// context has none.
func TestEachRequestHasADeadlineOfItsOwn(t *testing.T) {
	l := newLab(t)
	ref := l.cluster(t, 2)
	timed := cloudtest.NewTimedTransport(t, http.DefaultTransport, powerorder.RequestTimeout)
	l.Actuator = New(func(context.Context, types.NamespacedName) (map[string][]byte, error) { return l.secret, nil },
		Options{Endpoint: l.URL + "/compute/v1/", Transport: timed})
	l.observe(t, ref)
	for range 2 { // workers, then the control plane
		if err := l.Stop(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			l.step()
		}
	}
	if err := l.Start(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	if n := timed.RequestCount(); n < 8 {
		t.Errorf("only %d requests were looked at", n)
	}
}
