package serviceinstance

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// named returns an instance with that name and UID on a data plane.
func named(name, plane string) *v1alpha1.ServiceInstance {
	return newInstance(on(plane, v1alpha1.InstanceReady), func(i *v1alpha1.ServiceInstance) { i.Name, i.UID = name, types.UID(name) })
}

// woken runs a handler, and returns the instances that it enqueues.
func woken(t *testing.T, do func(q queue)) string {
	t.Helper()
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	do(q)
	var out []string
	for q.Len() > 0 {
		one, _ := q.Get()
		out = append(out, one.Name)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func TestAReportWakesThoseOfWhomItSaysSomethingNew(t *testing.T) {
	r := newRig(t, named("a", "p"), named("b", "p"), named("c", "p"))
	of := func(uid string, phase v1alpha1.AgentPhase) v1alpha1.InstanceReport {
		return v1alpha1.InstanceReport{UID: uid, PlacementID: uid + "-1", Phase: phase}
	}
	const up, coming = v1alpha1.AgentReady, v1alpha1.AgentProvisioning
	before := newAgent("fleet", "p", of("a", up), of("b", up), of("c", coming))
	edit := func(change func(*v1alpha1.DataPlaneAgent)) *v1alpha1.DataPlaneAgent {
		after := before.DeepCopy()
		change(after)
		return after
	}
	for name, tc := range map[string]struct {
		before, after *v1alpha1.DataPlaneAgent
		want          string
	}{
		"a heartbeat wakes nobody": {before, edit(func(a *v1alpha1.DataPlaneAgent) { a.Status.Report.At = metav1.NewTime(noon) }), ""},
		"another order, neither":   {before, edit(func(a *v1alpha1.DataPlaneAgent) { slices.Reverse(a.Status.Report.Instances) }), ""},
		"a phase":                  {before, edit(func(a *v1alpha1.DataPlaneAgent) { a.Status.Report.Instances[2].Phase = up }), "c"},
		"a message":                {before, edit(func(a *v1alpha1.DataPlaneAgent) { a.Status.Report.Instances[0].Message = "x" }), "a"},
		"a version":                {before, edit(func(a *v1alpha1.DataPlaneAgent) { a.Status.Report.Instances[0].Versions.Kafka = "4" }), "a"},
		"a route": {before, edit(func(a *v1alpha1.DataPlaneAgent) {
			a.Status.Report.Instances[0].Routes = make([]v1alpha1.InstanceRoute, 1)
		}), "a"},
		"a placement": {before, edit(func(a *v1alpha1.DataPlaneAgent) { a.Status.Report.Instances[1].PlacementID = "b-2" }), "b"},
		"one that is not told of any more": {before, edit(func(a *v1alpha1.DataPlaneAgent) {
			a.Status.Report.Instances = a.Status.Report.Instances[:2]
		}), "c"},
		"a report of another data plane": {before, edit(func(a *v1alpha1.DataPlaneAgent) { a.Status.Report.DataPlaneUID = "x" }), "a b c"},
		"a data plane that does not answer": {before, edit(func(a *v1alpha1.DataPlaneAgent) {
			a.Status.Report.Ready, a.Status.Report.Reason = false, "DataPlaneSilent"
		}), "a b c"},
		"another reason not to make any":     {before, edit(func(a *v1alpha1.DataPlaneAgent) { a.Status.Report.Ready, a.Status.Report.Reason = false, "NoOperator" }), ""},
		"the first report":                   {edit(func(a *v1alpha1.DataPlaneAgent) { a.Status.Report = nil }), before, "a b c"},
		"an agent that can be read no more":  {before, edit(func(a *v1alpha1.DataPlaneAgent) { a.Unreadable = "x" }), "a b c"},
		"an agent that is there, or is gone": {nil, before, "a b c"},
		"one that is not listed any more": {
			edit(func(a *v1alpha1.DataPlaneAgent) { a.Spec.Instances = []v1alpha1.AgentInstance{{UID: "a"}, {UID: "b"}} }),
			edit(func(a *v1alpha1.DataPlaneAgent) {
				a.Generation, a.Spec.Instances = 1, []v1alpha1.AgentInstance{{UID: "a"}}
			}), "b",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := r.onReport()
			got := woken(t, func(q queue) {
				if tc.before == nil {
					h.Create(t.Context(), event.CreateEvent{Object: tc.after}, q)
					h.Delete(t.Context(), event.DeleteEvent{Object: tc.after}, q)
					return
				}
				h.Update(t.Context(), event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}, q)
			})
			if got != tc.want {
				t.Errorf("woke %q, want %q", got, tc.want)
			}
		})
	}
}

func TestWhatADataPlaneWakes(t *testing.T) {
	r := newRig(t, named("a", "p"), named("b", "q"))
	at := metav1.NewTime(noon)
	live := func(s metav1.ConditionStatus) []metav1.Condition {
		return []metav1.Condition{{Type: v1alpha1.DataPlaneAgentLive, Status: s}}
	}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.DataPlane)
		want   string
	}{
		"a heartbeat":     {func(dp *v1alpha1.DataPlane) { dp.Status.Agent = &v1alpha1.AgentStatus{LastHeartbeat: &at} }, ""},
		"it is empty":     {func(dp *v1alpha1.DataPlane) { dp.Status.EmptySince = &at }, ""},
		"its agent lives": {func(dp *v1alpha1.DataPlane) { dp.Status.Conditions = live(metav1.ConditionTrue) }, ""},
		"it is silent":    {func(dp *v1alpha1.DataPlane) { dp.Status.Conditions = live(metav1.ConditionFalse) }, "a"},
		"it is released":  {func(dp *v1alpha1.DataPlane) { dp.Status.ReleasedAt = &at }, "a"},
		"it is broken":    {func(dp *v1alpha1.DataPlane) { dp.Unreadable = "x" }, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			dp := newPlane("fleet", "p", tc.change)
			got := woken(t, func(q queue) {
				r.onPlane().Update(t.Context(), event.UpdateEvent{ObjectOld: newPlane("fleet", "p"), ObjectNew: dp}, q)
			})
			if got != tc.want {
				t.Errorf("woke %q, want %q", got, tc.want)
			}
		})
	}
}

// each runs a handler for the creation and for the deletion of an object.
func each(t *testing.T, h handler.EventHandler, o client.Object, want string) {
	t.Helper()
	if got := woken(t, func(q queue) { h.Create(t.Context(), event.CreateEvent{Object: o}, q) }); got != want {
		t.Errorf("%T woke %q, want %q", o, got, want)
	}
	if got := woken(t, func(q queue) { h.Delete(t.Context(), event.DeleteEvent{Object: o}, q) }); got != want {
		t.Errorf("%T that goes woke %q, want %q", o, got, want)
	}
}

func TestWhatComesAndGoesWakes(t *testing.T) {
	elsewhere := named("c", "p")
	elsewhere.Spec.Region = "eu-west-1"
	r := newRig(t, named("a", "p"), named("b", ""), elsewhere)
	each(t, r.onPlane(), newPlane("fleet", "p"), "a")
	each(t, r.onRegion(), newRegion("fleet", 0), "a b")
}

func TestItsOwnWritesDoNotWakeAnInstance(t *testing.T) {
	before := named("a", "p")
	for name, tc := range map[string]struct {
		change func(*v1alpha1.ServiceInstance)
		want   bool
	}{
		"its phase":      {func(i *v1alpha1.ServiceInstance) { i.Status.Phase = v1alpha1.InstanceFailed }, false},
		"its routes":     {func(i *v1alpha1.ServiceInstance) { i.Status.Routes = make([]v1alpha1.InstanceRoute, 1) }, false},
		"its data plane": {func(i *v1alpha1.ServiceInstance) { i.Status.DataPlaneName = "" }, true},
		"its placements": {func(i *v1alpha1.ServiceInstance) { i.Status.Placements++ }, true},
		"its spec":       {func(i *v1alpha1.ServiceInstance) { i.Generation++ }, true},
		"its end":        {func(i *v1alpha1.ServiceInstance) { i.DeletionTimestamp = ptr.To(metav1.NewTime(noon)) }, true},
		"its finalizer":  {func(i *v1alpha1.ServiceInstance) { i.Finalizers = nil }, true},
		"it is readable": {func(i *v1alpha1.ServiceInstance) { i.Unreadable = "x" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			after := before.DeepCopy()
			tc.change(after)
			if got := instanceChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != tc.want {
				t.Errorf("it says %t", got)
			}
		})
	}
}
