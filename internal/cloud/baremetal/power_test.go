package baremetal

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/cloud/baremetal/redfishtest"
	"hotspare.io/hotspare/internal/cloud/cloudtest"
	"hotspare.io/hotspare/internal/fault"
)

const (
	infraID  = "c-12345"
	user     = "hotspare"
	password = `pläntéd/"secret+1=`
	// tick is the simulated time of each step of a simulator.
	tick = 10 * time.Second
)

// lab is the platform with a simulated enclosure of hosts.
type lab struct {
	*Actuator
	bmc     *redfishtest.Server
	time    *testclock.FakePassiveClock
	hosts   map[string][]hostEntry // by cluster
	secrets map[types.NamespacedName]map[string]string
}

func newLab(t *testing.T) *lab {
	t.Helper()
	return labOf(redfishtest.New(t))
}

// labOf returns a lab; a nil bmc means no BMC.
func labOf(bmc *redfishtest.Server) *lab {
	if bmc != nil {
		bmc.AddAccount(user, password)
	}
	l := &lab{
		bmc: bmc, time: testclock.NewFakePassiveClock(now),
		hosts: map[string][]hostEntry{}, secrets: map[types.NamespacedName]map[string]string{},
	}
	l.restart()
	return l
}

// restart simulates a new process, which remembers nothing.
func (l *lab) restart() {
	l.Actuator = New(l.secret, nil)
	l.clock = l.time
}

func (l *lab) secret(_ context.Context, name types.NamespacedName) (map[string][]byte, error) {
	data, ok := l.secrets[name]
	if !ok {
		return nil, fault.NewDenied("Secret %s does not exist", name)
	}
	out := map[string][]byte{}
	for k, v := range data {
		out[k] = []byte(v)
	}
	return out, nil
}

func (l *lab) step() {
	l.bmc.AdvanceStates()
	l.pass(tick)
}

func (l *lab) pass(d time.Duration) { l.time.SetTime(l.time.Now().Add(d)) }

func named(cluster string) types.NamespacedName {
	return types.NamespacedName{Namespace: "ns", Name: cluster}
}

func refOf(infraID string) cloud.Ref {
	return cloud.Ref{
		Cluster: named(infraID), InfraID: infraID,
		Platform: hivev1.Platform{BareMetal: &runtime.RawExtension{Raw: []byte(`{}`)}},
	}
}

// add adds a host of the enclosure to a cluster.
func (l *lab) add(cluster, name, role string, sys redfishtest.System) {
	sys.ID = cluster + "-" + name
	l.bmc.AddSystem(sys)
	l.list(cluster, entry(name, role, l.address(sys.ID)))
}

func (l *lab) address(id string) string {
	scheme := "redfish-virtualmedia://"
	if strings.HasPrefix(l.bmc.URL, "http://") {
		scheme = "redfish+http://"
	}
	return scheme + l.bmc.HostPort() + "/redfish/v1/Systems/" + id
}

func entry(name, role, address string) hostEntry {
	w := hostEntry{Name: name, Role: role}
	w.BMC.Address, w.BMC.Username, w.BMC.Password = address, user, password
	return w
}

// list adds hosts to a cluster's Secret.
func (l *lab) list(cluster string, hosts ...hostEntry) {
	l.hosts[cluster] = append(l.hosts[cluster], hosts...)
	raw, err := json.Marshal(l.hosts[cluster])
	if err != nil {
		panic(err)
	}
	l.secrets[named(cluster+"-bmc")] = map[string]string{"hosts.yaml": string(raw), "infraID": cluster, "ca.crt": string(l.bmc.Roots)}
}

func (l *lab) workers(cluster string, from, n int) {
	for i := range n {
		l.add(cluster, fmt.Sprintf("worker-%03d", from+i), "worker", redfishtest.System{Terse: i%2 == 1})
	}
}

func TestPower(t *testing.T) {
	cloudtest.Run(t, func(t *testing.T) cloudtest.Cloud {
		l := labOf(redfishtest.NewWithoutTLS(t))
		change := func(t *testing.T, ref cloud.Ref, name string, f func(*redfishtest.System)) {
			t.Helper()
			l.bmc.ChangeSystem(t, ref.Cluster.Name+"-"+name, f)
		}
		return cloudtest.Cloud{
			Against:  "our Redfish simulator of BMCs, which works with redfishtool; `make test-sims` also uses pyghmi's, by IPMI",
			Actuator: l.Actuator,
			Create: func(_ *testing.T, infraID string, workers int) cloud.Ref {
				l.add(infraID, "master-0", "master", redfishtest.System{})
				l.workers(infraID, 0, workers)
				return refOf(infraID)
			},
			Vanish: func(_ *testing.T, ref cloud.Ref, name string) {
				l.bmc.RemoveSystem(ref.Cluster.Name + "-" + name)
				l.hosts[ref.Cluster.Name] = slices.DeleteFunc(l.hosts[ref.Cluster.Name], func(w hostEntry) bool { return w.Name == name })
				l.list(ref.Cluster.Name)
			},
			Step: l.step,
			Faults: cloudtest.Faults{
				Many:     func(_ *testing.T, ref cloud.Ref, n int) { l.workers(ref.Cluster.Name, 500, n) },
				Throttle: func(_ *testing.T, n int) { l.bmc.ThrottleNextRequests(n) },
				Expire:   func(*testing.T) { l.bmc.RemoveAllAccounts() },
				Refuse: func(t *testing.T, ref cloud.Ref, name string) {
					change(t, ref, name, func(s *redfishtest.System) {
						s.Refusal = &redfishtest.Error{Status: 403, Message: "No privilege for " + user + ", " + password + "."}
					})
				},
				Odd: func(t *testing.T, ref cloud.Ref, name string) {
					change(t, ref, name, func(s *redfishtest.System) { s.State = "Mothballed" })
				},
				Hang:    func(*testing.T) <-chan struct{} { return l.bmc.HangEveryRequest() },
				Planted: []string{password},
			},
		}
	})
}

func (l *lab) observe(t *testing.T) cloud.Machines {
	t.Helper()
	ms, err := l.Observe(t.Context(), refOf(infraID))
	if err != nil {
		t.Fatal(err)
	}
	return ms
}

// sees fails the test unless the hosts have the states in want: "a Running, b Stopped".
func (l *lab) sees(t *testing.T, want string) {
	t.Helper()
	if got := l.observe(t).String(); got != want {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
}

func (l *lab) stop(t *testing.T, since time.Time) {
	t.Helper()
	ref := refOf(infraID)
	ref.Since = since
	if err := l.Stop(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
}

func (l *lab) start(t *testing.T) {
	t.Helper()
	if err := l.Start(t.Context(), refOf(infraID)); err != nil {
		t.Fatal(err)
	}
}

// settle completes all resets.
func (l *lab) settle() {
	for range 4 {
		l.step()
	}
}

func (l *lab) resets(t *testing.T, want ...string) {
	t.Helper()
	if got := l.bmc.RecordedResets(); !slices.Equal(got, want) {
		t.Errorf("resets\ngot  %s\nwant %s", strings.Join(got, ", "), strings.Join(want, ", "))
	}
}

func TestEachStateIsTold(t *testing.T) {
	for state, want := range map[string]string{
		"On":          "Running: ",
		"Off":         "Stopped: ",
		"PoweringOn":  "Starting: ",
		"PoweringOff": "Stopping: ",
		"Paused":      "Failed: its BMC reports the power state Paused; starting the cluster resumes it, and stopping powers it off",
		"Mothballed":  `Unknown: its BMC reports the power state "Mothballed"`,
	} {
		t.Run(state, func(t *testing.T) {
			l := newLab(t)
			l.add(infraID, "master-0", "master", redfishtest.System{State: state})
			m := l.observe(t)[0]
			if got := string(m.State) + ": " + m.Reason; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestTheControlPlaneIsToldByRole(t *testing.T) {
	l := newLab(t)
	for _, role := range []string{"master", "worker", "arbiter", "control-plane", ""} {
		l.add(infraID, "host-"+role, role, redfishtest.System{})
	}
	var got []string
	for _, m := range l.observe(t) {
		if m.ControlPlane {
			got = append(got, m.Name)
		}
	}
	if want := []string{"host-arbiter", "host-control-plane", "host-master"}; !slices.Equal(got, want) {
		t.Errorf("control plane: got %v, want %v", got, want)
	}
}
