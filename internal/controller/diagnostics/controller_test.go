package diagnostics_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
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

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	controller "hotspare.io/hotspare/internal/controller/diagnostics"
	"hotspare.io/hotspare/internal/diagnostics"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// rig is a hub with the spare c of pool n/p, whose gates have failed since noon and may fail until 12:10.
type rig struct {
	client.Client
	r      *controller.Reconciler
	clock  *clocktesting.FakePassiveClock
	events *events.FakeRecorder
	stored []string
	pruned int
	refuse error
	// unreachable and unprunable are what Has and Prune return.
	unreachable, unprunable error
	causes                  []string
	collect                 func()
}

func (g *rig) Has(_ context.Context, name string) (bool, error) {
	return slices.Contains(g.stored, name), g.unreachable
}

func (g *rig) Write(_ context.Context, name string, _ *diagnostics.Bundle) error {
	if g.refuse == nil {
		g.stored = append(g.stored, name)
	}
	return g.refuse
}

func (g *rig) Prune(context.Context, time.Time) error { g.pruned++; return g.unprunable }

func newRig(t *testing.T) *rig {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(s), hivev1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	cd := &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "c", Name: "c", UID: "0a1b2c3d-0000"}}
	cd.Spec.Installed = true
	cd.Spec.ClusterPoolRef = &hivev1.ClusterPoolReference{Namespace: "n", PoolName: "p"}
	from, to := metav1.NewTime(noon), metav1.NewTime(noon.Add(10*time.Minute))
	cd.Status.Gates = &hivev1.GateRecord{FailedSince: &from, Deadline: &to}
	condition.Set(&cd.Status.Conditions, hivev1.ClusterGatesPassed, corev1.ConditionFalse, hivev1.ReasonGateFailed, "web fails", noon)
	g := &rig{clock: clocktesting.NewFakePassiveClock(noon), events: events.NewFakeRecorder(100)}
	g.Client = fake.NewClientBuilder().WithScheme(s).WithStatusSubresource(cd).
		WithObjects(cd, &hivev1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "x"}}, &hivev1.ClusterPool{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p"}}).Build()
	g.r = &controller.Reconciler{Client: g.Client, Store: g, Clock: g.clock, Events: g.events}
	g.r.Collect = func(ctx context.Context, _ *hivev1.ClusterDeployment, cause string, _ time.Time) (*diagnostics.Bundle, error) {
		g.causes = append(g.causes, cause)
		if g.collect != nil {
			g.collect()
		}
		return nil, ctx.Err()
	}
	return g
}

var key = types.NamespacedName{Namespace: "c", Name: "c"}

// pass reconciles the cluster, and returns its condition, and when it is reconciled again.
func (g *rig) pass(t *testing.T) string {
	t.Helper()
	result, err := g.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	if err != nil {
		t.Fatal(err)
	}
	c := condition.Find(g.cluster(t).Status.Conditions, hivev1.ClusterDiagnosed)
	if c == nil {
		return fmt.Sprintf("none, again in %s", result.RequeueAfter)
	}
	return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
}

func (g *rig) cluster(t *testing.T) *hivev1.ClusterDeployment {
	t.Helper()
	var cd hivev1.ClusterDeployment
	if err := g.Get(t.Context(), key, &cd); err != nil {
		t.Fatal(err)
	}
	return &cd
}

func expect(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

const (
	first   = "c-gate-20260301T120000Z-0a1b2c3d.tar.gz"
	written = "True BundleWritten: Bundle " + first + " contains what hotspare saw of the cluster when a gate failed."
)

func TestAFailureIsCollectedOnce(t *testing.T) {
	g := newRig(t)
	expect(t, g.pass(t), "none, again in 5m0s")
	g.clock.SetTime(noon.Add(5 * time.Minute))
	for range 3 {
		expect(t, g.pass(t), written)
	}
	if len(g.causes) != 1 || g.causes[0] != "a gate failed: web fails" || g.pruned != 1 {
		t.Errorf("collected for %q, pruned %d times", g.causes, g.pruned)
	}
	if n := len(g.events.Events); n != 2 {
		t.Errorf("%d events, want one for the cluster and one for its pool", n)
	}

	t.Log("the process was killed between the write of the bundle and the one of the condition")
	cd := g.cluster(t)
	condition.Remove(&cd.Status.Conditions, hivev1.ClusterDiagnosed)
	if err := g.Status().Update(t.Context(), cd); err != nil {
		t.Fatal(err)
	}
	expect(t, g.pass(t), written)
	if len(g.causes) != 1 {
		t.Errorf("a stored bundle was collected again")
	}

	t.Log("the gates pass, and fail again")
	cd = g.cluster(t)
	from, to := metav1.NewTime(noon.Add(6*time.Minute)), metav1.NewTime(noon.Add(16*time.Minute))
	cd.Status.Gates.FailedSince, cd.Status.Gates.Deadline = &from, &to
	if err := g.Status().Update(t.Context(), cd); err != nil {
		t.Fatal(err)
	}
	g.clock.SetTime(noon.Add(12 * time.Minute))
	if got := g.pass(t); !strings.Contains(got, "c-gate-20260301T120600Z-0a1b2c3d.tar.gz") || len(g.stored) != 2 {
		t.Errorf("got %s, %v", got, g.stored)
	}
}

// A store that refuses is tried again after 10 s, 20 s, 40 s and so on, also by the next process, and not for ever.
func TestAStoreThatRefusesIsTriedAgain(t *testing.T) {
	g := newRig(t)
	g.clock.SetTime(noon.Add(5 * time.Minute))
	g.refuse = fmt.Errorf("writing: %w", &fs.PathError{Op: "open", Path: "/x/.writing-123", Err: syscall.ENOSPC})
	const delayed = "False BundleDelayed: Bundle " + first + " could not be written, and hotspare tries again until the failure ends, for at most an hour: no space left on device."
	for range 3 {
		expect(t, g.pass(t), delayed)
	}
	if n := len(g.events.Events); len(g.causes) != 1 || n != 2 {
		t.Errorf("collected %d times, %d events", len(g.causes), n)
	}
	for tries := 2; tries < 30; tries++ {
		result, err := g.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
		if err != nil {
			t.Fatal(err)
		}
		if result.RequeueAfter == 0 {
			expect(t, g.pass(t), "False BundleNotWritten: Bundle "+first+" could not be written: no space left on device.")
			if since := g.clock.Now().Sub(noon.Add(5 * time.Minute)); since > time.Hour || since < 40*time.Minute || len(g.events.Events) != 4 {
				t.Errorf("given up after %s, %d tries, %d events", since, len(g.causes), len(g.events.Events))
			}
			return
		}
		g.clock.SetTime(g.clock.Now().Add(result.RequeueAfter - time.Second))
		before := len(g.causes)
		expect(t, g.pass(t), delayed)
		if len(g.causes) != before {
			t.Fatal("tried too early")
		}
		g.clock.SetTime(g.clock.Now().Add(time.Second))
		if g.pass(t); len(g.causes) != before+1 {
			t.Fatal("not tried again")
		}
	}
	t.Error("tried for ever")
}

func TestABundleIsStoredWhenTheStoreIsBack(t *testing.T) {
	g := newRig(t)
	g.clock.SetTime(noon.Add(5 * time.Minute))
	g.unreachable = &diagnostics.StoreError{Message: "bucket b does not exist: create it"}
	expect(t, g.pass(t), "False BundleDelayed: Bundle "+first+" could not be written, and hotspare tries again until the failure ends, for at most an hour: bucket b does not exist: create it.")
	if len(g.causes) != 0 {
		t.Error("collected for a store that does not answer")
	}
	g.unreachable = nil
	g.clock.SetTime(noon.Add(5*time.Minute + 10*time.Second))
	expect(t, g.pass(t), written)

	t.Log("the next bundle fails: its tries count from then")
	cd := g.cluster(t)
	cd.Status.Gates = nil
	cd.Status.Bootstrap = &hivev1.BootstrapRecord{Step: "web", StepStartedAt: at(2 * time.Hour), Deadline: at(2*time.Hour + time.Minute)}
	if err := g.Status().Update(t.Context(), cd); err != nil {
		t.Fatal(err)
	}
	g.clock.SetTime(noon.Add(3 * time.Hour))
	g.refuse = errors.New("no")
	if got := g.pass(t); !strings.HasPrefix(got, "False BundleDelayed: ") {
		t.Errorf("got %s", got)
	}
	cd = g.cluster(t)
	cd.Status.Bootstrap.StepStartedAt = at(4 * time.Hour)
	cd.Status.Bootstrap.Deadline = at(4*time.Hour + time.Minute)
	if err := g.Status().Update(t.Context(), cd); err != nil {
		t.Fatal(err)
	}
	for _, now := range []time.Duration{5 * time.Hour, 5*time.Hour + 10*time.Second} {
		g.clock.SetTime(noon.Add(now))
		if got := g.pass(t); !strings.HasPrefix(got, "False BundleDelayed: Bundle c-step-20260301T160000Z") {
			t.Errorf("the tries of another bundle count: %s", got)
		}
	}
}

func at(d time.Duration) *metav1.Time {
	out := metav1.NewTime(noon.Add(d))
	return &out
}

func TestOldBundlesThatRemainAreReported(t *testing.T) {
	g := newRig(t)
	g.clock.SetTime(noon.Add(5 * time.Minute))
	g.unprunable = &diagnostics.StoreError{Message: "access was denied: grant s3:DeleteObject"}
	expect(t, g.pass(t), written+" Old bundles could not be deleted: access was denied: grant s3:DeleteObject.")
}

// release marks the cluster as claimed by n/x, with a value of the annotation, and deletes it at noon.
func (g *rig) release(t *testing.T, value string) {
	t.Helper()
	cd := g.cluster(t)
	cd.Status.Gates = nil
	if err := g.Status().Update(t.Context(), cd); err != nil {
		t.Fatal(err)
	}
	cd.Finalizers = []string{hivev1.FinalizerDeprovision}
	cd.Spec.ClusterPoolRef.ClaimName = "x"
	var claim hivev1.ClusterClaim
	if err := g.Get(t.Context(), types.NamespacedName{Namespace: "n", Name: "x"}, &claim); err != nil {
		t.Fatal(err)
	}
	claim.Annotations = map[string]string{hivev1.AnnotationDiagnoseAtRelease: value}
	if err := errors.Join(g.Update(t.Context(), cd), g.Update(t.Context(), &claim), g.Delete(t.Context(), cd)); err != nil {
		t.Fatal(err)
	}
	g.clock.SetTime(g.cluster(t).DeletionTimestamp.Time)
}

func TestAReleaseHasABundleIfTheClaimRequestsIt(t *testing.T) {
	g := newRig(t)
	g.release(t, "false")
	expect(t, g.pass(t), "none, again in 0s")

	g = newRig(t)
	g.release(t, "true")
	for range 3 {
		if got := g.pass(t); !strings.HasPrefix(got, "True BundleWritten: Bundle c-release-") || !strings.HasSuffix(got, "contains what hotspare saw of the cluster when it was released.") {
			t.Errorf("got %s", got)
		}
	}
	if len(g.causes) != 1 || g.causes[0] != "it was released: claim n/x requests a bundle" || len(g.stored) != 1 {
		t.Errorf("collected for %q, stored %v", g.causes, g.stored)
	}
	if n := len(g.events.Events); n != 3 {
		t.Errorf("%d events, want one for the cluster, its claim and its pool", n)
	}
}

// The tries for a bundle of a release end before the cluster is destroyed without it.
func TestTheTriesOfAReleaseEndInTime(t *testing.T) {
	g := newRig(t)
	g.release(t, "true")
	g.refuse = errors.New("no")
	begin := g.clock.Now()
	for range 30 {
		result, err := g.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
		if err != nil {
			t.Fatal(err)
		}
		g.clock.SetTime(g.clock.Now().Add(result.RequeueAfter))
	}
	if c := condition.Find(g.cluster(t).Status.Conditions, hivev1.ClusterDiagnosed); c.Reason != hivev1.ReasonBundleNotWritten {
		t.Errorf("it is %+v", c)
	}
	if took := g.clock.Now().Sub(begin); took > 2*time.Minute || len(g.causes) < 3 {
		t.Errorf("%d tries in %s", len(g.causes), took)
	}
}

// The time that remains bounds the bundle of a release; a late one has a little.
func TestABundleOfAReleaseIsBounded(t *testing.T) {
	for late, want := range map[time.Duration]time.Duration{0: 90 * time.Second, time.Minute: time.Minute, time.Hour: 30 * time.Second} {
		g := newRig(t)
		g.release(t, "true")
		g.clock.SetTime(g.clock.Now().Add(late))
		var left time.Duration
		g.r.Collect = func(ctx context.Context, _ *hivev1.ClusterDeployment, _ string, _ time.Time) (*diagnostics.Bundle, error) {
			deadline, _ := ctx.Deadline()
			left = time.Until(deadline)
			return nil, nil
		}
		if got := g.pass(t); !strings.HasPrefix(got, "True BundleWritten: ") {
			t.Errorf("%s late: %s", late, got)
		}
		if left > want || left < want-5*time.Second {
			t.Errorf("%s late: %s are left, want %s", late, left, want)
		}
	}
}

// A process that ends reports nothing, so that the next one collects the bundle.
func TestAnEndingProcessReportsNothing(t *testing.T) {
	g := newRig(t)
	g.clock.SetTime(noon.Add(5 * time.Minute))
	ctx, cancel := context.WithCancel(t.Context())
	g.collect = cancel
	if _, err := g.r.Reconcile(ctx, ctrl.Request{NamespacedName: key}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	g.collect = nil
	expect(t, g.pass(t), written)
}

// The cluster is deleted while its bundle is collected: the pool has the event.
func TestABundleOutlivesItsCluster(t *testing.T) {
	g := newRig(t)
	g.clock.SetTime(noon.Add(5 * time.Minute))
	g.collect = func() {
		if err := g.Delete(t.Context(), g.cluster(t)); err != nil {
			t.Error(err)
		}
	}
	if _, err := g.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
		t.Fatal(err)
	}
	if len(g.stored) != 1 || len(g.events.Events) != 2 {
		t.Errorf("stored %v, %d events", g.stored, len(g.events.Events))
	}
}
