package capi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	k8stesting "k8s.io/client-go/testing"
	testingclock "k8s.io/utils/clock/testing"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/cloud/aws"
	"hotspare.io/hotspare/internal/cloud/aws/ec2test"
	"hotspare.io/hotspare/internal/clusterapi"
	"hotspare.io/hotspare/internal/clusterapi/capitest"
	"hotspare.io/hotspare/internal/fault"
)

const (
	v1beta2  = clusterapi.Group + "/" + clusterapi.Version
	instance = "aws:///us-east-1a/"
)

var (
	began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	key   = sdk.Credentials{AccessKeyID: "AKIAPLANTED0000001", SecretAccessKey: "planted-secret/1+2="}
)

// switchboard is a second provider: instances by provider ID, which start and stop at once.
type switchboard struct {
	running map[string]bool
	list    []cloud.Instance
	// depth is the depth of the instances that do not run.
	depth cloud.Depth
}

func (s *switchboard) ForInstances(list []cloud.Instance) (cloud.Actuator, error) {
	return &switchboard{s.running, list, s.depth}, nil
}

func (s *switchboard) Observe(context.Context, cloud.Ref) (cloud.Machines, error) {
	var ms cloud.Machines
	for _, i := range s.list {
		m := cloud.Machine{Name: i.Name, ControlPlane: i.ControlPlane, ProviderID: i.ProviderID, State: cloud.Stopped, Depth: s.depth}
		if s.running[i.ProviderID] {
			m.State, m.Depth = cloud.Running, ""
		}
		ms = append(ms, m)
	}
	return ms, nil
}

func (s *switchboard) set(to bool) error {
	for _, i := range s.list {
		s.running[i.ProviderID] = to
	}
	return nil
}

func (s *switchboard) Start(context.Context, cloud.Ref) error { return s.set(true) }
func (s *switchboard) Stop(context.Context, cloud.Ref) error  { return s.set(false) }

// lab is an actuator on a simulated hub, with a simulated EC2 and a second provider.
type lab struct {
	*Actuator
	*capitest.Hub
	t     *testing.T
	ec2   *ec2test.Server
	other *switchboard
	ref   cloud.Ref
}

// newLab returns a lab with the Cluster c, and its control plane machine and worker on EC2.
func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{t: t, ec2: ec2test.New(t), other: &switchboard{running: map[string]bool{}}}
	l.ec2.AddAccessKey(key)
	secrets := func(_ context.Context, name types.NamespacedName) (map[string][]byte, error) {
		if name != (types.NamespacedName{Namespace: "ns", Name: "aws-creds"}) {
			return nil, fault.NewDenied("no Secret %s", name)
		}
		return map[string][]byte{"aws_access_key_id": []byte(key.AccessKeyID), "aws_secret_access_key": []byte(key.SecretAccessKey)}, nil
	}
	l.Hub = capitest.New(t, testingclock.NewFakePassiveClock(began))
	l.Running = l.isRunning
	cluster := capitest.Object(v1beta2, "Cluster", "ns", "c", map[string]any{})
	capitest.SetCondition(cluster, "Available", true, "")
	l.Add(cluster)
	l.Add(labeled(capitest.Object(v1beta2, "MachineHealthCheck", "ns", "mhc", nil)))
	l.addEC2("cp-0", true)
	l.addEC2("md-0", false)
	l.Actuator = New(l.Hub, []Provider{
		{Key: "aws", Scheme: "aws", Actuator: aws.New(secrets, aws.WithEndpoint(l.ec2.URL))},
		{Scheme: "other", Actuator: l.other},
	}, testingclock.NewFakePassiveClock(began))
	l.ref = cloud.Ref{Cluster: types.NamespacedName{Namespace: "ns", Name: "cd"}, InfraID: "c", Platform: hivev1.Platform{CAPI: &hivev1.CAPIPlatform{
		Providers: &hivev1.CAPIProviders{AWS: &runtime.RawExtension{Raw: []byte(`{"region":"us-east-1","credentialsSecretRef":{"name":"aws-creds"}}`)}},
	}}}
	l.Step("ns")
	return l
}

func (l *lab) Observe(ctx context.Context, ref cloud.Ref) (cloud.Machines, error) {
	return l.Actuator.Observe(ctx, ref)
}

func labeled(o *unstructured.Unstructured) *unstructured.Unstructured {
	o.SetLabels(map[string]string{clusterapi.LabelCluster: "c"})
	return o
}

func (l *lab) addEC2(name string, controlPlane bool) {
	id := l.ec2.AddInstance(ec2test.Instance{State: ec2test.Running})
	l.AddMachine("ns", "c", name, instance+id, controlPlane)
}

// isRunning reports whether an instance runs, as Cluster API would find out from its node.
func (l *lab) isRunning(providerID string) bool {
	id, onEC2 := strings.CutPrefix(providerID, instance)
	if !onEC2 {
		return l.other.running[providerID]
	}
	running := false
	l.ec2.ChangeInstance(l.t, id, func(i *ec2test.Instance) { running = i.State == ec2test.Running })
	return running
}

func (l *lab) step() {
	l.ec2.AdvanceStates()
	l.Step("ns")
}

func (l *lab) observe() cloud.Machines {
	l.t.Helper()
	ms, err := l.Observe(l.t.Context(), l.ref)
	if err != nil {
		l.t.Fatal(err)
	}
	return ms
}

// until repeats do, lets the cloud and the controllers work in between, and fails on an error that
// asks for more than waiting.
func (l *lab) until(want cloud.State, do func(context.Context, cloud.Ref) error) {
	l.t.Helper()
	for range 40 {
		if l.observe().AllIn(want) {
			return
		}
		err := do(l.t.Context(), l.ref)
		if err != nil && fault.KindOf(err) != fault.Wait && !errors.Is(err, capitest.ErrCrash) {
			l.t.Fatal(err)
		}
		l.step()
	}
	l.t.Fatalf("not all are %s: %v", want, l.observe())
}

func (l *lab) isPaused() bool {
	return clusterapi.IsPausedByHotspare(l.Get(clusterapi.Clusters, "ns", "c"))
}

// uids returns the names and the UIDs of the Machines.
func (l *lab) uids() string {
	var out []string
	for _, m := range l.List(clusterapi.Machines, "ns") {
		out = append(out, fmt.Sprintf("%s=%s", m.GetName(), m.GetUID()))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func TestAClusterHibernatesAndResumesWithTheSameMachines(t *testing.T) {
	l := newLab(t)
	l.other.running["other://md-1"] = true
	l.AddMachine("ns", "c", "md-1", "other://md-1", false) // two infrastructure providers
	before := l.uids()
	l.until(cloud.Stopped, l.Stop)
	for range 10 {
		l.step() // while it hibernates
	}
	if !l.isPaused() {
		t.Error("the Cluster is not paused")
	}
	l.until(cloud.Running, l.Start)
	if !l.isPaused() {
		t.Error("the Cluster is unpaused before its nodes are ready")
	}
	if err := l.CompleteResume(t.Context(), l.ref, []string{"cp-0", "md-0"}); fault.KindOf(err) != fault.Wait || !strings.Contains(err.Error(), "md-1") || !l.isPaused() {
		t.Errorf("with a node missing: %v", err)
	}
	if err := l.CompleteResume(t.Context(), l.ref, []string{"cp-0", "md-0", "md-1"}); err != nil || l.isPaused() {
		t.Errorf("with all nodes ready: %v", err)
	}
	cluster := l.Get(clusterapi.Clusters, "ns", "c")
	if clusterapi.IsPaused(cluster) || cluster.GetAnnotations()[clusterapi.AnnotationPaused] != "" {
		t.Errorf("after the resume: %v %v", cluster.Object["spec"], cluster.GetAnnotations())
	}
	l.step()
	if after := l.uids(); after != before {
		t.Errorf("the Machines were %s and are %s", before, after)
	}
}

// Every write of the hub may be the last one, stored or not.
func TestACrashAtAnyWriteReplacesNoMachine(t *testing.T) {
	for n := 1; n <= 4; n++ {
		for _, stored := range []bool{false, true} {
			l := newLab(t)
			before := l.uids()
			l.CrashAt(n, stored)
			l.until(cloud.Stopped, l.Stop)
			l.until(cloud.Running, l.Start)
			for range 3 {
				err := l.CompleteResume(t.Context(), l.ref, []string{"cp-0", "md-0"})
				if err != nil && !errors.Is(err, capitest.ErrCrash) {
					t.Fatal(err)
				}
				l.step()
			}
			if l.isPaused() || l.uids() != before {
				t.Errorf("write %d, stored %t: paused %t; %s became %s", n, stored, l.isPaused(), before, l.uids())
			}
			if (n <= 2) != l.Crashed() {
				t.Errorf("write %d, stored %t: crashed %t; a hibernation writes the pause and its end", n, stored, l.Crashed())
			}
		}
	}
}

func TestNoMachineStopsBeforeThePauseIsConfirmed(t *testing.T) {
	l := newLab(t)
	l.Confirming = false
	for range 10 {
		if err := l.Stop(t.Context(), l.ref); err != nil && fault.KindOf(err) != fault.Wait {
			t.Fatal(err)
		}
		l.step()
	}
	if ms := l.observe(); !ms.AllIn(cloud.Running) {
		t.Errorf("%v", ms)
	}
	err := l.Stop(t.Context(), l.ref)
	want := "stopping the machines of Cluster c: Cluster API has not confirmed the pause of Cluster c, Machine cp-0, Machine md-0, MachineHealthCheck mhc yet: " +
		"if it does not, check that its controllers run and that its version is 1.11 or later"
	if err == nil || err.Error() != want {
		t.Error(cmp.Diff(want, fmt.Sprint(err)))
	}
}

func TestAWriteInBetweenIsNoRefusal(t *testing.T) {
	l := newLab(t)
	refused := false
	l.PrependReactor("patch", "clusters", func(k8stesting.Action) (bool, runtime.Object, error) {
		first := !refused
		refused = true
		return first, nil, apierrors.NewConflict(clusterapi.Clusters.GroupResource(), "c", errors.New("changed"))
	})
	if err := l.Stop(t.Context(), l.ref); fault.KindOf(err) != fault.Wait || l.isPaused() {
		t.Errorf("the first write: %v", err)
	}
	if err := l.Stop(t.Context(), l.ref); err != nil || !l.isPaused() {
		t.Errorf("the second write: %v", err)
	}
}

func TestAnotherUsersPauseIsRespected(t *testing.T) {
	l := newLab(t)
	l.Edit(clusterapi.Clusters, "ns", "c", func(o *unstructured.Unstructured) { o.Object["spec"] = map[string]any{"paused": true} })
	l.step()
	writes := l.Writes
	if err := l.Stop(t.Context(), l.ref); fault.KindOf(err) != fault.Denied || !strings.Contains(err.Error(), "paused by another user") {
		t.Errorf("got %v", err)
	}
	if err := l.CompleteResume(t.Context(), l.ref, []string{"cp-0", "md-0"}); err != nil {
		t.Error(err)
	}
	if ms := l.observe(); !ms.AllIn(cloud.Running) || l.Writes != writes {
		t.Errorf("%v, %d writes", ms, l.Writes-writes)
	}
}

func TestAPauseThatAnotherUserRemovesComesBack(t *testing.T) {
	l := newLab(t)
	l.until(cloud.Stopped, l.Stop)
	l.Edit(clusterapi.Clusters, "ns", "c", func(o *unstructured.Unstructured) { delete(o.Object["spec"].(map[string]any), "paused") })
	ms := l.observe()
	if !ms.AllIn(cloud.Failed) || !strings.Contains(ms[0].Reason, "another user has unpaused the Cluster") {
		t.Errorf("%v", ms)
	}
	if err := l.Stop(t.Context(), l.ref); err != nil {
		t.Fatal(err)
	}
	if ms := l.observe(); !ms.AllIn(cloud.Stopped) || !l.isPaused() {
		t.Errorf("after another stop: %v", ms)
	}
}

func TestMachinesOfClusterAPIAreOnlyStopped(t *testing.T) {
	l := newLab(t)
	for id := range l.ec2.InstanceStates() {
		l.ec2.ChangeInstance(t, id, func(i *ec2test.Instance) { i.Hibernation = true })
	}
	l.ref.Depth = cloud.DepthSuspend
	l.until(cloud.Stopped, l.Stop)
	for _, call := range l.ec2.AcceptedCalls() {
		if strings.Contains(call, "--hibernate") {
			t.Errorf("it called %s", call)
		}
	}
}

func TestAMachineThatAnotherUserHasSuspendedCountsAsStopped(t *testing.T) {
	l := newLab(t)
	l.until(cloud.Stopped, l.Stop)
	l.other.depth = cloud.DepthSuspend
	l.AddMachine("ns", "c", "md-1", "other://1", false)
	l.Step("ns")
	for _, m := range l.observe() {
		if m.Depth != "" {
			t.Errorf("%s sleeps at depth %s", m.Name, m.Depth)
		}
	}
}

func TestWhatCannotBeObservedIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(l *lab)
		want string
	}{
		"a Cluster that was deleted by hand": {
			func(l *lab) { l.Remove(clusterapi.Clusters, "ns", "c") },
			"denied: observing the machines of Cluster c: Cluster c in namespace ns does not exist: another user has deleted it; delete ClusterDeployment cd, too, or restore the Cluster",
		},
		"a provider without settings": {
			func(l *lab) { l.ref.Platform.CAPI.Providers = nil },
			"denied: observing the machines of Cluster c: the cluster has machines with provider IDs aws://, and spec.platform.capi.providers.aws of ClusterDeployment ns/cd is empty: " +
				"set it, with the credentials that may stop and start them",
		},
		"a provider that hotspare does not know": {
			func(l *lab) { l.AddMachine("ns", "c", "md-1", "docker:////md-1", false) },
			`cp-0 Running, md-0 Running, md-1 Unknown (its provider ID is "docker:////md-1", and hotspare stops and starts machines only with aws://, metal3://, other://)`,
		},
		"an instance that was deleted outside": {
			func(l *lab) { l.AddMachine("ns", "c", "md-1", instance+"i-0000000000000dead", false) },
			"cp-0 Running, md-0 Running, md-1 Unknown (its instance aws:///us-east-1a/i-0000000000000dead does not exist: it was deleted outside Cluster API; " +
				"delete the Machine, so that Cluster API creates another)",
		},
		"credentials that do not exist": {func(l *lab) {
			l.ref.Platform.CAPI.Providers.AWS = &runtime.RawExtension{Raw: []byte(`{"region":"us-east-1"}`)}
		}, "denied: observing the machines of Cluster c: observing instances of c: spec.platform.capi.providers.aws.credentialsSecretRef of ClusterDeployment ns/cd is empty: " +
			"name a Secret with aws_access_key_id and aws_secret_access_key"},
		"a MachinePool": {
			func(l *lab) { l.Add(labeled(capitest.Object(v1beta2, "MachinePool", "ns", "mp", nil))) },
			"MachinePool mp Running (the cloud replaces instances of a MachinePool that stop: use a MachineDeployment, or set its replicas to 0), cp-0 Running, md-0 Running",
		},
		"a MachinePool without instances": {func(l *lab) {
			l.Add(labeled(capitest.Object(v1beta2, "MachinePool", "ns", "mp", map[string]any{"replicas": int64(0)})))
		}, "cp-0 Running, md-0 Running"},
		"no Cluster API, or v1beta1 only": {
			func(l *lab) { l.Unserve(clusterapi.Clusters) },
			"denied: observing the machines of Cluster c: the hub does not serve the resource clusters.cluster.x-k8s.io in version v1beta2: " +
				"install Cluster API 1.11 or later and its providers on the hub, or upgrade it",
		},
		"no MachinePools in this Cluster API": {func(l *lab) { l.Unserve(clusterapi.MachinePools) }, "cp-0 Running, md-0 Running"},
		"a machine that is being created":     {func(l *lab) { l.AddMachine("ns", "c", "md-1", "", false) }, "cp-0 Running, md-0 Running, md-1 Starting"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			c.edit(l)
			ms, err := l.Observe(t.Context(), l.ref)
			var parts []string
			for _, m := range ms {
				part := m.Name + " " + string(m.State)
				if m.Reason != "" {
					part += " (" + m.Reason + ")"
				}
				parts = append(parts, part)
			}
			got := strings.Join(parts, ", ")
			if err != nil {
				got = fmt.Sprintf("%s: %v", fault.KindOf(err), err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWorkersThatCannotBeStoppedDoNotKeepTheControlPlaneRunning(t *testing.T) {
	l := newLab(t)
	id := ""
	for _, m := range l.List(clusterapi.Machines, "ns") {
		if m.GetName() == "md-0" {
			text, _, _ := unstructured.NestedString(m.Object, "spec", "providerID")
			id = strings.TrimPrefix(text, instance)
		}
	}
	l.ec2.ChangeInstance(t, id, func(i *ec2test.Instance) {
		i.Refusal = &ec2test.Error{Status: 400, Code: "OperationNotPermitted", Message: "The instance '" + id + "' may not be stopped."}
	})
	var err error
	for range 6 {
		err = l.Stop(t.Context(), l.ref)
		l.step()
	}
	if ms := l.observe(); ms.String() != "cp-0 Stopped, md-0 Running" || err == nil || !strings.Contains(err.Error(), "md-0") {
		t.Errorf("%v, %v", ms, err)
	}
}

// addHost adds a Metal3 machine and its host.
func (l *lab) addHost(name string) {
	host := capitest.Object("metal3.io/v1alpha1", "BareMetalHost", "ns", "host-"+name, map[string]any{
		"online": true, "consumerRef": map[string]any{"kind": "Metal3Machine", "name": "m3-" + name},
	})
	host.Object["status"] = map[string]any{"poweredOn": true}
	l.Add(host)
	l.AddMachine("ns", "c", name, "metal3://ns/host-"+name+"/m3-"+name, false)
}

// switchHosts does what the operator of bare metal hosts does.
func (l *lab) switchHosts() {
	for _, h := range l.List(clusterapi.BareMetalHosts, "ns") {
		l.Edit(clusterapi.BareMetalHosts, "ns", h.GetName(), func(o *unstructured.Unstructured) {
			online, _, _ := unstructured.NestedBool(o.Object, "spec", "online")
			o.Object["status"] = map[string]any{"poweredOn": online}
		})
	}
}

func TestBareMetalHostsAreSwitchedBySpecOnline(t *testing.T) {
	l := newLab(t)
	l.Running = nil
	l.addHost("md-1")
	l.until(cloud.Stopped, func(ctx context.Context, ref cloud.Ref) error { l.switchHosts(); return l.Stop(ctx, ref) })
	if online, _, _ := unstructured.NestedBool(l.Get(clusterapi.BareMetalHosts, "ns", "host-md-1").Object, "spec", "online"); online {
		t.Error("the host is online")
	}
	l.until(cloud.Running, func(ctx context.Context, ref cloud.Ref) error { l.switchHosts(); return l.Start(ctx, ref) })
}

func TestHostsOfOtherClustersAreLeftAlone(t *testing.T) {
	for name, c := range map[string]struct{ id, want string }{
		"a host in another namespace":   {"metal3://elsewhere/host-md-1/m3-md-1", "not the namespace of the cluster"},
		"a host that serves another":    {"metal3://ns/host-md-1/m3-other", "has the consumer Metal3Machine m3-md-1"},
		"a host that does not exist":    {"metal3://ns/never/m3-md-1", "does not exist"},
		"an ID of a version before 1.5": {"metal3://8e0a", "hotspare supports metal3://namespace/host/metal3machine"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.addHost("md-1")
			l.AddMachine("ns", "c", "md-2", c.id, false)
			if _, err := l.Observe(t.Context(), l.ref); fault.KindOf(err) != fault.Denied || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestSecretsOfTheCloudAreNotInErrors(t *testing.T) {
	l := newLab(t)
	l.ec2.ExpireAllKeys()
	_, err := l.Observe(t.Context(), l.ref)
	if fault.KindOf(err) != fault.Denied || strings.Contains(err.Error(), "planted-secret") {
		t.Errorf("got %v", err)
	}
}
