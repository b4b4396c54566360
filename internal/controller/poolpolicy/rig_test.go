package poolpolicy_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	"hotspare.io/hotspare/internal/controller/poolpolicy"
	"hotspare.io/hotspare/internal/sizing/record"
)

// monday is a Monday at eight in the morning in UTC.
var monday = time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)

// hubNamespace is the namespace of hotspare.
const hubNamespace = "hotspare-system"

// key is the pool, and its policy.
var key = types.NamespacedName{Namespace: "team", Name: "dev"}

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(s), hivev1.AddToScheme(s), v1alpha1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	return s
}

func newPool(running, size int32) *hivev1.ClusterPool {
	return &hivev1.ClusterPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "pool"},
		Spec:       hivev1.ClusterPoolSpec{RunningCount: running, Size: size},
	}
}

func newPolicy(changes ...func(*v1alpha1.PoolPolicySpec)) *v1alpha1.PoolPolicy {
	most := int32(20)
	p := &v1alpha1.PoolPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "policy", Generation: 1},
		Spec:       v1alpha1.PoolPolicySpec{Mode: v1alpha1.PolicyAuto, Size: &v1alpha1.CountLimits{Max: &most}, TimeZone: "Europe/Berlin"},
	}
	for _, c := range changes {
		c(&p.Spec)
	}
	return p
}

func recommend(s *v1alpha1.PoolPolicySpec) { s.Mode = v1alpha1.PolicyRecommend }

// newCluster is an unclaimed cluster that took 40 minutes to install and five to resume.
func newCluster(name string) *hivev1.ClusterDeployment {
	made := metav1.NewTime(monday.AddDate(0, 0, -20))
	installed, started, finished := metav1.NewTime(made.Add(40*time.Minute)), metav1.NewTime(made.Add(time.Hour)), metav1.NewTime(made.Add(65*time.Minute))
	return &hivev1.ClusterDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name, UID: types.UID(name), CreationTimestamp: made},
		Spec:       hivev1.ClusterDeploymentSpec{Installed: true, ClusterPoolRef: &hivev1.ClusterPoolReference{Namespace: key.Namespace, PoolName: key.Name}},
		Status: hivev1.ClusterDeploymentStatus{
			InstalledTimestamp: &installed, PowerState: hivev1.StatusRunning,
			PowerTransition: &hivev1.PowerTransition{Target: hivev1.PowerRunning, StartedAt: started, FinishedAt: &finished},
		},
	}
}

// hub is an API with the controller on it, and a clock that tests turn.
type hub struct {
	client.WithWatch
	*testing.T
	clock  *clocktesting.FakePassiveClock
	events *events.FakeRecorder
	r      *poolpolicy.Reconciler
	// writes counts those of the controller, by kind.
	writes map[string]int
	// refuse is what a write of an object is answered; nil lets it through.
	refuse func(client.Object) error
	made   int
	// managed are the managed fields of the pool: the fake API keeps none.
	managed []metav1.ManagedFieldsEntry
}

func newHub(t *testing.T, objects ...client.Object) *hub {
	t.Helper()
	h := &hub{T: t, clock: clocktesting.NewFakePassiveClock(monday), events: events.NewFakeRecorder(10000), writes: map[string]int{}, refuse: func(client.Object) error { return nil }}
	h.WithWatch = fake.NewClientBuilder().WithScheme(newScheme(t)).WithStatusSubresource(&v1alpha1.PoolPolicy{}, &hivev1.ClusterDeployment{}, &hivev1.ClusterClaim{}).
		WithObjects(objects...).Build()
	h.restart()
	return h
}

// restart runs the controller in a new process.
func (h *hub) restart() {
	count := func(o client.Object, write func() error) error {
		if err := h.refuse(o); err != nil {
			return err
		}
		err := write()
		if err == nil {
			h.writes[fmt.Sprintf("%T", o)]++
		}
		return err
	}
	c := interceptor.NewClient(h.WithWatch, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return count(o, func() error { return c.Create(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return count(o, func() error { return c.Patch(ctx, o, p, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return count(o, func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
	})
	live := interceptor.NewClient(h.WithWatch, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, k, o, opts...)
			if p, is := o.(*hivev1.ClusterPool); is {
				p.ManagedFields = h.managed
			}
			return err
		},
	})
	h.r = &poolpolicy.Reconciler{Client: c, Live: live, Clock: h.clock, Events: h.events, Namespace: hubNamespace}
}

// pass lets the controller look once.
func (h *hub) pass() ctrl.Result {
	h.Helper()
	res, err := h.r.Reconcile(h.Context(), ctrl.Request{NamespacedName: key})
	if err != nil {
		h.Fatal(err)
	}
	return res
}

// run turns the clock and lets the controller look whenever it wants to.
func (h *hub) run(span time.Duration) {
	h.Helper()
	for end := h.clock.Now().Add(span); ; {
		next := h.pass().RequeueAfter
		if now := h.clock.Now().Add(next); next > 0 && !now.After(end) {
			h.clock.SetTime(now)
			continue
		}
		h.clock.SetTime(end)
		return
	}
}

// work lets days pass. In each working hour a claim arrives, is served at once, and is deleted soon
// after. The controller looks once an hour.
func (h *hub) work(days int) {
	h.Helper()
	for end := h.clock.Now().AddDate(0, 0, days); h.clock.Now().Before(end); h.clock.SetTime(h.clock.Now().Truncate(time.Hour).Add(time.Hour)) {
		if now := h.clock.Now(); now.Hour() >= 8 && now.Hour() < 17 && now.Weekday()%6 != 0 {
			c := h.claim(true)
			h.pass()
			cd := newCluster(c.Spec.Namespace)
			if err := errors.Join(h.Delete(h.Context(), c), h.Delete(h.Context(), cd)); err != nil {
				h.Fatal(err)
			}
			continue
		}
		h.pass()
	}
}

// claim creates a claim. It has a running cluster at once, or waits.
func (h *hub) claim(served bool) *hivev1.ClusterClaim {
	h.Helper()
	h.made++
	name := fmt.Sprint("claim-", h.made)
	now := metav1.NewTime(h.clock.Now())
	c := &hivev1.ClusterClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: name, UID: types.UID(name), CreationTimestamp: now},
		Spec:       hivev1.ClusterClaimSpec{ClusterPoolName: key.Name},
	}
	if served {
		c.Spec.Namespace = "of-" + name
		c.Status.Conditions = []hivev1.Condition{{Type: hivev1.ClaimClusterRunning, Status: corev1.ConditionTrue, LastTransitionTime: now}}
		cd := newCluster("of-" + name)
		cd.Spec.ClusterPoolRef.ClaimName, cd.Spec.ClusterPoolRef.ClaimedTimestamp = name, &now
		h.create(cd)
	}
	h.create(c)
	return c
}

// create creates an object with its status, as the fake API does at once only without the subresource.
func (h *hub) create(o client.Object) {
	h.Helper()
	want := o.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy of an object
	if err := h.Create(h.Context(), o); err != nil {
		h.Fatal(err)
	}
	want.SetResourceVersion(o.GetResourceVersion())
	if err := h.Status().Update(h.Context(), want); err != nil && !apierrors.IsNotFound(err) {
		h.Fatal(err)
	}
}

func (h *hub) policy() *v1alpha1.PoolPolicy {
	h.Helper()
	var p v1alpha1.PoolPolicy
	if err := h.Get(h.Context(), key, &p); err != nil {
		h.Fatal(err)
	}
	return &p
}

func (h *hub) edit(change func(*v1alpha1.PoolPolicy)) {
	h.Helper()
	p := h.policy()
	change(p)
	p.Generation++
	if err := h.Update(h.Context(), p); err != nil {
		h.Fatal(err)
	}
}

func (h *hub) counts() string {
	h.Helper()
	var p hivev1.ClusterPool
	if err := h.Get(h.Context(), key, &p); err != nil {
		h.Fatal(err)
	}
	return fmt.Sprintf("%d of %d", p.Spec.RunningCount, p.Spec.Size)
}

// scale changes the counts as a user would.
func (h *hub) scale(running, size int32) {
	h.Helper()
	var p hivev1.ClusterPool
	if err := h.Get(h.Context(), key, &p); err != nil {
		h.Fatal(err)
	}
	p.Spec.RunningCount, p.Spec.Size = running, size
	at := metav1.NewTime(h.clock.Now())
	h.managed = []metav1.ManagedFieldsEntry{
		{Manager: poolpolicy.FieldManager, Time: &at, FieldsV1: newFields(`{"f:spec":{"f:size":{}}}`)},
		{Manager: "kubectl-edit", Time: &at, FieldsV1: newFields(`{"f:spec":{"f:size":{},"f:runningCount":{}}}`)},
	}
	if err := h.Update(h.Context(), &p); err != nil {
		h.Fatal(err)
	}
}

func (h *hub) record() *corev1.ConfigMap {
	h.Helper()
	var cm corev1.ConfigMap
	err := h.Get(h.Context(), types.NamespacedName{Namespace: key.Namespace, Name: record.ConfigMapName(key.Name)}, &cm)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		h.Fatal(err)
	}
	return &cm
}

// says returns the status and the reason of a condition.
func (h *hub) says(typ string) string {
	h.Helper()
	c := meta.FindStatusCondition(h.policy().Status.Conditions, typ)
	if c == nil {
		return "nothing"
	}
	return string(c.Status) + " " + c.Reason
}

func (h *hub) message(typ string) string {
	h.Helper()
	c := meta.FindStatusCondition(h.policy().Status.Conditions, typ)
	if c == nil {
		return ""
	}
	return c.Message
}

// takeEvents returns the events recorded so far, each once.
func (h *hub) takeEvents() []string {
	var out []string
	for len(h.events.Events) > 0 {
		out = append(out, <-h.events.Events)
	}
	return out
}

func want[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func newFields(raw string) *metav1.FieldsV1 {
	f := &metav1.FieldsV1{}
	f.SetRawString(raw)
	return f
}
