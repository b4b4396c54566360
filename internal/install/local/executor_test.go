package local

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"

	"hotspare.io/hotspare/internal/cloud"
	machines "hotspare.io/hotspare/internal/cloud/local"
	"hotspare.io/hotspare/internal/cloud/local/machinetest"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/install"
)

// office is an executor with the notifications that it has sent.
type office struct {
	*Executor
	told chan types.NamespacedName
}

func (l *lab) office(t *testing.T, o Options) office {
	t.Helper()
	told := make(chan types.NamespacedName, 100)
	o.OnChange = func(c types.NamespacedName) { told <- c }
	e := New(l.ctx, l.store, l.dir, o)
	t.Cleanup(func() {
		l.shutdown()
		e.Wait()
	})
	return office{Executor: e, told: told}
}

func request(name, installConfig string) install.Request {
	return install.Request{
		ClusterTarget: install.ClusterTarget{Cluster: types.NamespacedName{Namespace: "ns", Name: name}}, Config: []byte(installConfig), Version: "4.18.20",
	}
}

func (o office) prepare(t *testing.T, req install.Request) install.Metadata {
	t.Helper()
	md, err := o.Prepare(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return md
}

// settle does what the controller does: it calls, and calls again after each notification, until
// the phase is no longer Running.
func (o office) settle(t *testing.T, call func() (install.Result, error)) install.Result {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		result, err := call()
		if err != nil {
			t.Fatal(err)
		}
		if result.Phase != install.Running {
			return result
		}
		select {
		case <-o.told:
		case <-deadline:
			t.Fatal("it takes too long")
		}
	}
}

func (o office) install(t *testing.T, req install.Request, md install.Metadata) install.Result {
	t.Helper()
	return o.settle(t, func() (install.Result, error) { return o.Install(t.Context(), req, md) })
}

// destroy destroys the cluster for the ClusterDeployment that its metadata names.
func (o office) destroy(t *testing.T, md install.Metadata) install.Result {
	t.Helper()
	return o.settle(t, func() (install.Result, error) { return o.Destroy(t.Context(), placeOf(md), md) })
}

func placeOf(md install.Metadata) install.ClusterTarget {
	var place install.ClusterTarget
	if named, err := parseMetadata(md.Raw); err == nil {
		place.Cluster = named.clusterDeployment()
	}
	return place
}

// The infraID of a cluster is not secret: only its own ClusterDeployment gets its kubeconfig, and
// can destroy it.
func TestAClusterIsItsOwnClusterDeployments(t *testing.T) {
	l := newLab(t)
	o := l.office(t, Options{})
	req, md := o.stuck(t, l, "a")
	if _, err := o.Install(t.Context(), req, md); err != nil {
		t.Fatal(err)
	}
	thief := req
	thief.Cluster = types.NamespacedName{Namespace: "eve", Name: "a"}
	for name, raw := range map[string][]byte{"its own metadata": md.Raw, "forged metadata": []byte(`{"infraID":"` + md.InfraID + `"}`)} {
		forged := md
		forged.Raw = raw
		if got, err := o.Install(t.Context(), thief, forged); fault.KindOf(err) != fault.Denied || !strings.Contains(err.Error(), "ns/a") || len(got.Kubeconfig) > 0 {
			t.Errorf("installing with %s: %+v, %v", name, got, err)
		}
		if _, err := o.Destroy(t.Context(), thief.ClusterTarget, forged); fault.KindOf(err) != fault.Denied || !strings.Contains(err.Error(), "ns/a") {
			t.Errorf("destroying with %s: %v", name, err)
		}
	}
	power, ref := machines.Actuator{Store: l.store}, cloud.Ref{Cluster: thief.Cluster, InfraID: md.InfraID}
	_, seen := power.Observe(t.Context(), ref)
	for what, err := range map[string]error{
		"observing": seen, "starting": power.Start(t.Context(), ref), "stopping": power.Stop(t.Context(), ref),
		"adding a worker":   Workers{Store: l.store}.Add(install.Target{Cluster: thief.Cluster, InfraID: md.InfraID}, install.Worker{Name: "w"}),
		"removing a worker": Workers{Store: l.store}.Remove(t.Context(), install.Target{Cluster: thief.Cluster, InfraID: md.InfraID}, "w"),
	} {
		if fault.KindOf(err) != fault.Denied {
			t.Errorf("%s the machines of another cluster: %v", what, err)
		}
	}
	if got := o.destroy(t, md); got.Phase != install.Succeeded {
		t.Errorf("destroying it for its own: %+v", got)
	}
}

func TestExecutor(t *testing.T) {
	dir := t.TempDir()
	l := reopen(t, dir)
	o := l.office(t, Options{})
	req := request("a", twoWorkers)
	md := o.prepare(t, req)
	if left := l.clusters(t); len(left) > 0 {
		t.Errorf("prepare has made %v", left)
	}
	first := o.install(t, req, md)
	if first.Phase != install.Succeeded || first.Version != "4.18.20" {
		t.Fatalf("got %+v", first)
	}
	if c, err := clientcmd.RESTConfigFromKubeConfig(first.Kubeconfig); err != nil || c.Host != first.APIURL {
		t.Errorf("kubeconfig for %v: %v", c, err)
	}
	l.shutdown()
	o.Wait()

	l = reopen(t, dir)
	o = l.office(t, Options{})
	if diff := cmp.Diff(first, o.install(t, req, md)); diff != "" {
		t.Errorf("after a restart: %s", diff)
	}
	if diff := cmp.Diff([]string{md.InfraID}, l.clusters(t)); diff != "" {
		t.Errorf("clusters: %s", diff)
	}
	if got := o.destroy(t, md); got.Phase != install.Succeeded {
		t.Errorf("destroying: %+v", got)
	}
	left, err := filepath.Glob(filepath.Join(l.dir, "*"))
	if err != nil || len(left) > 0 || len(l.clusters(t)) > 0 {
		t.Errorf("left: %v, clusters %v, %v", left, l.clusters(t), err)
	}
	if got := o.destroy(t, md); got.Phase != install.Succeeded {
		t.Errorf("destroying again: %+v", got)
	}
}

func TestExecutorDestroysWhatNeverWas(t *testing.T) {
	o := newLab(t).office(t, Options{})
	if got := o.destroy(t, install.Metadata{InfraID: "never-12345"}); got.Phase != install.Succeeded {
		t.Errorf("got %+v", got)
	}
	for _, bad := range []string{"", ".", "..", "a/b", "../a"} {
		if _, err := o.Destroy(t.Context(), install.ClusterTarget{}, install.Metadata{InfraID: bad}); fault.KindOf(err) != fault.Denied {
			t.Errorf("destroying %q: %v", bad, err)
		}
	}
}

func TestExecutorDeniesBadConfigs(t *testing.T) {
	l := newLab(t)
	o := l.office(t, Options{})
	if _, err := o.Prepare(t.Context(), request("a", "metadata: {name: UPPER}")); fault.KindOf(err) != fault.Denied {
		t.Errorf("got %v", err)
	}
	good := request("a", twoWorkers)
	md := o.prepare(t, good)
	md.InfraID = "other-12345"
	if _, err := o.Install(t.Context(), good, md); fault.KindOf(err) != fault.Denied {
		t.Errorf("with metadata of another: %v", err)
	}
}

// stuck starts an installation that does not end.
func (o office) stuck(t *testing.T, l *lab, name string) (install.Request, install.Metadata) {
	t.Helper()
	req := request(name, twoWorkers)
	md := o.prepare(t, req)
	c, err := parseInstallConfig(req.Config)
	if err != nil {
		t.Fatal(err)
	}
	named, err := parseMetadata(md.Raw)
	if err != nil {
		t.Fatal(err)
	}
	ms, err := o.installer.createMachines(machineConfigs(c, named, simulation{simulated: true}))
	if err != nil {
		t.Fatal(err)
	}
	machinetest.Inject(t, l.store.MachineDir(md.InfraID, ms[1].Name), unready)
	return req, md
}

func TestDestroyEndsAnInstallation(t *testing.T) {
	l := newLab(t)
	o := l.office(t, Options{})
	req, md := o.stuck(t, l, "a")
	if got, err := o.Install(t.Context(), req, md); err != nil || got.Phase != install.Running {
		t.Fatalf("%+v, %v", got, err)
	}
	if got, err := o.Destroy(t.Context(), placeOf(md), md); err != nil || got.Phase != install.Running {
		t.Fatalf("%+v, %v", got, err)
	}
	if _, err := o.Install(t.Context(), req, md); fault.KindOf(err) != fault.Wait {
		t.Errorf("installing while it is destroyed: %v", err)
	}
	if got := o.destroy(t, md); got.Phase != install.Succeeded || len(l.clusters(t)) > 0 {
		t.Errorf("%+v, left %v", got, l.clusters(t))
	}
}

func TestFailureTellsWhy(t *testing.T) {
	l := newLab(t)
	o := l.office(t, Options{Timeout: 10 * time.Second})
	req, md := o.stuck(t, l, "a")
	got := o.install(t, req, md)
	if got.Phase != install.Failed || got.Reason != "InstallTimeout" || !strings.Contains(got.Log, "-worker-0") {
		t.Errorf("got %+v", got)
	}
	if diff := cmp.Diff(got, o.install(t, req, md)); diff != "" {
		t.Errorf("asked again: %s", diff)
	}
	if lines := strings.Count(got.Log, "\n"); lines > excerptLines {
		t.Errorf("%d lines", lines)
	}
}

func TestInstallationsWaitForASlot(t *testing.T) {
	l := newLab(t)
	o := l.office(t, Options{Concurrency: 1})
	blocker, blocked := o.stuck(t, l, "a")
	if _, err := o.Install(t.Context(), blocker, blocked); err != nil {
		t.Fatal(err)
	}
	var waiting []install.Metadata
	req := request("b", valid)
	for range 2 {
		md := o.prepare(t, req)
		waiting = append(waiting, md)
		if _, err := o.Install(t.Context(), req, md); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(o.slots); n > 1 {
		t.Errorf("%d run at once", n)
	}
	if got := o.destroy(t, blocked); got.Phase != install.Succeeded {
		t.Fatalf("destroying the first: %+v", got)
	}
	for _, md := range waiting {
		if got := o.install(t, req, md); got.Phase != install.Succeeded {
			t.Errorf("one that has waited: %+v", got)
		}
	}
}

func TestNoRoom(t *testing.T) {
	l := newLab(t)
	l.room = 500 << 20
	o := l.office(t, Options{})
	for n := range 3 {
		req := request(fmt.Sprint("c", n), valid)
		md := o.prepare(t, req)
		_, err := o.Install(t.Context(), req, md)
		if n < 2 && err != nil {
			t.Fatal(err)
		}
		if n == 2 && fault.KindOf(err) != fault.Capacity {
			t.Errorf("the third of two: %v", err)
		}
		if n == 2 {
			left, err := filepath.Glob(filepath.Join(l.dir, md.InfraID))
			if err != nil || len(left) > 0 {
				t.Errorf("left: %v, %v", left, err)
			}
		}
	}
}

func TestShutdownIsNoFailure(t *testing.T) {
	dir := t.TempDir()
	l := reopen(t, dir)
	o := l.office(t, Options{})
	req, md := o.stuck(t, l, "a")
	if _, err := o.Install(t.Context(), req, md); err != nil {
		t.Fatal(err)
	}
	l.shutdown()
	o.Wait()
	if got, err := o.Install(t.Context(), req, md); err != nil || got.Phase != install.Running {
		t.Errorf("%+v, %v", got, err)
	}

	l = reopen(t, dir)
	o = l.office(t, Options{})
	machinetest.Inject(t, l.store.MachineDir(md.InfraID, md.InfraID+"-worker-0"), "")
	if got := o.install(t, req, md); got.Phase != install.Succeeded {
		t.Errorf("after the restart: %+v", got)
	}
}
