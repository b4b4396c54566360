package dataplane_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/controller/dataplane"
	"hotspare.io/hotspare/internal/fleet/agent/install"
	"hotspare.io/hotspare/internal/kstatus/kstatustest"
)

// rig is a hub with a fleet, its cluster, and the controller.
type rig struct {
	*testing.T
	client.Client
	spoke  *spoke
	clock  *clocktesting.FakePassiveClock
	events *events.FakeRecorder
	r      *dataplane.Reconciler
}

type indexer struct{ *fake.ClientBuilder }

func (i indexer) IndexField(_ context.Context, o client.Object, field string, keys client.IndexerFunc) error {
	i.WithIndex(o, field, keys)
	return nil
}

func newRig(t *testing.T, objects ...client.Object) *rig {
	t.Helper()
	g := &rig{T: t, spoke: newSpoke(t), clock: clocktesting.NewFakePassiveClock(start), events: events.NewFakeRecorder(1000)}
	b := fake.NewClientBuilder().WithScheme(hubScheme(t)).WithObjects(append(fleet(), objects...)...).
		WithStatusSubresource(&v1alpha1.DataPlane{}, &v1alpha1.DataPlaneAgent{}, &v1alpha1.ServiceInstance{}, &hivev1.ClusterClaim{}, &hivev1.ClusterDeployment{})
	if err := dataplane.AddIndexes(t.Context(), indexer{b}); err != nil {
		t.Fatal(err)
	}
	g.Client = b.Build()
	g.r = &dataplane.Reconciler{
		Client: g.Client, Live: g.Client, Spokes: spokes{g.spoke}, Hub: dataplane.Hub{Server: "https://127.0.0.1:1"}, Clock: g.clock, Events: g.events,
	}
	return g
}

func (g *rig) pass() ctrl.Result {
	g.Helper()
	result, err := g.r.Reconcile(g.Context(), ctrl.Request{NamespacedName: key})
	if err != nil {
		g.Fatal(err)
	}
	return result
}

// settle runs everything until nothing changes, and returns the data plane; nil if it is deleted.
func (g *rig) settle() *v1alpha1.DataPlane {
	g.Helper()
	for range 100 {
		before := g.plane()
		g.pass()
		changed, err := world(g.Context(), g.Client, g.spoke)
		if err != nil {
			g.Fatal(err)
		}
		after := g.plane()
		if !changed && (after == nil || before != nil && before.ResourceVersion == after.ResourceVersion) {
			return after
		}
	}
	g.Fatalf("it does not settle: %+v", g.plane())
	return nil
}

func (g *rig) plane() *v1alpha1.DataPlane {
	g.Helper()
	var dp v1alpha1.DataPlane
	if err := g.Get(g.Context(), key, &dp); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		g.Fatal(err)
	}
	return &dp
}

func (g *rig) do(a act) {
	g.Helper()
	if err := a(g.Context(), g.Client); err != nil {
		g.Fatal(err)
	}
}

func (g *rig) expect(reason, words string) {
	g.Helper()
	c := meta.FindStatusCondition(g.plane().Status.Conditions, v1alpha1.DataPlaneReady)
	if c == nil || c.Reason != reason || !strings.Contains(c.Message, words) {
		g.Errorf("Ready is %+v, not %s with %q", c, reason, words)
	}
}

// told returns the reasons of all events so far.
func (g *rig) told() []string {
	var out []string
	for {
		select {
		case e := <-g.events.Events:
			if strings.Contains(e, "t0ken") {
				g.Errorf("an event tells a token: %s", e)
			}
			out = append(out, strings.Fields(e)[1])
		default:
			return out
		}
	}
}

func made() *v1alpha1.DataPlane {
	return plane(func(dp *v1alpha1.DataPlane) { dp.UID, dp.CreationTimestamp = "u", metav1.NewTime(start) })
}

func registered() *v1alpha1.DataPlane {
	dp := made()
	dp.Spec.Ownership = v1alpha1.Registered
	dp.Spec.ClusterRef = &v1alpha1.ClusterReference{KubeconfigSecret: &v1alpha1.NameReference{Name: "k"}}
	return dp
}

func kubeconfig() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "k"}, Data: map[string][]byte{"kubeconfig": []byte("t0ken")}}
}

func TestADataPlaneComes(t *testing.T) {
	g := newRig(t, made())
	dp := g.settle()
	if dp.Status.Phase != v1alpha1.PhaseReady {
		t.Fatalf("got %+v", dp.Status)
	}
	if got, want := fmt.Sprint(g.told()), "[Provisioning Provisioned WaitingForAgent Ready]"; got != want {
		t.Errorf("got %s", got)
	}
	if c := dp.Status.Capacity["developer"]; c.MaxNodes != 2 || c.MaxUnits != 20 {
		t.Errorf("got %+v", c)
	}
	if strings.Contains(fmt.Sprint(dp), "t0ken") {
		t.Error("the status tells a token")
	}
	var a v1alpha1.DataPlaneAgent
	if err := g.Get(t.Context(), key, &a); err != nil || len(a.Spec.Instances) != 1 || !a.Spec.Instances[0].Reserved || a.Spec.Instances[0].Versions.Kafka != "3.9.0" {
		t.Errorf("%v, %+v", err, a.Spec)
	}
	var d appsv1.Deployment
	if err := g.spoke.Get(t.Context(), types.NamespacedName{Namespace: install.Namespace, Name: install.Name}, &d); err != nil || d.Spec.Template.Spec.Containers[0].Image != install.LocalImage {
		t.Errorf("%v, %+v", err, d.Spec)
	}
	kstatustest.ExpectStatus(t, &a, "Current")
	t.Run("at rest nothing is written", func(t *testing.T) {
		g.spoke.log = nil
		result := g.pass()
		var again v1alpha1.DataPlaneAgent
		if err := g.Get(t.Context(), key, &again); err != nil || again.ResourceVersion != a.ResourceVersion {
			t.Errorf("%v, the DataPlaneAgent was written: %+v", err, again.Status)
		}
		if g.plane().ResourceVersion != dp.ResourceVersion || len(g.spoke.log) > 0 || result.RequeueAfter != 2*time.Minute || len(g.told()) > 0 {
			t.Errorf("%v, %+v", g.spoke.log, result)
		}
	})
	t.Run("what somebody changes of its rights is put right", func(t *testing.T) {
		role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: install.HubAccountName("p")}}
		g.do(edit(role, func(r *rbacv1.Role) { r.Rules = nil }))
		g.clock.SetTime(start.Add(5 * time.Minute))
		g.settle()
		if err := g.Get(t.Context(), client.ObjectKeyFromObject(role), role); err != nil || len(role.Rules) != 2 {
			t.Errorf("%v, %+v", err, role.Rules)
		}
	})
	t.Run("a token that was taken is made again", func(t *testing.T) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: install.TokenName("p")}}
		g.do(remove(secret))
		g.clock.SetTime(start.Add(20 * time.Minute))
		g.settle()
		if err := g.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
			t.Error(err)
		}
	})
}

// TestToolsThatWaitSeeASilentAgent checks that the hub reports a silent agent, which cannot do so
// itself.
func TestToolsThatWaitSeeASilentAgent(t *testing.T) {
	g := newRig(t, made())
	g.settle()
	expect := func(want string) {
		t.Helper()
		var a v1alpha1.DataPlaneAgent
		if err := g.Get(t.Context(), key, &a); err != nil {
			t.Fatal(err)
		}
		kstatustest.ExpectStatus(t, &a, want)
	}
	expect("Current")
	g.clock.SetTime(start.Add(time.Hour))
	g.settle()
	expect("Failed " + v1alpha1.ReasonSilent)
	var a v1alpha1.DataPlaneAgent
	if err := g.Get(t.Context(), key, &a); err != nil {
		t.Fatal(err)
	}
	before := a.DeepCopy()
	a.Status.Report.At = metav1.NewTime(start.Add(time.Hour))
	if err := g.Client.Status().Patch(t.Context(), &a, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	g.settle()
	expect("Current")
}

func TestAClusterThatDoesNotTakeTheAgent(t *testing.T) {
	g := newRig(t, made())
	g.spoke.trouble = "its name does not resolve"
	g.settle()
	g.expect(v1alpha1.ReasonAgentNotInstalled, g.spoke.trouble)
	g.spoke.trouble, g.spoke.refuses = "", "Secret"
	g.settle()
	g.expect(v1alpha1.ReasonAgentNotInstalled, "Secret hub")
	if g.plane().Status.Phase != v1alpha1.PhaseProvisioned || g.pass().RequeueAfter == 0 {
		t.Errorf("got %+v", g.plane().Status)
	}
	g.spoke.refuses = ""
	if g.settle().Status.Phase != v1alpha1.PhaseReady {
		t.Errorf("got %+v", g.plane().Status)
	}
}

// The agent does not get a token of an account that others have created.
func TestAnotherAccountIsNotGivenAway(t *testing.T) {
	g := newRig(t, made(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: install.HubAccountName("p")}})
	g.settle()
	g.expect(v1alpha1.ReasonNameTaken, "p-agent in namespace fleet was created for something else")
	if err := g.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: install.TokenName("p")}, &corev1.Secret{}); !apierrors.IsNotFound(err) {
		t.Errorf("there is a token: %v", err)
	}
	g.do(remove(made()))
	if dp := g.settle(); dp != nil {
		t.Errorf("got %+v", dp)
	}
	if err := g.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: install.HubAccountName("p")}, &corev1.ServiceAccount{}); err != nil {
		t.Errorf("another's account was deleted: %v", err)
	}
}

func TestARegisteredClusterStays(t *testing.T) {
	g := newRig(t, registered(), kubeconfig())
	if dp := g.settle(); dp.Status.Phase != v1alpha1.PhaseReady {
		t.Fatalf("got %+v", dp.Status)
	}
	g.spoke.log, g.spoke.trouble = nil, "its name does not resolve"
	g.do(remove(made()))
	g.settle()
	g.expect(v1alpha1.ReasonAgentNotInstalled, "delete Secret k to leave the agent there")
	g.spoke.trouble = ""
	if dp := g.settle(); dp != nil {
		t.Fatalf("got %+v", dp)
	}
	if g.spoke.installed(t.Context()) || slices.ContainsFunc(g.spoke.log, func(s string) bool { return strings.Contains(s, "CustomResourceDefinition") }) {
		t.Errorf("got %v", g.spoke.log)
	}
	if last := g.spoke.log[len(g.spoke.log)-1]; last != "delete Namespace hotspare-agent" {
		t.Errorf("got %v", g.spoke.log)
	}
	if err := g.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "k"}, &corev1.Secret{}); err != nil {
		t.Error(err)
	}
}

// Two data planes on one cluster do not overwrite each other's agent.
func TestTheAgentOfAnotherDataPlaneIsLeftAlone(t *testing.T) {
	g := newRig(t, registered(), kubeconfig())
	m, err := install.DataPlaneManifests(install.Agent{UID: "other", Image: "hotspare"})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.spoke.Create(t.Context(), m.Apply[len(m.Apply)-1]); err != nil {
		t.Fatal(err)
	}
	g.settle()
	g.expect(v1alpha1.ReasonNameTaken, "the agent of another data plane")
	g.do(remove(made()))
	if dp := g.settle(); dp != nil || !g.spoke.installed(t.Context()) {
		t.Errorf("got %+v, %v", dp, g.spoke.log)
	}
}

// Instances belong to the namespace of the FleetRegion that takes precedence, even if a data plane
// elsewhere has that name.
func TestNobodyGetsTheInstancesOfAnotherNamespace(t *testing.T) {
	elder := &v1alpha1.FleetRegion{ObjectMeta: metav1.ObjectMeta{Namespace: "another", Name: "first"}}
	elder.Spec.Provider, elder.Spec.Region = "local", "laptop"
	i := &v1alpha1.ServiceInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "i", UID: "i"}}
	i.Spec = v1alpha1.ServiceInstanceSpec{Type: "developer", Size: "x1", Provider: "local", Region: "laptop"}
	i.Status = v1alpha1.ServiceInstanceStatus{DataPlaneName: "p", Units: 1, Placements: 1}
	for name, objects := range map[string][]client.Object{"[i]": nil, "[]": {elder}} {
		g := newRig(t, append(objects, i.DeepCopy(), registered(), kubeconfig())...)
		if objects != nil { // the older of two takes precedence
			g.do(edit(&v1alpha1.FleetRegion{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "here"}}, func(r *v1alpha1.FleetRegion) { r.CreationTimestamp = metav1.NewTime(start) }))
		}
		g.settle()
		var a v1alpha1.DataPlaneAgent
		if err := g.Get(t.Context(), key, &a); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, in := range a.Spec.Instances {
			if !in.Reserved {
				got = append(got, in.UID)
			}
		}
		if fmt.Sprint(got) != name {
			t.Errorf("got %v, want %s", got, name)
		}
	}
}

func TestTheRegionIsTold(t *testing.T) {
	g := newRig(t, made())
	g.settle()
	g.told()
	g.do(edit(made(), func(dp *v1alpha1.DataPlane) {
		dp.Status.Phase, dp.Status.ReleasedAt = v1alpha1.PhaseDeprovisioning, &metav1.Time{Time: start}
	}))
	if dp := g.settle(); dp != nil {
		t.Fatalf("got %+v", dp)
	}
	if got := fmt.Sprint(g.told()); got != "[Cleanup DataPlaneReleased]" {
		t.Errorf("got %s", got)
	}
	g.do(func(ctx context.Context, api client.Client) error { return left("", 0, 0, 0)(ctx, api) })
}

// A refused instance stays listed until nothing of it is left, although its status no longer names
// the data plane.
func TestARefusedInstanceIsTakenAway(t *testing.T) {
	i := &v1alpha1.ServiceInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "i", UID: "i"}}
	i.Spec = v1alpha1.ServiceInstanceSpec{Type: "developer", Size: "x1", Provider: "local", Region: "laptop"}
	i.Status = v1alpha1.ServiceInstanceStatus{DataPlaneName: "p", Units: 1, Placements: 1}
	g := newRig(t, i.DeepCopy(), registered(), kubeconfig())
	g.settle()
	g.do(edit(i.DeepCopy(), func(i *v1alpha1.ServiceInstance) { i.Status.DataPlaneName = "" }))
	g.settle()
	var a v1alpha1.DataPlaneAgent
	listed := func() string {
		if err := g.Get(t.Context(), key, &a); err != nil {
			t.Fatal(err)
		}
		out := ""
		for _, in := range a.Spec.Instances {
			if !in.Reserved {
				out += fmt.Sprintf("%s deleted %t", in.UID, in.Deleted)
			}
		}
		return out
	}
	if got := listed(); got != "i deleted true" {
		t.Errorf("listed: %s", got)
	}
	g.do(edit(a.DeepCopy(), func(a *v1alpha1.DataPlaneAgent) {
		a.Status.Report.Instances = []v1alpha1.InstanceReport{{UID: "i", PlacementID: "i-1", Phase: v1alpha1.AgentDeleted}}
	}))
	g.pass()
	if got := listed(); got != "" {
		t.Errorf("nothing of it is left, and it is listed: %s", got)
	}
}

// An instance is on a data plane that is being removed, and the cache does not show it.
func TestWhatGoesIsLookedAtPastTheCache(t *testing.T) {
	g := newRig(t, plane())
	g.settle()
	i := &v1alpha1.ServiceInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "i", UID: "u-i"}}
	i.Spec = v1alpha1.ServiceInstanceSpec{Type: "developer", Size: "x1", Provider: "local", Region: "laptop"}
	g.do(create(i))
	g.do(edit(i.DeepCopy(), func(i *v1alpha1.ServiceInstance) { i.Status.DataPlaneName, i.Status.Units = "p", 1 }))
	stale, ok := g.Client.(client.WithWatch)
	if !ok {
		t.Fatal("the client cannot be wrapped")
	}
	g.r.Client = interceptor.NewClient(stale, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, is := list.(*v1alpha1.ServiceInstanceList); is {
				return nil
			}
			return c.List(ctx, list, opts...)
		},
	})
	g.do(remove(plane()))
	for range 10 {
		g.pass()
		if _, err := world(t.Context(), g.Client, g.spoke); err != nil {
			t.Fatal(err)
		}
	}
	g.expect(v1alpha1.ReasonInstancesLeft, "team/i")
}
