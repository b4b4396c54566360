package bootstrapstep_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
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
	"hotspare.io/hotspare/internal/bootstrap"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/controller/bootstrapstep"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// rig is a hub with one spare of pool n/p, whose bootstrap b has step base with an object, and step more with
// ConfigMap c and Secret s.
type rig struct {
	client.Client
	r      *bootstrapstep.Reconciler
	clock  *clocktesting.FakePassiveClock
	events *events.FakeRecorder
	// outcomes are those of the steps; a step without one is done. taken are the steps that were attempted, and
	// secrets what their messages must not contain. during is called while a step is taken.
	outcomes map[string]bootstrap.Outcome
	taken    []string
	secrets  []string
	during   func()
	// calls are the attempts and the removals of other versions. remains is how often a removal finds that something is left.
	calls   []string
	remains int
	// writes counts the writes of statuses; the one with number refused is refused.
	writes, refused int
}

func (g *rig) TakeStep(_ context.Context, _ types.NamespacedName, step bootstrap.Step, secrets []string) (bootstrap.Outcome, error) {
	g.calls = append(g.calls, step.Name)
	g.taken, g.secrets = append(g.taken, fmt.Sprintf("%s(%d)", step.Name, len(step.Manifests))), secrets
	if g.during != nil {
		g.during()
	}
	if o, found := g.outcomes[step.Name]; found {
		return o, nil
	}
	return bootstrap.Outcome{Done: true}, nil
}

func (g *rig) RemoveOtherVersions(_ context.Context, _ types.NamespacedName, version string) (bootstrap.Outcome, error) {
	word := "remove-others"
	if version == "" {
		word = "remove-all"
	}
	g.calls = append(g.calls, word)
	if g.remains > 0 {
		g.remains--
		return bootstrap.Outcome{Message: "waiting for the deletion of Pod x"}, nil
	}
	return bootstrap.Outcome{Done: true}, nil
}

const pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}`

func newRig(t *testing.T, change ...func(*hivev1.ClusterDeployment)) *rig {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(s), hivev1.AddToScheme(s), v1alpha1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	at, stepsSince := metav1.NewTime(noon.Add(-time.Minute)), metav1.NewTime(noon.Add(-time.Hour))
	cd := &hivev1.ClusterDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "c", Name: "c", UID: "u"},
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
	steps := []v1alpha1.BootstrapStep{
		{Name: "base", Manifests: &v1alpha1.BootstrapManifests{Objects: []runtime.RawExtension{{Raw: []byte(pod)}}}},
		{Name: "more", Timeout: "1m", Manifests: &v1alpha1.BootstrapManifests{From: []v1alpha1.ManifestSource{
			{ConfigMapRef: &v1alpha1.ManifestReference{Name: "c"}}, {SecretRef: &v1alpha1.ManifestReference{Name: "s"}},
		}}},
	}
	g := &rig{clock: clocktesting.NewFakePassiveClock(noon), events: events.NewFakeRecorder(100), outcomes: map[string]bootstrap.Outcome{}, refused: -1}
	g.Client = fake.NewClientBuilder().WithScheme(s).WithStatusSubresource(cd, &v1alpha1.ClusterBootstrap{}).WithObjects(
		cd,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "c", Labels: map[string]string{hivev1.LabelPoolName: "p", hivev1.LabelPoolNamespace: "n"}}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c"}, Data: map[string]string{"a": pod}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s"}, Data: map[string][]byte{"a": []byte(strings.Replace(pod, `"a"`, `"hunter22"`, 1))}},
		&hivev1.ClusterPool{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p"}, Status: hivev1.ClusterPoolStatus{StepsSince: &stepsSince}},
		&v1alpha1.PoolPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p"}, Spec: v1alpha1.PoolPolicySpec{BootstrapRef: &v1alpha1.BootstrapReference{Name: "b"}}},
		&v1alpha1.ClusterBootstrap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "b"}, Spec: v1alpha1.ClusterBootstrapSpec{Steps: steps}},
	).WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
		g.writes++
		if g.writes == g.refused {
			return errors.New("killed")
		}
		return c.SubResource(sub).Patch(ctx, o, p, opts...)
	}}).Build()
	g.r = &bootstrapstep.Reconciler{Client: g.Client, Live: g.Client, Spokes: g, Clock: g.clock, Events: g.events}
	return g
}

var key = types.NamespacedName{Namespace: "c", Name: "c"}

// pass reconciles the cluster, and returns its condition, and when it is reconciled again.
func (g *rig) pass(t *testing.T) string {
	t.Helper()
	result, err := g.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	if err != nil {
		return err.Error()
	}
	c := condition.Find(g.cluster(t).Status.Conditions, hivev1.ClusterBootstrapped)
	if c == nil {
		return fmt.Sprintf("none, again in %s", result.RequeueAfter)
	}
	return fmt.Sprintf("%s %s, again in %s", c.Status, c.Reason, result.RequeueAfter)
}

func (g *rig) cluster(t *testing.T) *hivev1.ClusterDeployment {
	t.Helper()
	var cd hivev1.ClusterDeployment
	if err := g.Get(t.Context(), key, &cd); err != nil {
		t.Fatal(err)
	}
	return &cd
}

// edit changes the stored cluster.
func (g *rig) edit(t *testing.T, change func(*hivev1.ClusterDeployment)) {
	t.Helper()
	cd := g.cluster(t)
	change(cd)
	status := cd.Status
	if err := g.Update(t.Context(), cd); err != nil {
		t.Fatal(err)
	}
	cd.Status = status
	if err := g.Status().Update(t.Context(), cd); err != nil {
		t.Fatal(err)
	}
}

func (g *rig) reasons() []string {
	var out []string
	for len(g.events.Events) > 0 {
		out = append(out, strings.Fields(<-g.events.Events)[1])
	}
	return out
}

func expect(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestStepsAreTakenInOrder(t *testing.T) {
	g := newRig(t)
	g.outcomes["more"] = bootstrap.Outcome{Message: "waiting for Pod a"}
	expect(t, g.pass(t), "False StepInProgress, again in 1ms")
	expect(t, g.pass(t), "False StepInProgress, again in 250ms")
	g.clock.SetTime(noon.Add(30 * time.Second))
	writes := g.writes
	expect(t, g.pass(t), "False StepInProgress, again in 3s")
	if g.writes != writes {
		t.Errorf("%d writes while nothing changes", g.writes-writes)
	}
	if r := g.cluster(t).Status.Bootstrap; !r.Deadline.Time.Equal(noon.Add(time.Minute)) {
		t.Errorf("the record is %+v", r)
	}
	g.outcomes["more"] = bootstrap.Outcome{Failed: true, Message: "Pod a is refused"}
	expect(t, g.pass(t), "False StepFailed, again in 3s")
	expect(t, g.pass(t), "False StepFailed, again in 3s")
	delete(g.outcomes, "more")
	expect(t, g.pass(t), "True StepsDone, again in 0s")
	attempts := len(g.taken)
	expect(t, g.pass(t), "True StepsDone, again in 0s")
	if len(g.taken) != attempts {
		t.Error("a step was taken again")
	}
	if got := strings.Join(g.taken, " "); got != "base(1) more(2) more(2) more(2) more(2) more(2)" {
		t.Errorf("the steps were %s", got)
	}
	if got := g.reasons(); !slices.Equal(got, []string{"StepDone", "StepFailed", "StepDone", "StepsDone"}) {
		t.Errorf("the events are %v", got)
	}
	if !slices.Contains(g.secrets, "hunter22") {
		t.Errorf("the secrets are %q", g.secrets)
	}
}

// A process that is killed at any write repeats at most the step in progress.
func TestKilledAtEachWrite(t *testing.T) {
	for refused := 1; refused <= 3; refused++ {
		g := newRig(t)
		g.refused = refused
		for range 6 {
			g.pass(t)
		}
		if r := g.cluster(t).Status.Bootstrap; r == nil || r.FinishedAt == nil || !slices.Equal(r.StepsDone, []string{"base", "more"}) {
			t.Errorf("killed at write %d: the record is %+v", refused, r)
		}
		if got := strings.Join(slices.Compact(g.taken), " "); got != "base(1) more(2)" || len(g.taken) > 3 {
			t.Errorf("killed at write %d: the steps were %v", refused, g.taken)
		}
	}
}

// adopted makes a cluster one that its pool neither created nor replaces.
func adopted(cd *hivev1.ClusterDeployment) { cd.Spec.PreserveOnDelete = true }

func TestTheLastStepIsDoneWhenNothingOfOtherVersionsRemains(t *testing.T) {
	g := newRig(t)
	g.remains = 2
	for range 3 {
		if got := g.pass(t); !strings.HasPrefix(got, "False StepInProgress") {
			t.Fatalf("got %s", got)
		}
	}
	expect(t, condition.Find(g.cluster(t).Status.Conditions, hivev1.ClusterBootstrapped).Message, "Step 2 of 2, more: waiting for the deletion of Pod x.")
	expect(t, g.pass(t), "True StepsDone, again in 0s")
	expect(t, strings.Join(g.calls, " "), "base more remove-others more remove-others more remove-others")
}

// A Job of the steps that an adopted cluster had begun does not run beside the new ones.
func TestAnAdoptedClusterContinuesWithOtherSteps(t *testing.T) {
	g := newRig(t, adopted)
	g.outcomes["base"] = bootstrap.Outcome{Message: "waiting for Job base"}
	expect(t, g.pass(t), "False StepInProgress, again in 250ms")
	var c corev1.ConfigMap
	if err := g.Get(t.Context(), types.NamespacedName{Namespace: "n", Name: "c"}, &c); err != nil {
		t.Fatal(err)
	}
	c.Data["a"] += "\n"
	if err := g.Update(t.Context(), &c); err != nil {
		t.Fatal(err)
	}
	delete(g.outcomes, "base")
	g.calls, g.remains = nil, 1
	for range 3 {
		g.pass(t)
	}
	expect(t, g.pass(t), "True StepsDone, again in 0s")
	expect(t, strings.Join(g.calls, " "), "remove-others remove-others base more remove-others")
}

// The steps of an adopted cluster are removed while it takes one. A process that is killed at any write repeats what
// removes their programs, and no claim gets the cluster before.
func TestTheStepsOfAnAdoptedClusterAreRemovedMeanwhile(t *testing.T) {
	for refused := -1; refused <= 2; refused++ {
		g := newRig(t, adopted)
		g.outcomes["base"] = bootstrap.Outcome{Message: "waiting for Job base"}
		expect(t, g.pass(t), "False StepInProgress, again in 250ms")
		if err := g.Delete(t.Context(), &v1alpha1.PoolPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p"}}); err != nil {
			t.Fatal(err)
		}
		g.calls, g.remains, g.writes, g.refused = nil, 2, 0, refused
		for g.remains > 0 {
			g.pass(t)
			if bootstrap.IsFinished(g.cluster(t)) {
				t.Fatalf("killed at write %d: finished while something remains", refused)
			}
		}
		if refused < 0 {
			expect(t, condition.Find(g.cluster(t).Status.Conditions, hivev1.ClusterBootstrapped).Message, "The bootstrap has no steps any more: waiting for the deletion of Pod x.")
		}
		for range 2 {
			g.pass(t)
		}
		expect(t, g.pass(t), "True StepsDone, again in 0s")
		if got := slices.Compact(g.calls); !slices.Equal(got, []string{"remove-all"}) || !bootstrap.IsFinished(g.cluster(t)) {
			t.Errorf("killed at write %d: the calls are %v", refused, got)
		}
		if got := g.reasons(); slices.Contains(got, "StepDone") {
			t.Errorf("the events are %v", got)
		}
	}
}

func TestClustersInWhichNoStepIsTaken(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*hivev1.ClusterDeployment)
		want   string
	}{
		"a claimed cluster":                 {func(cd *hivev1.ClusterDeployment) { cd.Spec.ClusterPoolRef.ClaimName = "x" }, "none, again in 0s"},
		"a cluster of no pool":              {func(cd *hivev1.ClusterDeployment) { cd.Spec.ClusterPoolRef = nil }, "none, again in 0s"},
		"a cluster of a pool without steps": {func(cd *hivev1.ClusterDeployment) { cd.Spec.ClusterPoolRef.PoolName = "q" }, "none, again in 0s"},
		"a cluster that resumes":            {func(cd *hivev1.ClusterDeployment) { cd.Status.PowerState = hivev1.ReasonWaitingForNodes }, "none, again in 0s"},
		"a cluster that should hibernate":   {func(cd *hivev1.ClusterDeployment) { cd.Spec.PowerState = hivev1.PowerHibernating }, "none, again in 0s"},
		"a paused cluster": {func(cd *hivev1.ClusterDeployment) {
			cd.Annotations = map[string]string{hivev1.AnnotationReconcilePause: "true"}
		}, "none, again in 0s"},
		"a fake cluster is done": {func(cd *hivev1.ClusterDeployment) { cd.Annotations = map[string]string{hivev1.AnnotationFake: "true"} }, "True StepsDone, again in 0s"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, tc.change)
			expect(t, g.pass(t), tc.want)
			if len(g.taken) > 0 {
				t.Error("a step was taken")
			}
			if strings.HasPrefix(tc.want, "none") && g.writes > 0 {
				t.Error("its status was written")
			}
		})
	}
}

func TestACacheThatIsBehind(t *testing.T) {
	g := newRig(t)
	g.outcomes["base"] = bootstrap.Outcome{Message: "waiting"}
	expect(t, g.pass(t), "False StepInProgress, again in 250ms")
	old := g.cluster(t)
	g.edit(t, func(cd *hivev1.ClusterDeployment) { cd.Spec.ClusterPoolRef.ClaimName = "x" })
	g.r.Client = interceptor.NewClient(g.Client.(client.WithWatch), interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if cd, is := o.(*hivev1.ClusterDeployment); is {
			old.DeepCopyInto(cd)
			return nil
		}
		return c.Get(ctx, k, o, opts...)
	}})
	attempts := len(g.taken)
	g.pass(t)
	if len(g.taken) != attempts {
		t.Error("a step was taken in a claimed cluster")
	}
}

func TestTheBootstrapChangesMeanwhile(t *testing.T) {
	g := newRig(t)
	expect(t, g.pass(t), "False StepInProgress, again in 1ms")
	var c corev1.ConfigMap
	if err := g.Get(t.Context(), types.NamespacedName{Namespace: "n", Name: "c"}, &c); err != nil {
		t.Fatal(err)
	}
	c.Data["a"] += "\n"
	if err := g.Update(t.Context(), &c); err != nil {
		t.Fatal(err)
	}
	expect(t, g.pass(t), "False BootstrapChanged, again in 0s")
	if err := g.Delete(t.Context(), &c); err != nil {
		t.Fatal(err)
	}
	expect(t, g.pass(t), "Unknown NotTaken, again in 5s")
	cond := condition.Find(g.cluster(t).Status.Conditions, hivev1.ClusterBootstrapped)
	expect(t, cond.Message, "The steps of the bootstrap are not taken: ConfigMap c of ClusterBootstrap b does not exist: create it.")
	if len(g.taken) != 1 {
		t.Errorf("the steps were %v", g.taken)
	}
}

// The run ends while a step is taken: its outcome is not stored, and the step begins anew in the next run.
func TestAClusterLosesPowerWhileItTakesAStep(t *testing.T) {
	g := newRig(t)
	g.during = func() {
		g.during = nil
		g.edit(t, func(cd *hivev1.ClusterDeployment) {
			cd.Status.PowerState = hivev1.ReasonWaitingForMachines
			bootstrap.EndRun(cd)
		})
	}
	g.pass(t)
	if r := g.cluster(t).Status.Bootstrap; len(r.StepsDone) > 0 || r.Step != "" {
		t.Errorf("the record is %+v", r)
	}
	expect(t, g.pass(t), "Unknown NotTaken, again in 0s")
	g.edit(t, func(cd *hivev1.ClusterDeployment) {
		at := metav1.NewTime(noon)
		cd.Status.PowerState, cd.Status.PowerTransition = hivev1.StatusRunning, &hivev1.PowerTransition{Target: hivev1.PowerRunning, StartedAt: at, FinishedAt: &at}
	})
	expect(t, g.pass(t), "False StepInProgress, again in 1ms")
	expect(t, g.pass(t), "True StepsDone, again in 0s")
	if got := strings.Join(g.taken, " "); got != "base(1) base(1) more(2)" {
		t.Errorf("the steps were %s", got)
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
	if got := g.pass(t); !strings.Contains(got, "was not created for a cluster of pool p") || len(g.taken) > 0 {
		t.Errorf("got %s, and steps %v", got, g.taken)
	}
}

// A spare that is older than the steps of its pool begins them when the pool says so.
func TestASpareThatIsOlderThanTheStepsWaitsForItsPool(t *testing.T) {
	t.Parallel()
	older := metav1.NewTime(noon.Add(-2 * time.Hour))
	g := newRig(t, func(cd *hivev1.ClusterDeployment) {
		cd.Annotations = map[string]string{hivev1.AnnotationPoolVersion: "v"}
		cd.Status.InstalledTimestamp = &older
	})
	expect(t, g.pass(t), "Unknown NotTaken, again in 0s")
	if len(g.taken) > 0 {
		t.Errorf("it takes %v", g.taken)
	}
	other := newRig(t)
	expect(t, other.pass(t), "False StepInProgress, again in 1ms")
	g.edit(t, func(cd *hivev1.ClusterDeployment) {
		cd.Status.Bootstrap = &hivev1.BootstrapRecord{Version: other.cluster(t).Status.Bootstrap.Version}
	})
	expect(t, g.pass(t), "False StepInProgress, again in 1ms")
	if len(g.taken) != 1 {
		t.Errorf("it takes %v", g.taken)
	}
}

// Until the pool has recorded since when it has steps, nobody knows which spares are older.
func TestNoSpareBeginsBeforeThePoolHasRecordedTheSteps(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	var p hivev1.ClusterPool
	if err := g.Get(t.Context(), types.NamespacedName{Namespace: "n", Name: "p"}, &p); err != nil {
		t.Fatal(err)
	}
	p.Status.StepsSince = nil
	if err := g.Update(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
	expect(t, g.pass(t), "none, again in 0s")
	if len(g.taken) > 0 {
		t.Errorf("it takes %v", g.taken)
	}
}
