package fleetregion

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/crashtest"
	"hotspare.io/hotspare/internal/crashtest/chaos"
)

type act = func(context.Context, client.Client) error

var kinds = []client.Object{
	&corev1.Namespace{}, &hivev1.ClusterPool{}, &v1alpha1.InstanceType{}, &v1alpha1.FleetRegion{}, &v1alpha1.DataPlane{}, &v1alpha1.DataPlaneAgent{},
	&v1alpha1.ServiceInstance{},
}

func newScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	return s, errors.Join(corev1.AddToScheme(s), hivev1.AddToScheme(s), v1alpha1.AddToScheme(s))
}

// stage is a scenario with this controller, and a world in which data planes come with six units,
// and in which instances and data planes are deleted at once.
func stage(t *testing.T, finally act, acts ...act) crashtest.Scenario {
	t.Helper()
	scheme, err := newScheme()
	var ix chaos.Indexes
	if err := errors.Join(err, AddIndexes(t.Context(), &ix)); err != nil {
		t.Fatal(err)
	}
	serial := 0
	return crashtest.Scenario{
		Scheme: scheme, Kinds: kinds, Indexes: &ix,
		Acts: acts, World: world, Always: sound, Finally: finally,
		Start: func(cached, live client.Client) []crashtest.Controller {
			r := &Reconciler{
				Client: cached, Live: live, Clock: clocktesting.NewFakePassiveClock(time.Now()), Events: events.NewFakeRecorder(10000),
				Suffix: func() string { serial++; return fmt.Sprintf("%05d", serial) },
			}
			return []crashtest.Controller{func(ctx context.Context) error { return eachRegion(ctx, cached, r) }}
		},
	}
}

func eachRegion(ctx context.Context, cached client.Client, r *Reconciler) error {
	var list v1alpha1.FleetRegionList
	errs := []error{cached.List(ctx, &list)}
	for i := range list.Items {
		_, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// world does what the other controllers of the fleet do.
func world(ctx context.Context, api client.Client) (bool, error) {
	var planes v1alpha1.DataPlaneList
	var instances v1alpha1.ServiceInstanceList
	if err := errors.Join(api.List(ctx, &planes), api.List(ctx, &instances)); err != nil {
		return false, err
	}
	changed := false
	for i := range instances.Items {
		inst := &instances.Items[i]
		held := controllerutil.ContainsFinalizer(inst, v1alpha1.FinalizerServiceInstance)
		if held != (inst.DeletionTimestamp != nil) {
			continue
		}
		before := inst.DeepCopy()
		if held {
			controllerutil.RemoveFinalizer(inst, v1alpha1.FinalizerServiceInstance)
		} else {
			controllerutil.AddFinalizer(inst, v1alpha1.FinalizerServiceInstance)
		}
		changed = true
		if err := api.Patch(ctx, inst, client.MergeFrom(before)); err != nil {
			return false, err
		}
	}
	for i := range planes.Items {
		moved, err := move(ctx, api, &planes.Items[i])
		changed = changed || moved
		if err != nil {
			return false, err
		}
	}
	return changed, nil
}

// move advances a data plane on its way, or deletes it.
func move(ctx context.Context, api client.Client, dp *v1alpha1.DataPlane) (bool, error) {
	before := dp.DeepCopy()
	switch {
	case dp.Status.ReleasedAt != nil && dp.DeletionTimestamp == nil:
		return true, api.Delete(ctx, dp)
	case dp.DeletionTimestamp != nil:
		controllerutil.RemoveFinalizer(dp, v1alpha1.FinalizerDataPlane)
		return true, errors.Join(api.Patch(ctx, dp, client.MergeFrom(before)), client.IgnoreNotFound(api.Delete(ctx, newAgent(dp))))
	case dp.Status.Phase == "":
		dp.Status.Phase = v1alpha1.PhaseReady
		dp.Status.Capacity = map[string]v1alpha1.TypeCapacity{"standard": {MaxNodes: 18, MaxUnits: 6, RemainingUnits: 6}}
		dp.Status.Agent = &v1alpha1.AgentStatus{LastHeartbeat: ptr.To(metav1.NewTime(time.Now().Add(time.Hour)))}
		return true, errors.Join(hear(ctx, api, dp), api.Status().Patch(ctx, dp, client.MergeFrom(before)))
	case dp.Status.Phase == v1alpha1.PhaseDeprovisioning && dp.Status.Agent != nil && !dp.Status.Agent.AnsweredAt.Equal(dp.Status.PhaseSince):
		dp.Status.Agent.AnsweredAt = dp.Status.PhaseSince
		return true, errors.Join(hear(ctx, api, dp), api.Status().Patch(ctx, dp, client.MergeFrom(before)))
	}
	return false, nil
}

// newAgent returns the agent of an empty data plane, which answers every inquiry.
func newAgent(dp *v1alpha1.DataPlane) *v1alpha1.DataPlaneAgent {
	a := &v1alpha1.DataPlaneAgent{ObjectMeta: metav1.ObjectMeta{Namespace: dp.Namespace, Name: dp.Name}}
	a.Spec.DataPlaneUID, a.Spec.InquiryAt = string(dp.UID), dp.Status.PhaseSince
	a.Status.Report = &v1alpha1.DataPlaneReport{
		At: metav1.NewTime(time.Now()), DataPlaneUID: string(dp.UID), Ready: true, ObservedGeneration: 1000,
		Capacity: map[string]v1alpha1.ReportedCapacity{"standard": {MaxNodes: 18, MaxUnits: 6, RemainingUnits: 6}},
	}
	return a
}

// hear makes the agent report.
func hear(ctx context.Context, api client.Client, dp *v1alpha1.DataPlane) error {
	want := newAgent(dp)
	a := &v1alpha1.DataPlaneAgent{}
	err := api.Get(ctx, client.ObjectKeyFromObject(want), a)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err != nil {
		a = want.DeepCopy()
		if err := api.Create(ctx, a); err != nil {
			return err
		}
	}
	before := a.DeepCopy()
	a.Spec.InquiryAt = want.Spec.InquiryAt
	if err := api.Patch(ctx, a, client.MergeFrom(before)); err != nil {
		return err
	}
	before = a.DeepCopy()
	a.Status.Report = want.Status.Report
	return api.Status().Patch(ctx, a, client.MergeFrom(before))
}

// sound returns an error if a data plane is overfilled or deleted with instances on it, or if too
// many are on their way.
func sound(ctx context.Context, api client.Client) error {
	var planes v1alpha1.DataPlaneList
	var instances v1alpha1.ServiceInstanceList
	if err := errors.Join(api.List(ctx, &planes), api.List(ctx, &instances)); err != nil {
		return err
	}
	used := map[string]int32{}
	alive := map[string]bool{}
	for _, i := range instances.Items {
		used[i.Status.DataPlaneName] += i.Status.Units
		alive[string(i.UID)] = i.Status.DataPlaneName == ""
	}
	coming := 0
	for _, dp := range planes.Items {
		for _, b := range dp.Status.Bookings {
			if alive[b.UID] {
				used[dp.Name] += b.Units
			}
		}
		switch {
		case dp.Status.Phase == "":
			coming++
		case used[dp.Name] > dp.Status.Capacity["standard"].MaxUnits:
			return fmt.Errorf("%d units are on %s: %+v", used[dp.Name], dp.Name, dp.Status)
		case dp.Status.ReleasedAt != nil && used[dp.Name] > 0:
			return fmt.Errorf("%s is released with %d units on it", dp.Name, used[dp.Name])
		}
		delete(used, dp.Name)
	}
	delete(used, "")
	if len(used) > 0 {
		return fmt.Errorf("instances are where no data plane is: %v", used)
	}
	if coming > 1 {
		return fmt.Errorf("%d data planes are on their way", coming)
	}
	return nil
}

func newType() *v1alpha1.InstanceType {
	return &v1alpha1.InstanceType{
		ObjectMeta: metav1.ObjectMeta{Name: "standard"},
		Spec: v1alpha1.InstanceTypeSpec{
			Sizes:        []v1alpha1.InstanceSize{{Name: "x1", Units: 1}, {Name: "x2", Units: 2}},
			NodesPerUnit: ptr.To(resource.MustParse("3")), NodePools: []v1alpha1.NodePool{{Platform: "aws", MaxNodes: 18}},
		},
	}
}

func newRegion(name string, edit ...func(*v1alpha1.FleetRegion)) *v1alpha1.FleetRegion {
	r := &v1alpha1.FleetRegion{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name, Generation: 1}}
	r.Spec.Provider, r.Spec.Region = "aws", "us-east-1"
	r.Spec.InstanceTypes = []v1alpha1.RegionType{{Name: "standard", SlackUnits: 2}}
	r.Spec.ClusterSource.Claim = &v1alpha1.ClaimSource{Pools: []v1alpha1.PoolSource{{PoolRef: v1alpha1.PoolReference{Name: "spares"}}}}
	for _, e := range edit {
		e(r)
	}
	return r
}

func newPool() *hivev1.ClusterPool {
	return &hivev1.ClusterPool{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "spares"}}
}

func newInstance(name, size string) *v1alpha1.ServiceInstance {
	i := &v1alpha1.ServiceInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
	i.Spec = v1alpha1.ServiceInstanceSpec{Type: "standard", Size: size, Provider: "aws", Region: "us-east-1"}
	return i
}

func create(objects ...client.Object) act {
	return func(ctx context.Context, api client.Client) error {
		for _, o := range objects {
			if err := api.Create(ctx, o.DeepCopyObject().(client.Object)); err != nil {
				return err
			}
		}
		return nil
	}
}

func begin(regions ...client.Object) act {
	spaces := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "fleet"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}},
	}
	return create(append(append(spaces, newPool(), newType()), regions...)...)
}

func order(from, to int, size string) act {
	var all []client.Object
	for n := from; n <= to; n++ {
		all = append(all, newInstance(fmt.Sprintf("k%02d", n), size))
	}
	return create(all...)
}

func cancel(from, to int) act {
	return func(ctx context.Context, api client.Client) error {
		var errs []error
		for n := from; n <= to; n++ {
			errs = append(errs, api.Delete(ctx, newInstance(fmt.Sprintf("k%02d", n), "x1")))
		}
		return errors.Join(errs...)
	}
}

// ends checks the final numbers of data planes, of units on them and of waiting instances, and the
// reason for waiting.
func ends(planes int, units int32, waiting int, why string) act {
	return func(ctx context.Context, api client.Client) error {
		var list v1alpha1.DataPlaneList
		var instances v1alpha1.ServiceInstanceList
		var region v1alpha1.FleetRegion
		if err := errors.Join(api.List(ctx, &list), api.List(ctx, &instances),
			api.Get(ctx, client.ObjectKey{Namespace: "fleet", Name: "use1"}, &region)); err != nil {
			return err
		}
		var placed int32
		waits := 0
		for _, i := range instances.Items {
			c := condition(i.Status.Conditions, v1alpha1.InstancePlaced)
			switch {
			case i.Status.DataPlaneName != "" && c.Status == metav1.ConditionTrue && i.Status.Placements == 1:
				placed += i.Status.Units
			case i.Status.DataPlaneName == "" && c.Status == metav1.ConditionFalse && c.Reason == why && i.Status.Units > 0:
				waits++
			default:
				return fmt.Errorf("instance %s: %+v", i.Name, i.Status)
			}
		}
		for _, dp := range list.Items {
			if len(dp.Status.Bookings) > 0 || dp.Status.Phase != v1alpha1.PhaseReady {
				return fmt.Errorf("data plane %s: %+v", dp.Name, dp.Status)
			}
		}
		if len(list.Items) != planes || placed != units || waits != waiting || len(region.Status.Pending) > 0 {
			return fmt.Errorf("%d data planes with %d units, %d wait, pending %v; want %d, %d, %d: %+v",
				len(list.Items), placed, waits, region.Status.Pending, planes, units, waiting, region.Status)
		}
		return nil
	}
}

func condition(all []metav1.Condition, kind string) metav1.Condition {
	for _, c := range all {
		if c.Type == kind {
			return c
		}
	}
	return metav1.Condition{}
}

// One data plane at first; a second as soon as two units are left; a third when the second is
// equally full.
func TestCrashWhileARegionFillsUp(t *testing.T) {
	t.Parallel()
	crashtest.Run(t, stage(t, ends(3, 13, 0, ""), begin(newRegion("use1")), order(1, 4, "x1"), order(5, 6, "x2"), order(7, 11, "x1")))
}

func TestCrashWhileARegionEmpties(t *testing.T) {
	t.Parallel()
	crashtest.Run(t, stage(t, ends(1, 1, 0, ""), begin(newRegion("use1")), order(1, 9, "x1"), cancel(1, 5), cancel(7, 9)))
}

func TestCrashInAFullRegion(t *testing.T) {
	t.Parallel()
	full := newRegion("use1", func(r *v1alpha1.FleetRegion) { r.Spec.InstanceTypes[0].Limit = ptr.To[int32](5) })
	crashtest.Run(t, stage(t, ends(1, 4, 1, "LimitReached"), begin(full), order(1, 3, "x2"), cancel(3, 3), order(4, 4, "x2")))
}

// The older of two regions with the same provider and region takes precedence.
func TestCrashWithTwoRegionsOfOnePlace(t *testing.T) {
	t.Parallel()
	s := stage(t, nil, begin(newRegion("use1")), create(newRegion("zz")), order(1, 2, "x1"))
	s.Finally = func(ctx context.Context, api client.Client) error {
		var twin v1alpha1.FleetRegion
		if err := api.Get(ctx, client.ObjectKey{Namespace: "fleet", Name: "zz"}, &twin); err != nil {
			return err
		}
		if c := condition(twin.Status.Conditions, v1alpha1.RegionValid); c.Reason != v1alpha1.ReasonRegionDouble || len(twin.Status.InstanceTypes) > 0 {
			return fmt.Errorf("the second region: %+v", twin.Status)
		}
		return ends(1, 2, 0, "")(ctx, api)
	}
	crashtest.Run(t, s)
}
