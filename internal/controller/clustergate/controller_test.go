package clustergate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/controller/clustergate"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/gate"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// rig is a hub with one spare of pool n/p, whose policy names bootstrap b.
type rig struct {
	client.Client
	r      *clustergate.Reconciler
	clock  *clocktesting.FakePassiveClock
	events *events.FakeRecorder
	// answers are those of the gates of the spare; asked counts the checks, runs has their runs, and during is
	// called while one is in progress.
	answers map[string]gate.Answer
	asked   int
	runs    []string
	during  func()
	writes  int
	// podDeletions counts the deletions of the pods of all gates, and podTrouble is why they fail.
	podDeletions int
	podTrouble   string
}

func (g *rig) CheckGates(_ context.Context, _ types.NamespacedName, gates []v1alpha1.Gate, run string) (map[string]gate.Answer, error) {
	g.asked++
	g.runs = append(g.runs, run)
	out := map[string]gate.Answer{}
	for _, one := range gates {
		out[one.Name] = g.answers[one.Name]
	}
	if g.during != nil {
		g.during()
	}
	return out, nil
}

func (g *rig) DeleteGatePods(context.Context, types.NamespacedName) (trouble string, err error) {
	g.podDeletions++
	return g.podTrouble, nil
}

func newRig(t *testing.T, change ...func(*hivev1.ClusterDeployment)) *rig {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(s), hivev1.AddToScheme(s), v1alpha1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	at := metav1.NewTime(noon.Add(-time.Minute))
	cd := &hivev1.ClusterDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "c", Name: "c"},
		Spec: hivev1.ClusterDeploymentSpec{
			Installed: true, PowerState: hivev1.PowerRunning, ClusterPoolRef: &hivev1.ClusterPoolReference{Namespace: "n", PoolName: "p"},
		},
		Status: hivev1.ClusterDeploymentStatus{
			PowerState: hivev1.StatusRunning, PowerTransition: &hivev1.PowerTransition{Target: hivev1.PowerRunning, StartedAt: at, FinishedAt: &at},
		},
	}
	for _, c := range change {
		c(cd)
	}
	g := &rig{clock: clocktesting.NewFakePassiveClock(noon), events: events.NewFakeRecorder(100), answers: map[string]gate.Answer{}}
	g.Client = fake.NewClientBuilder().WithScheme(s).WithStatusSubresource(cd, &v1alpha1.ClusterBootstrap{}).WithObjects(
		cd,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "c", Labels: map[string]string{hivev1.LabelPoolName: "p", hivev1.LabelPoolNamespace: "n"}}},
		&v1alpha1.PoolPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p"}, Spec: v1alpha1.PoolPolicySpec{BootstrapRef: &v1alpha1.BootstrapReference{Name: "b"}}},
		&v1alpha1.ClusterBootstrap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "b"}, Spec: v1alpha1.ClusterBootstrapSpec{Gates: []v1alpha1.Gate{{Name: "web", Type: v1alpha1.GateNodesReady}}}},
	).WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
		g.writes++
		return c.SubResource(sub).Patch(ctx, o, p, opts...)
	}}).Build()
	g.r = &clustergate.Reconciler{Client: g.Client, Spokes: g, Clock: g.clock, Events: g.events}
	return g
}

// pass reconciles the cluster, and returns its condition, and when it is reconciled again.
func (g *rig) pass(t *testing.T) string {
	t.Helper()
	result, err := g.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "c", Name: "c"}})
	if err != nil {
		t.Fatal(err)
	}
	c := condition.Find(g.cluster(t).Status.Conditions, hivev1.ClusterGatesPassed)
	if c == nil {
		return fmt.Sprintf("none, again in %s", result.RequeueAfter)
	}
	return fmt.Sprintf("%s %s, again in %s", c.Status, c.Reason, result.RequeueAfter)
}

func (g *rig) cluster(t *testing.T) *hivev1.ClusterDeployment {
	t.Helper()
	var cd hivev1.ClusterDeployment
	if err := g.Get(t.Context(), types.NamespacedName{Namespace: "c", Name: "c"}, &cd); err != nil {
		t.Fatal(err)
	}
	return &cd
}

// recorded returns the events so far.
func (g *rig) recorded() []string {
	var out []string
	for len(g.events.Events) > 0 {
		out = append(out, <-g.events.Events)
	}
	return out
}

func expect(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTheVerdictIsWrittenWhenItChanges(t *testing.T) {
	g := newRig(t)
	g.answers["web"] = gate.Answer{Message: "it is down"}
	expect(t, g.pass(t), "False GateFailed, again in 500ms")
	g.clock.SetTime(noon.Add(20 * time.Second))
	expect(t, g.pass(t), "False GateFailed, again in 2s")
	if g.writes != 1 {
		t.Errorf("%d writes while nothing changes, want 1", g.writes)
	}
	g.answers["web"] = gate.Answer{Passed: true}
	expect(t, g.pass(t), "True GatesPassed, again in 30s")
	g.answers["web"] = gate.Answer{Message: "it is down"}
	expect(t, g.pass(t), "False GateFailed, again in 500ms")
	if r := g.cluster(t).Status.Gates; r.FirstPassedAt == nil || r.Passed || !r.FailedSince.Time.Equal(noon.Add(20*time.Second)) {
		t.Errorf("the record is %+v", r)
	}
	var reasons []string
	for _, e := range g.recorded() {
		reasons = append(reasons, strings.Fields(e)[1])
	}
	if want := []string{"GateFailed", "GatesPassed", "GateFailed"}; !slices.Equal(reasons, want) {
		t.Errorf("events %v, want %v", reasons, want)
	}
}

func TestClustersThatAreNotChecked(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*hivev1.ClusterDeployment)
		want   string
	}{
		"a claimed cluster":                 {func(cd *hivev1.ClusterDeployment) { cd.Spec.ClusterPoolRef.ClaimName = "x" }, "none, again in 0s"},
		"a cluster of no pool":              {func(cd *hivev1.ClusterDeployment) { cd.Spec.ClusterPoolRef = nil }, "none, again in 0s"},
		"a cluster of a pool without gates": {func(cd *hivev1.ClusterDeployment) { cd.Spec.ClusterPoolRef.PoolName = "q" }, "none, again in 0s"},
		"a cluster that resumes":            {func(cd *hivev1.ClusterDeployment) { cd.Status.PowerState = hivev1.ReasonWaitingForNodes }, "none, again in 0s"},
		"a cluster that should hibernate":   {func(cd *hivev1.ClusterDeployment) { cd.Spec.PowerState = hivev1.PowerHibernating }, "none, again in 0s"},
		"a paused cluster": {func(cd *hivev1.ClusterDeployment) {
			cd.Annotations = map[string]string{hivev1.AnnotationReconcilePause: "true"}
		}, "none, again in 0s"},
		"a fake cluster passes": {func(cd *hivev1.ClusterDeployment) { cd.Annotations = map[string]string{hivev1.AnnotationFake: "true"} }, "True GatesPassed, again in 0s"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, tc.change)
			expect(t, g.pass(t), tc.want)
			if g.asked > 0 {
				t.Error("the cluster was asked")
			}
			if strings.HasPrefix(tc.want, "none") && g.writes > 0 {
				t.Error("its status was written")
			}
		})
	}
}

// The run ends while its gates are checked: the verdict comes too late, and must not be stored.
func TestAVerdictOfAnEarlierRunIsRefused(t *testing.T) {
	g := newRig(t)
	g.answers["web"] = gate.Answer{Passed: true}
	g.during = func() {
		g.during = nil
		cd := g.cluster(t)
		cd.Status.PowerState = hivev1.ReasonStopping
		gate.EndRun(cd, noon)
		if err := g.Status().Update(t.Context(), cd); err != nil {
			t.Fatal(err)
		}
	}
	_, err := g.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "c", Name: "c"}})
	if fault.KindOf(err) != fault.Conflict && err != nil {
		t.Fatalf("got %v, want a conflict or none that is reported", err)
	}
	if r := g.cluster(t).Status.Gates; r != nil {
		t.Errorf("a verdict about the earlier run was stored: %+v", r)
	}
}

func TestAClusterThatOnlyClaimsToBeOfThePool(t *testing.T) {
	g := newRig(t)
	var ns corev1.Namespace
	if err := g.Get(t.Context(), types.NamespacedName{Name: "c"}, &ns); err != nil {
		t.Fatal(err)
	}
	ns.Labels = nil
	if err := g.Update(t.Context(), &ns); err != nil {
		t.Fatal(err)
	}
	_, err := g.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "c", Name: "c"}})
	if err == nil || g.asked > 0 {
		t.Errorf("its gates were checked %d times, %v", g.asked, err)
	}
}

func TestAMissingBootstrapPassesNobody(t *testing.T) {
	g := newRig(t)
	g.answers["web"] = gate.Answer{Passed: true}
	expect(t, g.pass(t), "True GatesPassed, again in 30s")
	if err := g.Delete(t.Context(), &v1alpha1.ClusterBootstrap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "b"}}); err != nil {
		t.Fatal(err)
	}
	expect(t, g.pass(t), "Unknown NotChecked, again in 0s")
	if v := gate.PassedVersion(g.cluster(t)); v != "" {
		t.Errorf("it has passed %q", v)
	}
	if err := g.Delete(t.Context(), &v1alpha1.PoolPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p"}}); err != nil {
		t.Fatal(err)
	}
	expect(t, g.pass(t), "none, again in 0s")
	if r := g.cluster(t).Status.Gates; r != nil {
		t.Errorf("the record of a pool without gates remains: %+v", r)
	}
}

// A gate that is removed may leave a pod that does not run yet: it is deleted before the verdict is removed.
func TestTheGatesAreRemovedWhileAPodIsPending(t *testing.T) {
	g := newRig(t)
	g.answers["web"] = gate.Answer{Message: "pod hotspare-gate-web does not run yet"}
	expect(t, g.pass(t), "False GateFailed, again in 500ms")
	if err := g.Delete(t.Context(), &v1alpha1.PoolPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p"}}); err != nil {
		t.Fatal(err)
	}
	g.podTrouble = "connection refused"
	for range 2 {
		expect(t, g.pass(t), "Unknown NotChecked, again in 15s")
	}
	g.podTrouble = ""
	for range 2 {
		expect(t, g.pass(t), "none, again in 0s")
	}
	if g.podDeletions != 3 || g.cluster(t).Status.Gates != nil {
		t.Errorf("%d deletions, and the record is %+v", g.podDeletions, g.cluster(t).Status.Gates)
	}
}

func TestValidity(t *testing.T) {
	g := newRig(t)
	r := &clustergate.BootstrapSpecReconciler{Client: g.Client, Clock: g.clock, Events: g.events}
	key := types.NamespacedName{Namespace: "n", Name: "b"}
	for _, tc := range []struct{ expression, want string }{
		{"object.a == 1", "True Understood: The specification is valid"},
		{"subject.a == 1", "False InvalidExpression: spec.gates[0].object.expression of gate web is not valid: undeclared reference to 'subject' (in container '')"},
		{"has(object.b)", "True Understood: The specification is valid"},
	} {
		var b v1alpha1.ClusterBootstrap
		if err := g.Get(t.Context(), key, &b); err != nil {
			t.Fatal(err)
		}
		b.Spec.Gates[0].Object = &v1alpha1.GateObjectCheck{Expression: tc.expression}
		if err := g.Update(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
			t.Fatal(err)
		}
		if err := g.Get(t.Context(), key, &b); err != nil {
			t.Fatal(err)
		}
		c := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.BootstrapValid)
		expect(t, fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message), tc.want)
	}
	if n := len(g.recorded()); n != 1 {
		t.Errorf("%d events, want one about the expression that is not valid", n)
	}
}

// The pool of a spare that has passed its gates gets steps: the verdict stays until the spare begins them.
func TestAVerdictStaysUntilTheSpareBeginsTheSteps(t *testing.T) {
	installed := metav1.NewTime(noon.Add(-2 * time.Hour))
	g := newRig(t, func(cd *hivev1.ClusterDeployment) {
		cd.Annotations = map[string]string{hivev1.AnnotationPoolVersion: "v"}
		cd.Status.InstalledTimestamp = &installed
	})
	g.answers["web"] = gate.Answer{Passed: true}
	expect(t, g.pass(t), "True GatesPassed, again in 30s")
	var b v1alpha1.ClusterBootstrap
	if err := g.Get(t.Context(), types.NamespacedName{Namespace: "n", Name: "b"}, &b); err != nil {
		t.Fatal(err)
	}
	b.Spec.Steps = []v1alpha1.BootstrapStep{{Name: "base", Manifests: &v1alpha1.BootstrapManifests{}}}
	if err := g.Update(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	asked, writes := g.asked, g.writes
	expect(t, g.pass(t), "True GatesPassed, again in 0s")
	if g.asked != asked || g.writes != writes {
		t.Errorf("while the pool has not recorded the steps: %d checks, %d writes", g.asked-asked, g.writes-writes)
	}
	since := metav1.NewTime(noon.Add(-time.Minute))
	p := &hivev1.ClusterPool{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p"}, Status: hivev1.ClusterPoolStatus{StepsSince: &since}}
	if err := g.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	expect(t, g.pass(t), "True GatesPassed, again in 30s")
	cd := g.cluster(t)
	cd.Status.Bootstrap = &hivev1.BootstrapRecord{Version: "v"}
	if err := g.Status().Update(t.Context(), cd); err != nil {
		t.Fatal(err)
	}
	expect(t, g.pass(t), "Unknown NotChecked, again in 0s")
}
