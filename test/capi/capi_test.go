package capi

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
	cloudcapi "hotspare.io/hotspare/internal/cloud/capi"
	"hotspare.io/hotspare/internal/clusterapi"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/install"
	installcapi "hotspare.io/hotspare/internal/install/capi"
)

var (
	clusters   = flag.Int("clusters", 3, "number of clusters")
	concurrent = flag.Int("concurrent", 25, "number of clusters that are created at the same time")
)

const (
	classNamespace = "capi-classes"
	// unhealthyAfter is how long the node of a machine may be not ready before Cluster API replaces the
	// machine. The clusters hibernate for longer than that.
	unhealthyAfter = 20 * time.Second
)

// phaseLimit returns how long a phase of the test may take: a busy machine with two cores needs 20
// seconds to create one cluster of many.
func phaseLimit() time.Duration {
	return 10*time.Minute + time.Duration(*clusters)*40*time.Second
}

// lab is the executor and the actuator of platform capi on a hub with Cluster API.
type lab struct {
	*hub
	executor *installcapi.Executor
	actuator *cloudcapi.Actuator
}

// member is one cluster of the test.
type member struct {
	req install.Request
	md  install.Metadata
	ref cloud.Ref
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{hub: startHub(t)}
	l.executor = installcapi.New(l, installcapi.Options{InstallLimit: phaseLimit()})
	l.actuator = cloudcapi.New(l, []cloudcapi.Provider{{Scheme: "in-memory", Actuator: inMemoryPower{hub: l}}}, nil)
	l.createNamespace(classNamespace)
	template := filepath.Join(moduleDir(t, "sigs.k8s.io/cluster-api/test"), "infrastructure/docker/templates/clusterclass-in-memory.yaml")
	for _, o := range l.readObjects(template, `startupDuration: "10s"`, `startupDuration: "1s"`,
		"timeoutSeconds: 300", fmt.Sprintf("timeoutSeconds: %.0f", unhealthyAfter.Seconds())) {
		o.SetNamespace(classNamespace)
		removeMachineConditions(o.Object)
		l.create(o)
		if o.GetKind() == "ClusterClass" {
			o.SetName(poolClass)
			l.create(o)
		}
	}
	return l
}

// with returns the lab for a subtest.
func (l *lab) with(t *testing.T) *lab {
	h := *l.hub
	h.t = t
	out := *l
	out.hub = &h
	return &out
}

func TestClusterAPI(t *testing.T) {
	l := newLab(t)
	t.Run("clusters hibernate and resume with the same machines", func(t *testing.T) {
		t.Parallel()
		testMachines(t, l.with(t))
	})
	t.Run("a pool creates, hibernates and deletes a cluster", func(t *testing.T) {
		t.Parallel()
		testPool(t, l.with(t))
	})
}

// removeMachineConditions removes the health checks by conditions of Machines, which begin before a
// machine has a node: with a limit of seconds, machines would be replaced while they are created.
func removeMachineConditions(v any) {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "unhealthyMachineConditions")
		for _, value := range v {
			removeMachineConditions(value)
		}
	case []any:
		for _, value := range v {
			removeMachineConditions(value)
		}
	}
}

func (l *lab) createNamespace(name string) {
	l.t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	o.SetName(name)
	l.create(o)
}

func (l *lab) newMember(i int) *member {
	one := int32(1)
	name := fmt.Sprintf("spare-%03d", i)
	platform := hivev1.Platform{CAPI: &hivev1.CAPIPlatform{
		ClassRef: &hivev1.CAPIClassReference{Name: "in-memory", Namespace: classNamespace}, Version: "v1.36.0",
		Workers: []hivev1.CAPIWorkers{{Class: "default-worker", Name: "md-0", Replicas: &one}},
	}}
	key := types.NamespacedName{Namespace: name, Name: name}
	return &member{
		req: install.Request{ClusterTarget: install.ClusterTarget{Cluster: key, UID: types.UID("uid-of-" + name), Platform: platform}},
		ref: cloud.Ref{Cluster: key, Platform: platform},
	}
}

// forEach calls do for all members at the same time, at most limit at once, and fails the test with
// their errors.
func (l *lab) forEach(members []*member, limit int, do func(ctx context.Context, m *member) error) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), phaseLimit())
	defer cancel()
	var wg sync.WaitGroup
	slots := make(chan struct{}, limit)
	for _, m := range members {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := do(ctx, m); err != nil {
				l.t.Errorf("%s: %v", m.req.Cluster.Name, err)
			}
		})
	}
	wg.Wait()
	if l.t.Failed() {
		l.t.FailNow()
	}
}

// repeat repeats do until it returns true, as the controllers of hotspare do.
func repeat(ctx context.Context, do func() (bool, error)) error {
	for {
		done, err := do()
		if err != nil && fault.KindOf(err) == fault.Denied {
			return err
		}
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w, while: %w", ctx.Err(), err)
		case <-time.After(500 * time.Millisecond):
		}
	}
}

func (l *lab) install(ctx context.Context, m *member) (err error) {
	if m.md, err = l.executor.Prepare(ctx, m.req); err != nil {
		return err
	}
	m.ref.InfraID = m.md.InfraID
	return repeat(ctx, func() (bool, error) {
		res, err := l.executor.Install(ctx, m.req, m.md)
		if res.Phase == install.Failed {
			return false, fault.NewDenied("%s: %s", res.Reason, res.Log)
		}
		return res.Phase == install.Succeeded && len(res.Kubeconfig) > 0, err
	})
}

func (l *lab) reach(want cloud.State, do func(context.Context, cloud.Ref) error) func(context.Context, *member) error {
	return func(ctx context.Context, m *member) error {
		return repeat(ctx, func() (bool, error) {
			ms, err := l.actuator.Observe(ctx, m.ref)
			if err != nil || ms.AllIn(want) {
				return err == nil, err
			}
			return false, do(ctx, m.ref)
		})
	}
}

func (l *lab) completeResume(ctx context.Context, m *member) error {
	c, err := spokeClient(ctx, l, m.ref)
	if err != nil {
		return err
	}
	return repeat(ctx, func() (bool, error) {
		list, err := c.Resource(nodes).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		var ready []string
		for i := range list.Items {
			if isReady(&list.Items[i]) {
				ready = append(ready, list.Items[i].GetName())
			}
		}
		err = l.actuator.CompleteResume(ctx, m.ref, ready)
		return err == nil, err
	})
}

// uids returns the Machines of a member with their UIDs.
func (l *lab) uids(m *member) string {
	l.t.Helper()
	list, err := l.Resource(clusterapi.Machines).Namespace(m.req.Cluster.Namespace).List(l.t.Context(), metav1.ListOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
	var out []string
	for _, o := range list.Items {
		out = append(out, o.GetName()+"="+string(o.GetUID()))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// phase runs one part of the test and logs how long it took.
func (l *lab) phase(what string, do func()) {
	began := time.Now()
	do()
	l.t.Logf("%-60s %s", what, time.Since(began).Round(100*time.Millisecond))
}

// testMachines hibernates and resumes clusters, and compares their Machines.
func testMachines(t *testing.T, l *lab) {
	var members []*member
	for i := range *clusters {
		m := l.newMember(i)
		l.createNamespace(m.req.Cluster.Namespace)
		members = append(members, m)
	}
	began := time.Now()
	installed := atomic.Int32{}
	l.phase(fmt.Sprintf("create %d clusters, %d at a time", len(members), *concurrent), func() {
		l.forEach(members, *concurrent, func(ctx context.Context, m *member) error {
			err := l.install(ctx, m)
			if n := installed.Add(1); n%10 == 0 {
				t.Logf("%d clusters are Available after %s", n, time.Since(began).Round(time.Second))
			}
			return err
		})
	})
	before := map[*member]string{}
	for _, m := range members {
		if before[m] = l.uids(m); strings.Count(before[m], "=") != 2 {
			t.Fatalf("%s has the Machines %q, want two", m.md.InfraID, before[m])
		}
	}
	l.phase("hibernate all", func() { l.forEach(members, 50, l.reach(cloud.Stopped, l.actuator.Stop)) })
	l.phase("sleep for twice as long as a node may be not ready", func() { time.Sleep(2 * unhealthyAfter) })
	l.confirmSame(members, before, "while they hibernate")
	l.phase("resume all", func() {
		l.forEach(members, 50, l.reach(cloud.Running, l.actuator.Start))
		l.forEach(members, 50, l.completeResume)
	})
	l.phase("run for twice as long as a node may be not ready", func() { time.Sleep(2 * unhealthyAfter) })
	l.confirmSame(members, before, "after the resume")
	l.phase("control: without the pause, Cluster API replaces the machine", func() { l.confirmReplacement(members[0], before[members[0]]) })
	l.phase("destroy all", func() {
		l.forEach(members, 50, func(ctx context.Context, m *member) error {
			return repeat(ctx, func() (bool, error) {
				res, err := l.executor.Destroy(ctx, m.req.ClusterTarget, m.md)
				return res.Phase == install.Succeeded, err
			})
		})
	})
}

// confirmSame fails the test if a Machine is not the one that it was.
func (l *lab) confirmSame(members []*member, before map[*member]string, when string) {
	l.t.Helper()
	for _, m := range members {
		if now := l.uids(m); now != before[m] {
			l.t.Errorf("%s, the Machines of %s were %s and are %s", when, m.md.InfraID, before[m], now)
		}
	}
}

// confirmReplacement stops the worker of a Cluster that is not paused. It fails the test if Cluster
// API does not replace it: the other results would then prove nothing.
func (l *lab) confirmReplacement(m *member, before string) {
	l.t.Helper()
	list, err := l.Resource(clusterapi.Machines).Namespace(m.req.Cluster.Namespace).List(l.t.Context(), metav1.ListOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
	var worker []cloud.Instance
	for i := range list.Items {
		id, _, _ := unstructured.NestedString(list.Items[i].Object, "spec", "providerID")
		if !clusterapi.IsControlPlane(&list.Items[i]) {
			worker = append(worker, cloud.Instance{ProviderID: id})
		}
	}
	power := inMemoryPower{hub: l, instances: worker}
	if err := power.Stop(l.t.Context(), m.ref); err != nil {
		l.t.Fatal(err)
	}
	l.waitFor("the replacement of the worker", 3*time.Minute, func() error {
		if l.uids(m) == before {
			return fmt.Errorf("the Machines are still %s", before)
		}
		return nil
	})
}
