package azure

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/cloud/cloudtest"
	"hotspare.io/hotspare/internal/cloud/powerorder"
	"hotspare.io/hotspare/internal/fault"
)

// lab is a simulator with an actuator and its Secrets.
type lab struct {
	*sim
	Actuator
	// hibernation is whether hibernation is enabled for new machines.
	hibernation bool
	secrets     map[string]map[string][]byte
}

const principal = `{"clientId":"` + clientID + `","clientSecret":"` + password + `","tenantId":"` + tenantID + `","subscriptionId":"` + subscription + `"}`

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{sim: newSim(t), secrets: map[string]map[string][]byte{"azure-creds": {secretKey: []byte(principal)}}}
	l.Actuator = New(func(_ context.Context, key types.NamespacedName) (map[string][]byte, error) {
		if data := l.secrets[key.Name]; data != nil && key.Namespace == "clusters" {
			return data, nil
		}
		return nil, fault.NewDenied("no Secret %s", key)
	}, l.sim)
	return l
}

// refTo returns a cluster in the group <infraID>-rg; more is JSON for spec.platform.azure.
func refTo(infraID, more string) cloud.Ref {
	return cloud.Ref{
		Cluster: types.NamespacedName{Namespace: "clusters", Name: "mine"}, InfraID: infraID,
		Platform: hivev1.Platform{Azure: &runtime.RawExtension{Raw: []byte(`{"credentialsSecretRef":{"name":"azure-creds"}` + more + `}`)}},
		Metadata: inGroup(infraID + "-RG"),
	}
}

func inGroup(name string) *hivev1.ClusterMetadata {
	return &hivev1.ClusterMetadata{Platform: &runtime.RawExtension{Raw: []byte(`{"azure":{"resourceGroupName":"` + name + `"}}`)}}
}

// create creates a stopped cluster with one control plane machine and n workers.
func (l *lab) create(infraID string, n int) cloud.Ref {
	l.add(infraID+"-rg", infraID, infraID+"-master-0", "deallocated").hibernates = l.hibernation
	l.grow(infraID, n)
	return refTo(infraID, "")
}

// grow adds n workers to a cluster.
func (l *lab) grow(infraID string, n int) {
	for range n {
		i := len(l.groups[infraID+"-rg"]) - 1
		l.add(infraID+"-rg", infraID, fmt.Sprintf("%s-worker-eastus%d-%04d", infraID, i%3, i), "deallocated").hibernates = l.hibernation
	}
}

// cluster creates a running cluster with one control plane machine and n workers.
func (l *lab) cluster(t *testing.T, n int) cloud.Ref {
	t.Helper()
	ref := l.create(infra, n)
	for _, m := range l.groups[infra+"-rg"] {
		m.power = "running"
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

// states returns the machines with their states, according to the simulator.
func (l *lab) states() string {
	var all []string
	for _, group := range l.groups {
		for name, m := range group {
			all = append(all, strings.TrimPrefix(name, infra+"-")+" "+m.power)
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func TestPower(t *testing.T) {
	cloudtest.Run(t, func(t *testing.T) cloudtest.Cloud {
		l := newLab(t)
		l.hibernation = true
		return cloudtest.Cloud{
			Against:  "the fake server of Azure's SDK, with simulated machines behind it",
			Actuator: l.Actuator,
			Create:   func(_ *testing.T, infraID string, workers int) cloud.Ref { return l.create(infraID, workers) },
			Vanish:   func(_ *testing.T, ref cloud.Ref, name string) { delete(l.groups[ref.InfraID+"-rg"], name) },
			Break:    func(_ *testing.T, _ cloud.Ref, name string) { l.named(name).broken = true },
			Step:     l.step,
			Depths:   []cloud.Depth{cloud.DepthSuspend},
			GuestsAreUp: func(ref cloud.Ref) bool {
				for _, m := range l.groups[ref.InfraID+"-rg"] {
					if !m.guest.IsUp() {
						return false
					}
				}
				return true
			},
			Faults: cloudtest.Faults{
				RefuseDepth: func(_ *testing.T, ref cloud.Ref, _ cloud.Depth) {
					for _, m := range l.groups[ref.InfraID+"-rg"] {
						m.noHibernate = &failure{409, "OperationNotAllowed", "The VM has extension 'AzureHibernateExtension' in failed state.", ""}
					}
					l.echo = true
				},
				Many: func(_ *testing.T, ref cloud.Ref, n int) {
					l.page = 50
					l.grow(ref.InfraID, n)
				},
				Throttle: func(_ *testing.T, n int) { l.throttle = n },
				Expire:   func(*testing.T) { l.refused, l.echo = true, true },
				Refuse: func(_ *testing.T, _ cloud.Ref, name string) {
					l.named(name).refuse, l.echo = true, true
				},
				Odd: func(_ *testing.T, _ cloud.Ref, name string) { l.named(name).power = "hovering" },
				Hang: func(*testing.T) <-chan struct{} {
					l.hung = make(chan struct{}, 100)
					return l.hung
				},
				Planted: []string{password, tokenPrefix},
			},
		}
	})
}

func TestAMachineOnTwoPagesIsOne(t *testing.T) {
	l := newLab(t)
	ref := l.cluster(t, 20)
	l.overlap = true
	if got := l.observe(t, ref); len(got) != 21 {
		t.Errorf("%d machines: %v", len(got), got)
	}
}

func TestStates(t *testing.T) {
	for name, c := range map[string]struct {
		power, provisioning string
		state               cloud.State
		reason, start, stop string
	}{
		"starting":                  {"starting", "updating", cloud.Starting, "", "", "deallocate"},
		"running":                   {"running", "succeeded", cloud.Running, "", "", "deallocate"},
		"running, in whatever case": {"RUNNING", "Succeeded", cloud.Running, "", "", "deallocate"},
		"running, though something else has failed": {"running", "failed/VMExtensionError", cloud.Running, "", "", "deallocate"},
		"stopping":                 {"stopping", "updating", cloud.Stopping, "", "", ""},
		"deallocating":             {"deallocating", "updating", cloud.Stopping, "", "", ""},
		"deallocated":              {"deallocated", "succeeded", cloud.Stopped, "", "start", ""},
		"powered off, which costs": {"stopped", "succeeded", cloud.Failed, "still charges", "start", "deallocate"},
		"without room":             {"deallocated", "failed/AllocationFailed", cloud.Failed, "AllocationFailed", "start", "deallocate"},
		"failed without a reason":  {"deallocated", "failed", cloud.Failed, "the last operation on it failed", "start", "deallocate"},
		"being deleted":            {"running", "deleting", cloud.Stopping, "", "", ""},
		"being made":               {"", "creating", cloud.Starting, "", "", "deallocate"},
		"without an instance view": {"", "", cloud.Unknown, "does not report", "", ""},
		"without a power state":    {"", "updating", cloud.Unknown, "does not report", "", ""},
		"unknown to Azure":         {"unknown", "succeeded", cloud.Unknown, "PowerState/unknown", "", ""},
		"unknown to us":            {"hovering", "succeeded", cloud.Unknown, "PowerState/hovering", "", ""},
	} {
		t.Run("a machine is "+name, func(t *testing.T) {
			l, ref := newLab(t), refTo(infra, "")
			m := l.add(infra+"-rg", infra, infra+"-master-0", c.power)
			m.provisioning = c.provisioning
			got := l.observe(t, ref)
			if len(got) != 1 || got[0].State != c.state || !got[0].ControlPlane {
				t.Fatalf("observed %+v", got)
			}
			if (c.reason == "") != (got[0].Reason == "") || !strings.Contains(got[0].Reason, c.reason) {
				t.Errorf("reason %q", got[0].Reason)
			}
			l.asks(t, "start", c.start, l.Start(t.Context(), ref))
			m.power, m.provisioning, m.next = c.power, c.provisioning, nil
			l.asks(t, "stop", c.stop, l.Stop(t.Context(), ref))
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

func TestSelectionInASharedGroup(t *testing.T) {
	for name, c := range map[string]struct {
		name, tag, value string
		ours             bool
	}{
		"by name and tag":                                {"c-12345-worker-x", "kubernetes.io_cluster.c-12345", "owned", true},
		"by name, if nothing is tagged":                  {"c-12345-worker-x", "team", "owned", true},
		"by name, in whatever case":                      {"C-12345-WORKER-x", "team", "owned", true},
		"by tag, with the short name of a Windows node":  {"winwork-abcde", "kubernetes.io_cluster.c-12345", "owned", true},
		"by tag, in whatever case":                       {"winwork-abcde", "Kubernetes.io_Cluster.C-12345", "owned", true},
		"a tag that does not say owned is none":          {"winwork-abcde", "kubernetes.io_cluster.c-12345", "shared", false},
		"another infraID that begins alike is not ours":  {"c-12345x-worker-x", "team", "owned", false},
		"nor is one that only looks alike, with its tag": {"c-12345-abcde-worker-x", "kubernetes.io_cluster.c-12345-abcde", "owned", false},
		"nor is anything else in the group":              {"jumphost", "team", "owned", false},
	} {
		t.Run(name, func(t *testing.T) {
			l, ref := newLab(t), refTo(infra, "")
			ref.Metadata = inGroup("Shared")
			l.add("shared", infra, c.name, "running").tags = map[string]string{c.tag: c.value}
			if got := l.observe(t, ref); (len(got) == 1) != c.ours {
				t.Errorf("observed %v", got)
			}
		})
	}
}

func TestTheResourceGroup(t *testing.T) {
	secret := func(text string) func(*lab, *cloud.Ref) {
		return func(l *lab, ref *cloud.Ref) {
			l.secrets["meta"] = map[string][]byte{"metadata.json": []byte(text)}
			ref.Metadata = &hivev1.ClusterMetadata{MetadataJSONSecretRef: &corev1.LocalObjectReference{Name: "meta"}}
		}
	}
	for name, c := range map[string]struct {
		change func(*lab, *cloud.Ref)
		denied string // words of the error; empty if the machine is found
	}{
		"is in the metadata":               {func(*lab, *cloud.Ref) {}, ""},
		"is in the Secret":                 {secret(`{"infraID":"c-12345","azure":{"resourceGroupName":"c-12345-rg"}}`), ""},
		"follows from the infraID":         {secret(`{"infraID":"c-12345","azure":{"region":"eastus"}}`), ""},
		"is not in another cloud's Secret": {secret(`{"aws":{}}`), "Secret clusters/meta, key metadata.json"},
		"is not in a Secret of no JSON":    {secret(`hello`), "Secret clusters/meta, key metadata.json"},
		"is not in a Secret that is gone": {func(_ *lab, ref *cloud.Ref) {
			ref.Metadata = &hivev1.ClusterMetadata{MetadataJSONSecretRef: &corev1.LocalObjectReference{Name: "lost"}}
		}, "no Secret clusters/lost"},
		"is nowhere without metadata": {func(_ *lab, ref *cloud.Ref) { ref.Metadata = nil }, "spec.clusterMetadata.platform.azure.resourceGroupName"},
		"is nowhere in empty metadata": {
			func(_ *lab, ref *cloud.Ref) { ref.Metadata = &hivev1.ClusterMetadata{} },
			"spec.clusterMetadata.metadataJSONSecretRef",
		},
		"does not exist": {func(_ *lab, ref *cloud.Ref) { ref.Metadata = inGroup("lost-rg") }, "lost-rg: it does not exist in subscription " + subscription},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			ref := l.cluster(t, 0)
			c.change(l, &ref)
			ms, err := l.Observe(t.Context(), ref)
			if c.denied != "" {
				mustSay(t, err, fault.Denied, c.denied)
				return
			}
			if err != nil || len(ms) != 1 {
				t.Errorf("%v, %v", ms, err)
			}
		})
	}
}

func TestGovernmentClouds(t *testing.T) {
	for name, c := range map[string]struct{ login, manage, audience string }{
		"AzureUSGovernmentCloud": {"login.microsoftonline.us", "management.usgovcloudapi.net", "https://management.core.usgovcloudapi.net"},
		"AzureChinaCloud":        {"login.chinacloudapi.cn", "management.chinacloudapi.cn", "https://management.core.chinacloudapi.cn"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.cluster(t, 1)
			l.login, l.manage, l.audience = c.login, c.manage, c.audience
			if got := l.observe(t, refTo(infra, `,"cloudName":"`+name+`"`)); len(got) != 2 {
				t.Errorf("observed %v", got)
			}
		})
	}
	t.Run("an unknown one is refused", func(t *testing.T) {
		l := newLab(t)
		l.cluster(t, 1)
		_, err := l.Observe(t.Context(), refTo(infra, `,"cloudName":"AzureStackCloud"`))
		mustSay(t, err, fault.Denied, "spec.platform.azure.cloudName", "clusters/mine", "AzureStackCloud", "AzurePublicCloud")
	})
}

func TestAMachineThatVanishesMeanwhileIsNoError(t *testing.T) {
	l := newLab(t)
	ref := l.cluster(t, 2)
	l.named(infra + "-worker-eastus0-0000").gone = true
	if got := l.observe(t, ref); len(got) != 2 {
		t.Errorf("observed %v", got)
	}
	l.fail = &failure{404, "ResourceNotFound", "gone since the look", ""}
	if err := l.Stop(t.Context(), ref); err != nil {
		t.Error(err)
	}
}

func TestAMachineThatCannotBeLookedAtIsNotTakenForStopped(t *testing.T) {
	l := newLab(t)
	ref := l.cluster(t, 2)
	l.named(infra + "-worker-eastus0-0000").blind = true
	_, err := l.Observe(t.Context(), ref)
	mustSay(t, err, fault.Wait, infra+"-worker-eastus0-0000")
	for range 3 {
		mustSay(t, l.Stop(t.Context(), ref), fault.Wait, infra+"-worker-eastus0-0000")
		l.step()
	}
	if got := l.states(); got != "master-0 running, worker-eastus0-0000 running, worker-eastus1-0001 deallocated" {
		t.Error(got)
	}
}

// Requests for tokens, lists, views and changes must have their own deadlines, even if the caller's
// context has none.
func TestEachRequestHasADeadlineOfItsOwn(t *testing.T) {
	l := newLab(t)
	ref := l.cluster(t, 2)
	timed := cloudtest.NewTimedTransport(t, l.sim, powerorder.RequestTimeout)
	l.Actuator = New(func(_ context.Context, key types.NamespacedName) (map[string][]byte, error) {
		return l.secrets[key.Name], nil
	}, timed)
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
	if n := timed.RequestCount(); n < 12 {
		t.Errorf("only %d requests were looked at", n)
	}
}
