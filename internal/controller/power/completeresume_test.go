package power

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/cloud/capi"
	"hotspare.io/hotspare/internal/clusterapi"
	"hotspare.io/hotspare/internal/clusterapi/capitest"
)

// capiHub is a hub with a cluster of Cluster API: its actuator is that of platform capi, on simulated
// controllers of Cluster API and the machines of the sim.
type capiHub struct {
	*hub
	api *capitest.Hub
	// resuming is set once the user has asked for the resume.
	resuming bool
}

func newCAPIHub(t *testing.T) *capiHub {
	t.Helper()
	h := &capiHub{hub: newHub(t, func(cd *hivev1.ClusterDeployment) { cd.Spec.Platform = hivev1.Platform{CAPI: &hivev1.CAPIPlatform{}} })}
	h.api = capitest.New(t, h.sim.clock)
	h.api.Running = func(providerID string) bool { return h.isUp(strings.TrimPrefix(providerID, "sim://")) }
	cluster := capitest.Object(clusterapi.Group+"/"+clusterapi.Version, "Cluster", "c", "infra", map[string]any{})
	capitest.SetCondition(cluster, clusterapi.Available, true, "")
	h.api.Add(cluster)
	h.api.AddMachine("c", "infra", "m0", "sim://m0", true)
	h.api.AddMachine("c", "infra", "w0", "sim://w0", false)
	h.restart()
	return h
}

// isUp reports whether a machine runs and its node is ready.
func (h *capiHub) isUp(name string) bool {
	i := slices.IndexFunc(h.vms, func(m *vm) bool { return m.Name == name })
	return i >= 0 && h.vms[i].State == cloud.Running && h.away != name
}

// restart starts another process of hotspare.
func (h *capiHub) restart() {
	actuator := capi.New(h.api, []capi.Provider{{Scheme: "sim", Actuator: simInstances{sim: h.sim}}}, h.sim.clock)
	h.Actuators = cloud.Registry{"capi": mortal{actuator}}
}

// mortal is an actuator in a process that ends when the hub says so.
type mortal struct{ *capi.Actuator }

func (m mortal) Start(ctx context.Context, ref cloud.Ref) error {
	return dieOfCrash(m.Actuator.Start(ctx, ref))
}

func (m mortal) Stop(ctx context.Context, ref cloud.Ref) error {
	return dieOfCrash(m.Actuator.Stop(ctx, ref))
}

func (m mortal) CompleteResume(ctx context.Context, ref cloud.Ref, readyNodes []string) error {
	return dieOfCrash(m.Actuator.CompleteResume(ctx, ref, readyNodes))
}

func dieOfCrash(err error) error {
	if errors.Is(err, capitest.ErrCrash) {
		panic(errDied)
	}
	return err
}

// simInstances controls machines of the sim by provider ID.
type simInstances struct {
	*sim
	list []cloud.Instance
}

func (s simInstances) ForInstances(list []cloud.Instance) (cloud.Actuator, error) {
	s.list = list
	return s, nil
}

func (s simInstances) forEach(do func(cloud.Instance, *vm)) {
	s.settle()
	for _, i := range s.list {
		for _, m := range s.vms {
			if "sim://"+m.Name == i.ProviderID {
				do(i, m)
			}
		}
	}
}

func (s simInstances) Observe(context.Context, cloud.Ref) (cloud.Machines, error) {
	var ms cloud.Machines
	s.forEach(func(i cloud.Instance, m *vm) {
		ms = append(ms, cloud.Machine{Name: i.Name, ControlPlane: i.ControlPlane, State: m.State, ProviderID: i.ProviderID})
	})
	return ms, nil
}

func (s simInstances) Start(context.Context, cloud.Ref) error {
	s.forEach(func(_ cloud.Instance, m *vm) {
		if m.State == cloud.Stopped {
			m.State, m.until = cloud.Starting, s.clock.Now().Add(starting)
		}
	})
	return nil
}

func (s simInstances) Stop(context.Context, cloud.Ref) error {
	s.forEach(func(_ cloud.Instance, m *vm) {
		if m.State == cloud.Running {
			m.State, m.until = cloud.Stopping, s.clock.Now().Add(stopping)
		}
	})
	return nil
}

// pass does one pass, after which a process that has died is replaced, and lets Cluster API's
// controllers work. It then checks what must always hold.
func (h *capiHub) pass() (next time.Duration) {
	h.Helper()
	func() {
		defer func() {
			if r := recover(); r == any(errDied) {
				h.restart()
			} else if r != nil {
				panic(r)
			}
		}()
		next = h.hub.pass()
	}()
	if h.writes == h.dieAfter {
		h.restart()
	}
	paused := clusterapi.IsPausedByHotspare(h.api.Get(clusterapi.Clusters, "c", "infra"))
	if h.resuming && !paused && (!h.isUp("m0") || !h.isUp("w0")) {
		h.Errorf("the Cluster is unpaused before its nodes are ready: %s, %s; not ready: %q", h.vms[0].State, h.vms[1].State, h.away)
	}
	if state := h.get().Status.PowerState; h.resuming && paused && state == "Running" {
		h.Error("the cluster is reported as running before the Cluster is unpaused")
	}
	h.api.Step("c")
	return max(next, time.Second)
}

func (h *capiHub) until(word string) {
	h.Helper()
	for range 1000 {
		next := h.pass()
		if h.get().Status.PowerState == word {
			return
		}
		h.sim.clock.Step(next)
	}
	h.Fatalf("never %s: %+v", word, h.get().Status)
}

func (h *capiHub) hibernate() {
	h.Helper()
	h.until("Running")
	h.edit(wants(hivev1.PowerHibernating))
	h.until("Hibernating")
}

func (h *capiHub) resume() {
	h.Helper()
	h.edit(wants(hivev1.PowerRunning))
	for h.get().Status.PowerState == "Hibernating" {
		h.sim.clock.Step(h.pass())
	}
	h.resuming = true
	h.until("Running")
}

func (h *capiHub) uids() string {
	var out []string
	for _, m := range h.api.List(clusterapi.Machines, "c") {
		out = append(out, m.GetName()+"="+string(m.GetUID()))
	}
	return strings.Join(out, " ")
}

func TestAClusterOfClusterAPIIsUnpausedLastAndOnlyWhenItsNodesAreReady(t *testing.T) {
	h := newCAPIHub(t)
	before := h.uids()
	h.hibernate()
	h.away = "w0"
	h.edit(wants(hivev1.PowerRunning))
	for range 30 {
		h.sim.clock.Step(h.pass())
		h.resuming = h.get().Status.PowerState != "Hibernating"
	}
	if !h.resuming || h.get().Status.PowerState == "Running" || !clusterapi.IsPausedByHotspare(h.api.Get(clusterapi.Clusters, "c", "infra")) {
		t.Errorf("with a node that is not ready: %s", h.get().Status.PowerState)
	}
	h.away = ""
	h.until("Running")
	if cluster := h.api.Get(clusterapi.Clusters, "c", "infra"); clusterapi.IsPaused(cluster) || cluster.GetAnnotations()[clusterapi.AnnotationPaused] != "" {
		t.Errorf("after the resume: %v, %v", cluster.Object["spec"], cluster.GetAnnotations())
	}
	if after := h.uids(); after != before {
		t.Errorf("the Machines were %s and are %s", before, after)
	}
}

// Cluster API writes its objects often, so the write that unpauses the Cluster may be refused.
func TestAClusterOfClusterAPIThatCannotBeUnpausedIsNotReportedAsRunning(t *testing.T) {
	h := newCAPIHub(t)
	h.hibernate()
	refused := 0
	h.api.PrependReactor("patch", "clusters", func(k8stesting.Action) (bool, runtime.Object, error) {
		refused++
		return refused <= 3, nil, apierrors.NewConflict(clusterapi.Clusters.GroupResource(), "infra", errors.New("changed"))
	})
	h.resume()
	if refused != 4 || clusterapi.IsPaused(h.api.Get(clusterapi.Clusters, "c", "infra")) {
		t.Errorf("%d attempts", refused)
	}
}

// The refusal of the resume probe changes the plan of a pass in which the nodes are ready.
func TestAClusterOfClusterAPIThatRefusesTheResumeProbeIsUnpaused(t *testing.T) {
	h := newCAPIHub(t)
	h.hibernate()
	h.closed = "the cluster rejects PodDisruptionBudget hotspare-resume"
	h.resume()
	if h.sent != 0 || clusterapi.IsPaused(h.api.Get(clusterapi.Clusters, "c", "infra")) {
		t.Errorf("%d probes; the Cluster must not be paused", h.sent)
	}
}

// The process may end after each write to the ClusterDeployment, and before and after each write to
// the Cluster: another one continues, and no machine is replaced.
func TestACrashAtAnyWriteOfAHibernationOrResumeReplacesNoMachine(t *testing.T) {
	run := func(name string, crash func(h *capiHub), crashed func(h *capiHub) bool) {
		t.Run(name, func(t *testing.T) {
			h := newCAPIHub(t)
			before := h.uids()
			crash(h)
			h.hibernate()
			h.resume()
			h.pass()
			cluster := h.api.Get(clusterapi.Clusters, "c", "infra")
			if clusterapi.IsPaused(cluster) || cluster.GetAnnotations()[clusterapi.AnnotationPaused] != "" || h.uids() != before {
				t.Errorf("%v, %v; %s became %s", cluster.Object["spec"], cluster.GetAnnotations(), before, h.uids())
			}
			if !crashed(h) {
				t.Error("the process did not end: there is no such write")
			}
		})
	}
	h := newCAPIHub(t)
	h.hibernate()
	h.resume()
	for n := 1; n <= h.writes; n++ {
		run(fmt.Sprintf("write %d to the ClusterDeployment", n), func(h *capiHub) { h.dieAfter = n }, func(h *capiHub) bool { return h.writes >= n })
	}
	for n := 1; n <= h.api.Writes; n++ {
		for _, stored := range []bool{false, true} {
			run(fmt.Sprintf("write %d to the Cluster, stored %t", n, stored), func(h *capiHub) { h.api.CrashAt(n, stored) }, func(h *capiHub) bool { return h.api.Crashed() })
		}
	}
	if h.api.Writes != 2 {
		t.Errorf("%d writes to the Cluster: a hibernation writes the pause, and a resume its end", h.api.Writes)
	}
}
