package powerschedule_test

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
	"hotspare.io/hotspare/internal/controller/powerschedule"
)

// evening is the slot that most tests are about; everything was created days before.
var (
	evening = time.Date(2026, 11, 20, 19, 0, 0, 0, time.UTC)
	before  = metav1.NewTime(evening.AddDate(0, 0, -3))
)

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(s), hivev1.AddToScheme(s), v1alpha1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	return s
}

// nights is a schedule in namespace team: from 19:00 to 08:00 all clusters sleep. The
// last slot was taken.
func nights(changes ...func(*v1alpha1.PowerSchedule)) *v1alpha1.PowerSchedule {
	morning := evening.Add(-11 * time.Hour)
	done := metav1.NewTime(morning.Add(time.Minute))
	ps := &v1alpha1.PowerSchedule{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "nights", UID: "schedule", CreationTimestamp: before, Generation: 1},
		Spec: v1alpha1.PowerScheduleSpec{
			ClusterSelector: &metav1.LabelSelector{},
			Windows:         []v1alpha1.Window{{Hibernate: "0 19 * * *", Resume: "0 8 * * *", TimeZone: "UTC"}},
		},
		Status: v1alpha1.PowerScheduleStatus{LastSlot: &v1alpha1.TakenSlot{
			Slot:    v1alpha1.Slot{Time: metav1.NewTime(morning), PowerState: hivev1.PowerRunning},
			Outcome: v1alpha1.OutcomeTaken, StartedAt: metav1.NewTime(morning), FinishedAt: &done,
		}},
	}
	for _, c := range changes {
		c(ps)
	}
	return ps
}

type edit func(*hivev1.ClusterDeployment)

func cluster(namespace, name string, edits ...edit) *hivev1.ClusterDeployment {
	cd := &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name), CreationTimestamp: before,
	}}
	for _, e := range edits {
		e(cd)
	}
	return cd
}

func wants(p hivev1.PowerState) edit {
	return func(cd *hivev1.ClusterDeployment) { cd.Spec.PowerState = p }
}

func pooled(pools, claim string) edit {
	return func(cd *hivev1.ClusterDeployment) {
		cd.Spec.ClusterPoolRef = &hivev1.ClusterPoolReference{Namespace: pools, PoolName: "p", ClaimName: claim}
		if claim != "" {
			cd.Spec.ClusterPoolRef.ClaimedTimestamp = &before
		}
	}
}

func labelled(key, value string) edit {
	return func(cd *hivev1.ClusterDeployment) { cd.Labels = map[string]string{key: value} }
}

func annotated(key, value string) edit {
	return func(cd *hivev1.ClusterDeployment) { cd.Annotations = map[string]string{key: value} }
}

func claim(namespace, name, cluster string, labels map[string]string) *hivev1.ClusterClaim {
	return &hivev1.ClusterClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec:       hivev1.ClusterClaimSpec{ClusterPoolName: "p", Namespace: cluster},
	}
}

// hub is an API with the controller on it, and a clock that tests turn.
type hub struct {
	client.Client
	*testing.T
	clock  *clocktesting.FakePassiveClock
	events *events.FakeRecorder
	r      *powerschedule.Reconciler
	writes int
	// refuse is what a write of an object is answered; nil lets it through.
	refuse func(client.Object) error
}

func newHub(t *testing.T, objects ...client.Object) *hub {
	t.Helper()
	h := &hub{T: t, clock: clocktesting.NewFakePassiveClock(evening), events: events.NewFakeRecorder(1000), refuse: func(client.Object) error { return nil }}
	b := fake.NewClientBuilder().WithScheme(newScheme(t)).WithStatusSubresource(&v1alpha1.PowerSchedule{}, &hivev1.ClusterDeployment{}).
		WithReturnManagedFields().WithObjects(objects...)
	h.Client = interceptor.NewClient(b.Build(), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := h.refuse(o); err != nil {
				return err
			}
			h.writes++
			return c.Patch(ctx, o, p, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			h.writes++
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
	h.r = &powerschedule.Reconciler{Client: h, Live: h, Clock: h.clock, Events: h.events}
	return h
}

// pass lets the controller look once.
func (h *hub) pass() ctrl.Result {
	h.Helper()
	res, err := h.r.Reconcile(h.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "team", Name: "nights"}})
	if err != nil {
		h.Fatal(err)
	}
	return res
}

// run turns the clock and lets the controller look whenever it wants to.
func (h *hub) run(until time.Time) {
	h.Helper()
	for range 10000 {
		next := h.pass().RequeueAfter
		if next <= 0 {
			return
		}
		now := h.clock.Now().Add(next)
		if now.After(until) {
			h.clock.SetTime(until)
			return
		}
		h.clock.SetTime(now)
	}
	h.Fatal("it looks without end")
}

func (h *hub) schedule() *v1alpha1.PowerSchedule {
	h.Helper()
	var ps v1alpha1.PowerSchedule
	if err := h.Get(h.Context(), types.NamespacedName{Namespace: "team", Name: "nights"}, &ps); err != nil {
		h.Fatal(err)
	}
	return &ps
}

// edit changes the schedule as a user would.
func (h *hub) edit(change func(*v1alpha1.PowerSchedule)) {
	h.Helper()
	ps := h.schedule()
	change(ps)
	ps.Generation++
	if err := h.Update(h.Context(), ps); err != nil {
		h.Fatal(err)
	}
}

// power sets a cluster's power as a user would.
func (h *hub) power(namespace, name string, p hivev1.PowerState) {
	h.Helper()
	var cd hivev1.ClusterDeployment
	if err := h.Get(h.Context(), types.NamespacedName{Namespace: namespace, Name: name}, &cd); err != nil {
		h.Fatal(err)
	}
	cd.Spec.PowerState = p
	if err := h.Update(h.Context(), &cd); err != nil {
		h.Fatal(err)
	}
}

// hibernating are the clusters that are asked to, sorted.
func (h *hub) hibernating() string {
	h.Helper()
	var list hivev1.ClusterDeploymentList
	if err := h.List(h.Context(), &list); err != nil {
		h.Fatal(err)
	}
	var out []string
	for _, cd := range list.Items {
		if cd.Spec.PowerState == hivev1.PowerHibernating {
			out = append(out, cd.Namespace+"/"+cd.Name)
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// last is what the status says of the last slot.
func (h *hub) last() string {
	h.Helper()
	l := h.schedule().Status.LastSlot
	if l == nil {
		return "none"
	}
	return fmt.Sprintf("%s %s %s, %d told", l.Time.UTC().Format("2 15:04"), l.PowerState, l.Outcome, l.Clusters)
}

// told returns the events recorded so far, each once.
func (h *hub) told() []string {
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
