package openstack

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/cloud/cloudtest"
	"hotspare.io/hotspare/internal/fault"
)

const infraID = "c-12345"

// lab is the platform with a simulated cloud.
type lab struct {
	Actuator
	*sim
	// secrets are the Secrets of the hub in namespace clusters.
	secrets map[string]map[string][]byte
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{sim: newSim(t), secrets: map[string]map[string][]byte{}}
	l.secrets["os-creds"] = map[string][]byte{secretKey: l.clouds(nil)}
	l.Actuator = New(l.secret, nil)
	return l
}

func (l *lab) secret(_ context.Context, name types.NamespacedName) (map[string][]byte, error) {
	data, ok := l.secrets[name.Name]
	if !ok || name.Namespace != "clusters" {
		return nil, fault.NewDenied("no Secret %s", name)
	}
	return data, nil
}

// clouds returns a clouds.yaml with the cloud "lab", after a change.
func (l *lab) clouds(change func(cloud, auth map[string]any)) []byte {
	auth := map[string]any{
		"auth_url": l.URL + "/identity", "username": user, "password": password, "user_domain_name": "Default",
		"project_name": project, "project_domain_name": "Default",
	}
	one := map[string]any{"auth": auth, "region_name": "one", "identity_api_version": 3, "cacert": "/etc/some/ca.crt"}
	if change != nil {
		change(one, auth)
	}
	raw, err := json.Marshal(map[string]any{"clouds": map[string]any{"lab": one}}) // JSON is YAML
	if err != nil {
		panic(err)
	}
	return raw
}

// refTo returns a cluster with spec.platform.openstack set to platform and its defaults.
func refTo(infraID string, platform map[string]any) cloud.Ref {
	all := map[string]any{"cloud": "lab", "credentialsSecretRef": map[string]any{"name": "os-creds"}}
	for k, v := range platform {
		all[k] = v
	}
	raw, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return cloud.Ref{
		Cluster:  types.NamespacedName{Namespace: "clusters", Name: "mine"},
		InfraID:  infraID,
		Platform: hivev1.Platform{OpenStack: &runtime.RawExtension{Raw: raw}},
	}
}

// member returns a server of cluster infraID.
func member(infraID, name string) vm {
	return vm{server: server{Name: infraID + "-" + name, Metadata: map[string]string{"Name": name, clusterKey: infraID}, Tags: []string{clusterKey + "=" + infraID}}}
}

func (l *lab) workers(infraID string, n int) {
	for i := range n {
		l.add(member(infraID, fmt.Sprintf("worker-0-%05d", len(l.servers)+i)))
	}
}

// cluster creates a cluster with one master and some workers, all off.
func (l *lab) cluster(workers int) cloud.Ref {
	l.add(member(infraID, "master-0"))
	for i := range workers {
		l.add(member(infraID, fmt.Sprintf("worker-%d", i)))
	}
	return refTo(infraID, nil)
}

// named returns the server with that name.
func (l *lab) named(name string) *vm {
	i := slices.IndexFunc(l.servers, func(v *vm) bool { return v.Name == name })
	return l.servers[i]
}

// set sets a server's status.
func (l *lab) set(name, status, task string) *vm {
	v := l.named(infraID + "-" + name)
	l.do(func() { v.Status, v.Task, v.next = status, task, "" })
	return v
}

func (l *lab) observe(t *testing.T, ref cloud.Ref) cloud.Machines {
	t.Helper()
	ms, err := l.Observe(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	return ms
}

func (l *lab) sees(t *testing.T, ref cloud.Ref, want string) {
	t.Helper()
	if diff := cmp.Diff(want, strings.ReplaceAll(l.observe(t, ref).String(), infraID+"-", "")); diff != "" {
		t.Errorf("machines (-want +got):\n%s", diff)
	}
}

// told returns the actions that were requested for servers, in order: "master-0 os-stop".
func (l *lab) told() []string {
	var out []string
	for _, call := range l.calls {
		_, rest, ok := strings.Cut(call, "/servers/")
		id, action, isAction := strings.Cut(rest, "/action ")
		if !ok || !isAction {
			continue
		}
		for _, v := range l.servers {
			if v.ID == id {
				out = append(out, strings.TrimPrefix(v.Name, infraID+"-")+" "+strings.Split(action, `"`)[1])
			}
		}
	}
	slices.Sort(out)
	return out
}

func (l *lab) wantTold(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, l.told()); diff != "" {
		t.Errorf("servers were asked (-want +got):\n%s", diff)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// mustSay checks an error's kind, that it contains words, and that it contains no secret.
func mustSay(t *testing.T, err error, kind fault.Kind, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	if got := fault.KindOf(err); got != kind {
		t.Errorf("%s, want %s: %v", got, kind, err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q is not in: %v", w, err)
		}
	}
	for _, secret := range []string{password, bogus} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("a secret is told: %v", err)
		}
	}
}

// all makes all three calls.
func (l *lab) all(ctx context.Context, ref cloud.Ref) []error {
	_, err := l.Observe(ctx, ref)
	return []error{err, l.Start(ctx, ref), l.Stop(ctx, ref)}
}

func TestPower(t *testing.T) {
	cloudtest.Run(t, func(t *testing.T) cloudtest.Cloud { return newCloud(t, false) })
}

func TestPowerShelves(t *testing.T) {
	cloudtest.Run(t, func(t *testing.T) cloudtest.Cloud { return newCloud(t, true) })
}

func newCloud(t *testing.T, shelve bool) cloudtest.Cloud {
	t.Helper()
	l := newLab(t)
	change := func(name string, f func(*vm)) {
		v := l.named(name)
		l.do(func() { f(v) })
	}
	return cloudtest.Cloud{
		Against:  "our simulators of Keystone and Nova; `make test-sims` also uses Debian's real ones, Nova with its fake driver",
		Actuator: l.Actuator,
		Create: func(_ *testing.T, infraID string, workers int) cloud.Ref {
			l.add(member(infraID, "master-0"))
			l.workers(infraID, workers)
			if shelve {
				l.do(func() {
					for _, v := range l.servers {
						v.Status = "SHELVED_OFFLOADED"
					}
				})
			}
			ref := refTo(infraID, nil)
			ref.Shelve = shelve
			return ref
		},
		Vanish: func(_ *testing.T, _ cloud.Ref, name string) { change(name, func(v *vm) { l.remove(v.ID) }) },
		Break:  func(_ *testing.T, _ cloud.Ref, name string) { change(name, func(v *vm) { v.broken = true }) },
		Step:   l.Step,
		Depths: []cloud.Depth{cloud.DepthFreeze, cloud.DepthSuspend},
		GuestsAreUp: func(cloud.Ref) bool {
			return !slices.ContainsFunc(l.servers, func(v *vm) bool { return !v.guest.IsUp() })
		},
		Faults: cloudtest.Faults{
			RefuseDepth: func(*testing.T, cloud.Ref, cloud.Depth) {
				l.do(func() {
					for _, v := range l.servers {
						v.refused = map[string]failure{"pause": {status: 403, body: "Policy doesn't allow os_compute_api:os-pause-server:pause to be performed."}}
					}
				})
			},
			Many:     func(_ *testing.T, ref cloud.Ref, n int) { l.workers(ref.InfraID, n) },
			Throttle: func(_ *testing.T, n int) { l.do(func() { l.throttled = n }) },
			Expire:   func(*testing.T) { l.do(func() { l.expired = true; clear(l.tokens) }) },
			Refuse: func(_ *testing.T, _ cloud.Ref, name string) {
				change(name, func(v *vm) { v.refuse = "Policy doesn't allow it to " + password })
			},
			Odd: func(_ *testing.T, _ cloud.Ref, name string) { change(name, func(v *vm) { v.Status = "MOTHBALLED" }) },
			Hang: func(*testing.T) <-chan struct{} {
				l.do(func() { l.hang = make(chan struct{}, 100) })
				return l.hang
			},
			Planted: []string{password, bogus},
		},
	}
}
