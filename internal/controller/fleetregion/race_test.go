package fleetregion

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/crashtest/chaos"
)

// rig is a store, one process with a cache that shows what the test selects, and the recorded
// events.
type rig struct {
	*testing.T
	store *chaos.Store
	view  *chaos.View
	now   *clocktesting.FakeClock
	told  *events.FakeRecorder
	*Reconciler
	serial int
}

func newRig(t *testing.T, objects ...client.Object) *rig {
	t.Helper()
	scheme, err := newScheme()
	var ix chaos.Indexes
	if err := errors.Join(err, AddIndexes(t.Context(), &ix)); err != nil {
		t.Fatal(err)
	}
	now := clocktesting.NewFakeClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	g := &rig{T: t, store: chaos.New(scheme, now, kinds...), now: now, told: events.NewFakeRecorder(1000)}
	g.view = g.store.NewView(&ix)
	if err := begin(objects...)(t.Context(), g.store.NewClient()); err != nil {
		t.Fatal(err)
	}
	g.Reconciler = g.process()
	return g
}

// process returns a new process with the same cache.
func (g *rig) process() *Reconciler {
	return &Reconciler{
		Client: g.view.NewClient(), Live: g.store.NewClient(), Clock: g.now, Events: g.told,
		Suffix: func() string { g.serial++; return fmt.Sprintf("%05d", g.serial) },
	}
}

func (g *rig) do(acts ...act) {
	g.Helper()
	for _, a := range acts {
		if err := a(g.Context(), g.store.NewClient()); err != nil {
			g.Fatal(err)
		}
	}
}

// pass runs a pass for use1, whatever the cache shows.
func (g *rig) pass() ctrl.Result {
	g.Helper()
	res, err := g.Reconcile(g.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "fleet", Name: "use1"}})
	if err != nil {
		g.Fatal(err)
	}
	return res
}

// settle runs every component, with a fresh cache, until nothing changes.
func (g *rig) settle() {
	g.Helper()
	for range 50 {
		before := g.store.CountWrites()
		if _, err := world(g.Context(), g.store.NewClient()); err != nil {
			g.Fatal(err)
		}
		g.view.ShowAllWrites()
		g.pass()
		if g.store.CountWrites() == before {
			return
		}
	}
	g.Fatal("it does not settle")
}

func (g *rig) planes() []*v1alpha1.DataPlane {
	var out []*v1alpha1.DataPlane
	for _, o := range g.store.ListSharedObjects(&v1alpha1.DataPlane{}) {
		out = append(out, o.(*v1alpha1.DataPlane))
	}
	return out
}

func (g *rig) region() *v1alpha1.FleetRegion {
	return g.store.GetSharedObject(&v1alpha1.FleetRegion{}, client.ObjectKey{Namespace: "fleet", Name: "use1"}).(*v1alpha1.FleetRegion)
}

func (g *rig) instance(name string) *v1alpha1.ServiceInstance {
	return g.store.GetSharedObject(&v1alpha1.ServiceInstance{}, client.ObjectKey{Namespace: "team", Name: name}).(*v1alpha1.ServiceInstance)
}

// status changes the status of an object without the process's knowledge.
func status[T client.Object](o T, change func(T)) act {
	return func(ctx context.Context, api client.Client) error {
		before := o.DeepCopyObject().(client.Object)
		after := o.DeepCopyObject().(T)
		change(after)
		return api.Status().Patch(ctx, after, client.MergeFrom(before))
	}
}

func held(i *v1alpha1.ServiceInstance) *v1alpha1.ServiceInstance {
	i.Finalizers = []string{v1alpha1.FinalizerServiceInstance}
	return i
}

// The removal of the data plane has begun, and the cache does not show it.
func TestNothingIsPlacedOnADataPlaneThatIsGoing(t *testing.T) {
	g := newRig(t, newRegion("use1"))
	g.settle()
	g.do(create(held(newInstance("k", "x1"))))
	g.view.ShowAllWrites()
	g.do(status(g.planes()[0], func(dp *v1alpha1.DataPlane) { dp.Status.Phase = v1alpha1.PhaseDeprovisioning }))
	if res := g.pass(); res.RequeueAfter == 0 {
		t.Error("it is not tried again")
	}
	if st := g.instance("k").Status; st.DataPlaneName != "" || len(g.planes()[0].Status.Bookings) > 0 {
		t.Errorf("it was placed: %+v", st)
	}
}

// A place is written to an instance only after it was booked.
func TestAPlaceIsBookedFirst(t *testing.T) {
	g := newRig(t, newRegion("use1"))
	g.settle()
	g.store.Wrote = func(_ context.Context, w chaos.Write) {
		i, ok := w.After.(*v1alpha1.ServiceInstance)
		if !ok || i.Status.DataPlaneName == "" {
			return
		}
		for _, dp := range g.planes() {
			if dp.Name == i.Status.DataPlaneName && !slices.ContainsFunc(dp.Status.Bookings, func(b v1alpha1.Booking) bool { return b.UID == string(i.UID) }) {
				t.Errorf("%s is on %s, and nothing is booked", i.Name, dp.Name)
			}
		}
	}
	g.do(create(held(newInstance("k", "x1"))))
	g.settle()
	if g.instance("k").Status.DataPlaneName == "" {
		t.Error("it was not placed")
	}
}

// An instance is on the data plane that is about to be released, and the cache does not show it.
func TestADataPlaneIsReleasedOnlyWhenItIsEmptyPastTheCache(t *testing.T) {
	g := newRig(t, newRegion("use1"))
	g.settle()
	dp := g.planes()[0]
	spare := dp.DeepCopy()
	spare.Name, spare.UID, spare.ResourceVersion = "spare", "", ""
	g.do(create(spare), func(ctx context.Context, api client.Client) error {
		return status(g.store.GetSharedObject(&v1alpha1.DataPlane{}, client.ObjectKey{Namespace: "fleet", Name: "spare"}).(*v1alpha1.DataPlane),
			func(dp *v1alpha1.DataPlane) { dp.Status = spare.Status })(ctx, api)
	}, status(dp, func(dp *v1alpha1.DataPlane) {
		dp.Status.Phase, dp.Status.PhaseSince = v1alpha1.PhaseDeprovisioning, ptr.To(metav1.NewTime(g.now.Now()))
	}))
	g.view.ShowAllWrites()
	g.do(create(held(newInstance("k", "x1"))))
	g.do(status(g.instance("k"), func(i *v1alpha1.ServiceInstance) { i.Status.DataPlaneName = dp.Name }))
	g.pass()
	if st := g.planes()[slices.IndexFunc(g.planes(), func(p *v1alpha1.DataPlane) bool { return p.Name == dp.Name })].Status; st.ReleasedAt != nil {
		t.Errorf("it was released: %+v", st)
	}
	g.do(func(ctx context.Context, api client.Client) error {
		k := g.instance("k").DeepCopy()
		before := k.DeepCopy()
		k.Finalizers = nil
		return errors.Join(api.Patch(ctx, k, client.MergeFrom(before)), api.Delete(ctx, k))
	})
	g.settle()
	if len(g.planes()) != 1 {
		t.Errorf("nobody is on it, and there are %d", len(g.planes()))
	}
}

// The agent reports an unknown instance, and the DataPlane does not show it yet.
func TestADataPlaneIsReleasedOnlyWhenItsAgentSaysThatItIsEmpty(t *testing.T) {
	for name, tt := range map[string]struct {
		change  func(*v1alpha1.DataPlaneAgent)
		discard bool
		want    bool
	}{
		"it is empty": {func(*v1alpha1.DataPlaneAgent) {}, false, true},
		"an instance is there that nobody knows": {func(a *v1alpha1.DataPlaneAgent) {
			a.Status.Report.Instances = []v1alpha1.InstanceReport{{UID: "x", Name: "kafka", Phase: v1alpha1.AgentUnlisted}}
		}, false, false},
		"units are used that nobody knows of": {func(a *v1alpha1.DataPlaneAgent) {
			a.Status.Report.Capacity["standard"] = v1alpha1.ReportedCapacity{MaxNodes: 18, MaxUnits: 6, RemainingUnits: 4}
		}, false, false},
		"it has not answered since": {func(a *v1alpha1.DataPlaneAgent) { a.Spec.InquiryAt = nil }, false, false},
		"a person has given up what is there": {func(a *v1alpha1.DataPlaneAgent) {
			a.Status.Report.Instances = []v1alpha1.InstanceReport{{UID: "x", Name: "kafka", Phase: v1alpha1.AgentUnlisted}}
		}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, newRegion("use1"))
			g.settle()
			keep, dp := g.planes()[0], g.planes()[0].DeepCopy()
			dp.Name, dp.UID, dp.ResourceVersion, dp.Spec.DiscardUnlisted = "going", "", "", tt.discard
			g.do(create(dp))
			going := func() *v1alpha1.DataPlane {
				return g.store.GetSharedObject(&v1alpha1.DataPlane{}, client.ObjectKey{Namespace: "fleet", Name: "going"}).(*v1alpha1.DataPlane)
			}
			g.do(func(ctx context.Context, api client.Client) error {
				return status(going(), func(dp *v1alpha1.DataPlane) {
					dp.Status = keep.Status
					dp.Status.Phase, dp.Status.PhaseSince = v1alpha1.PhaseDeprovisioning, ptr.To(metav1.NewTime(g.now.Now()))
					dp.Status.Agent = &v1alpha1.AgentStatus{LastHeartbeat: keep.Status.Agent.LastHeartbeat, AnsweredAt: dp.Status.PhaseSince}
				})(ctx, api)
			})
			a := newAgent(going())
			tt.change(a)
			g.do(create(a), func(ctx context.Context, api client.Client) error {
				there := g.store.GetSharedObject(a, client.ObjectKeyFromObject(a)).(*v1alpha1.DataPlaneAgent)
				return status(there, func(b *v1alpha1.DataPlaneAgent) { b.Status = a.Status })(ctx, api)
			})
			g.view.ShowAllWrites()
			_, err := g.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "fleet", Name: "use1"}})
			if released := going().Status.ReleasedAt != nil; released != tt.want || err != nil {
				t.Errorf("released: %t, %v", released, err)
			}
		})
	}
}

// The data plane that a stale version of the region lists as pending was created, and is deleted
// again.
func TestADataPlaneIsNotMadeFromAStaleRegion(t *testing.T) {
	g := newRig(t, newRegion("use1", func(r *v1alpha1.FleetRegion) { r.Spec.ScaleUp.Mode = v1alpha1.ScalingOff }))
	g.settle()
	record := func(name string) {
		g.do(status(g.region(), func(r *v1alpha1.FleetRegion) {
			r.Status.Pending = []v1alpha1.PendingDataPlane{{Name: name, InstanceType: "standard"}}
		}))
		g.view.ShowNextWrites(&v1alpha1.FleetRegion{}, 1)
		g.Reconciler = g.process()
	}
	record("lost")
	g.pass()
	g.view.ShowNextWrites(&v1alpha1.FleetRegion{}, 1) // and not the data plane
	g.do(status(g.region(), func(r *v1alpha1.FleetRegion) { r.Status.Pending = nil }), func(ctx context.Context, api client.Client) error {
		dp := g.planes()[0].DeepCopy()
		before := dp.DeepCopy()
		dp.Finalizers = nil
		return errors.Join(api.Patch(ctx, dp, client.MergeFrom(before)), api.Delete(ctx, dp))
	})
	g.Reconciler = g.process()
	g.pass()
	if n := len(g.planes()); n > 0 {
		t.Errorf("it was made again: %d", n)
	}
	g.view.ShowAllWrites()
	record("due")
	g.pass()
	if n := len(g.planes()); n != 1 {
		t.Errorf("what was recorded before a crash was not made: %d", n)
	}
}

// Data planes that never become Ready fail, with growing pauses, and are forgotten once one has
// become Ready.
func TestFailuresBackOff(t *testing.T) {
	g := newRig(t, newRegion("use1", func(r *v1alpha1.FleetRegion) {
		r.Spec.ScaleUp.ProvisionTimeout, r.Spec.ScaleUp.Backoff = "1h", "10m"
	}))
	stuck := func() { g.view.ShowAllWrites(); g.pass(); g.view.ShowAllWrites(); g.pass() }
	var failed []int
	for range 10 {
		stuck()
		failed = append(failed, len(g.planes()))
		g.now.Step(30 * time.Minute)
	}
	// Created at 0:00, failed at 1:00, created at 1:30 (10 minutes are over), failed at 2:30, …
	if want := []int{1, 1, 1, 2, 2, 2, 3, 3, 3, 3}; !slices.Equal(failed, want) {
		t.Errorf("data planes every half hour: %v, want %v", failed, want)
	}
	g.now.Step(3 * time.Hour)
	g.settle()
	g.now.Step(3 * time.Hour)
	g.settle()
	if all := g.planes(); len(all) != 1 || all[0].Status.Phase != v1alpha1.PhaseReady {
		t.Errorf("%d data planes, the first %+v", len(all), all[0].Status)
	}
	if text := g.events(); !strings.Contains(text, "DataPlaneFailed data plane use1-00001: the data plane was not Ready within 1h0m0s") {
		t.Errorf("told: %s", text)
	}
}

func (g *rig) events() string {
	var out []string
	for len(g.told.Events) > 0 {
		out = append(out, <-g.told.Events)
	}
	return strings.Join(out, "\n")
}

// An invalid region reports its problem.
func TestARegionSaysWhatIsWrong(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*v1alpha1.FleetRegion)
		kind   string
		reason string
		says   string
	}{
		"an unknown type": {
			func(r *v1alpha1.FleetRegion) { r.Spec.InstanceTypes[0].Name = "premium" }, v1alpha1.RegionValid, "UnknownType", `InstanceType "premium" does not exist`,
		},
		"an unknown size": {
			func(r *v1alpha1.FleetRegion) {
				r.Spec.InstanceTypes[0].Reserved = &v1alpha1.Reserved{Count: 1, Size: "x9"}
			}, v1alpha1.RegionValid, "UnknownSize", "reserved.size of type standard is x9, which is not one of its sizes, x1, x2",
		},
		"a pool that is not there": {
			func(r *v1alpha1.FleetRegion) { r.Spec.ClusterSource.Claim.Pools[0].PoolRef.Name = "none" }, v1alpha1.RegionPoolSuitable, "PoolNotFound", "ClusterPool none does not exist",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, newRegion("use1", tt.change))
			g.settle()
			c := condition(g.region().Status.Conditions, tt.kind)
			if c.Status != metav1.ConditionFalse || c.Reason != tt.reason || !strings.Contains(c.Message, tt.says) {
				t.Errorf("got %+v", c)
			}
			if made := len(g.planes()) > 0; made != (tt.reason == v1alpha1.ReasonUnknownSize) { // which affects only reserved instances
				t.Errorf("a data plane was made: %t", made)
			}
		})
	}
}

// The data plane is created as recorded, with the zones of its type.
func TestADataPlaneIsMadeAsItWasRecorded(t *testing.T) {
	for _, multiZone := range []bool{false, true} {
		g := newRig(t, newRegion("use1"))
		g.do(func(ctx context.Context, api client.Client) error {
			it := g.store.GetSharedObject(&v1alpha1.InstanceType{}, client.ObjectKey{Name: "standard"}).(*v1alpha1.InstanceType).DeepCopy()
			before := it.DeepCopy()
			it.Spec.MultiZone = multiZone
			region := g.region().DeepCopy()
			was := region.DeepCopy()
			region.Spec.ClusterSource.Claim.Pools[0].MultiZone = multiZone
			return errors.Join(api.Patch(ctx, it, client.MergeFrom(before)), api.Patch(ctx, region, client.MergeFrom(was)))
		})
		made := 0
		g.store.Wrote = func(_ context.Context, w chaos.Write) {
			dp, ok := w.After.(*v1alpha1.DataPlane)
			if !ok || w.Before != nil {
				return
			}
			made++
			if !slices.ContainsFunc(g.region().Status.Pending, func(p v1alpha1.PendingDataPlane) bool { return p.Name == dp.Name }) || dp.Spec.MultiZone != multiZone {
				t.Errorf("made %s, multiZone %t, of %+v", dp.Name, dp.Spec.MultiZone, g.region().Status.Pending)
			}
		}
		g.settle()
		if made != 1 {
			t.Errorf("%d data planes were made", made)
		}
	}
}

// DryRun reports, and creates nothing.
func TestADryRunMakesNothing(t *testing.T) {
	g := newRig(t, newRegion("use1", func(r *v1alpha1.FleetRegion) { r.Spec.ScaleUp.Mode = v1alpha1.ScalingDryRun }))
	g.settle()
	st := g.region().Status
	if len(g.planes()) > 0 || len(st.Pending) > 0 || st.InstanceTypes[0].Decision.Action != "Create" {
		t.Errorf("%d data planes, %+v", len(g.planes()), st)
	}
}

// A change of informative fields does not trigger a pass of the region.
func TestAHeartbeatWakesNoRegion(t *testing.T) {
	dp := &v1alpha1.DataPlane{Status: v1alpha1.DataPlaneStatus{
		Phase: v1alpha1.PhaseReady, Capacity: map[string]v1alpha1.TypeCapacity{"standard": {MaxNodes: 18, MaxUnits: 6, RemainingUnits: 6}},
	}}
	for name, tt := range map[string]struct {
		change func(*v1alpha1.DataPlane)
		wakes  bool
	}{
		"a heartbeat": {func(d *v1alpha1.DataPlane) {
			now := metav1.NewTime(time.Unix(1, 0))
			d.Status.Agent = &v1alpha1.AgentStatus{LastHeartbeat: &now}
			d.Status.Capacity["standard"] = v1alpha1.TypeCapacity{MaxNodes: 18, MaxUnits: 6, RemainingUnits: 6, ReportedAt: &now}
		}, false},
		"other units": {func(d *v1alpha1.DataPlane) {
			d.Status.Capacity["standard"] = v1alpha1.TypeCapacity{MaxNodes: 18, MaxUnits: 5}
		}, true},
		"silence": {func(d *v1alpha1.DataPlane) {
			d.Status.Conditions = []metav1.Condition{{Type: v1alpha1.DataPlaneAgentLive, Status: metav1.ConditionFalse}}
		}, true},
		"used units": {func(d *v1alpha1.DataPlane) {
			d.Status.Capacity["standard"] = v1alpha1.TypeCapacity{MaxNodes: 18, MaxUnits: 6, RemainingUnits: 5, UsedUnits: 1}
		}, true},
		"fewer remaining units": {func(d *v1alpha1.DataPlane) {
			d.Status.Capacity["standard"] = v1alpha1.TypeCapacity{MaxNodes: 18, MaxUnits: 6, RemainingUnits: 5}
		}, true},
		"an answer": {func(d *v1alpha1.DataPlane) { d.Status.Agent = &v1alpha1.AgentStatus{AnsweredAt: ptr.To(metav1.Now())} }, true},
		"an instance that nobody knows": {func(d *v1alpha1.DataPlane) {
			d.Status.Unlisted = []v1alpha1.UnlistedInstance{{UID: "x"}}
		}, true},
		"a booking":     {func(d *v1alpha1.DataPlane) { d.Status.Bookings = []v1alpha1.Booking{{Name: "k"}} }, true},
		"a phase":       {func(d *v1alpha1.DataPlane) { d.Status.Phase = v1alpha1.PhaseFailed }, true},
		"a deletion":    {func(d *v1alpha1.DataPlane) { d.DeletionTimestamp = ptr.To(metav1.Now()) }, true},
		"a new version": {func(d *v1alpha1.DataPlane) { d.Status.Versions = []v1alpha1.OperatorVersion{{Strimzi: "v1"}} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			after := dp.DeepCopy()
			tt.change(after)
			if got := planeChanged().Update(updated(dp, after)); got != tt.wakes {
				t.Errorf("it wakes the region: %t", got)
			}
		})
	}
}

func updated(before, after client.Object) event.UpdateEvent {
	return event.UpdateEvent{ObjectOld: before, ObjectNew: after}
}
