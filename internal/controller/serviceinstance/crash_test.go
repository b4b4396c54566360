package serviceinstance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/crashtest"
	"hotspare.io/hotspare/internal/crashtest/chaos"
)

type act = func(context.Context, client.Client) error

var kinds = []client.Object{
	&corev1.Namespace{}, &v1alpha1.FleetRegion{}, &v1alpha1.DataPlane{}, &v1alpha1.DataPlaneAgent{}, &v1alpha1.ServiceInstance{},
}

// stage is a scenario with this controller, and a world that places instances, lists them for
// agents, and makes the agents act and report, all at once.
func stage(t *testing.T, finally act, acts ...act) crashtest.Scenario {
	t.Helper()
	scheme, err := newScheme()
	var ix chaos.Indexes
	if err := errors.Join(err, AddIndexes(t.Context(), &ix)); err != nil {
		t.Fatal(err)
	}
	return crashtest.Scenario{
		Scheme: scheme, Kinds: kinds, Indexes: &ix, Acts: acts, World: world, Always: held, Finally: finally,
		Start: func(cached, live client.Client) []crashtest.Controller {
			r := &Reconciler{Client: cached, Live: live, Clock: clocktesting.NewFakePassiveClock(time.Now()), Events: events.NewFakeRecorder(10000)}
			return []crashtest.Controller{func(ctx context.Context) error { return eachInstance(ctx, cached, r) }}
		},
	}
}

func eachInstance(ctx context.Context, cached client.Client, r *Reconciler) error {
	var list v1alpha1.ServiceInstanceList
	errs := []error{cached.List(ctx, &list)}
	for n := range list.Items {
		_, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[n])})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// world does one action of the other controllers of the fleet and of the agents.
func world(ctx context.Context, api client.Client) (bool, error) {
	var instances v1alpha1.ServiceInstanceList
	var agents v1alpha1.DataPlaneAgentList
	if err := errors.Join(api.List(ctx, &instances), api.List(ctx, &agents)); err != nil {
		return false, err
	}
	for n := range instances.Items {
		if placed, err := place(ctx, api, &instances.Items[n], agents.Items); placed || err != nil {
			return placed, err
		}
	}
	changed := false
	for n := range agents.Items {
		moved, err := move(ctx, api, &agents.Items[n], instances.Items)
		if changed = changed || moved; err != nil {
			return false, err
		}
	}
	return changed, nil
}

func place(ctx context.Context, api client.Client, i *v1alpha1.ServiceInstance, agents []v1alpha1.DataPlaneAgent) (bool, error) {
	if len(i.Finalizers) == 0 || i.DeletionTimestamp != nil || i.Status.DataPlaneName != "" {
		return false, nil
	}
	for _, a := range agents {
		if slices.ContainsFunc(i.Status.Refusals, func(r v1alpha1.Refusal) bool { return r.DataPlaneName == a.Name }) {
			continue
		}
		before := i.DeepCopy()
		i.Status.DataPlaneName, i.Status.Phase, i.Status.Units = a.Name, v1alpha1.InstanceProvisioning, 1
		i.Status.Placements++
		return true, api.Status().Patch(ctx, i, client.MergeFrom(before))
	}
	return false, nil
}

// move lists the instances that are placed on a data plane, and makes its agent report. A data
// plane called full has no room.
func move(ctx context.Context, api client.Client, a *v1alpha1.DataPlaneAgent, all []v1alpha1.ServiceInstance) (bool, error) {
	before := a.DeepCopy()
	a.Spec.Instances = nil
	report := &v1alpha1.DataPlaneReport{DataPlaneUID: a.Spec.DataPlaneUID, Ready: true}
	for _, i := range all {
		if i.Status.DataPlaneName != a.Name {
			continue
		}
		in := v1alpha1.AgentInstance{UID: string(i.UID), Name: i.Name, PlacementID: i.PlacementID(), Deleted: i.DeletionTimestamp != nil}
		a.Spec.Instances = append(a.Spec.Instances, in)
		r := v1alpha1.InstanceReport{UID: in.UID, PlacementID: in.PlacementID, Phase: v1alpha1.AgentReady}
		switch {
		case in.Deleted:
			r.Phase = v1alpha1.AgentDeleted
		case a.Name == "full":
			r.Phase = v1alpha1.AgentRejected
		}
		report.Instances = append(report.Instances, r)
	}
	if fmt.Sprint(before.Spec) == fmt.Sprint(a.Spec) && before.Status.Report != nil && fmt.Sprint(before.Status.Report) == fmt.Sprint(report) {
		return false, nil
	}
	if err := api.Patch(ctx, a, client.MergeFrom(before)); err != nil {
		return false, err
	}
	before = a.DeepCopy()
	a.Status.Report = report
	return true, api.Status().Patch(ctx, a, client.MergeFrom(before))
}

// held returns an error if an instance is deleted of which a data plane still has something.
func held(ctx context.Context, api client.Client) error {
	var instances v1alpha1.ServiceInstanceList
	var agents v1alpha1.DataPlaneAgentList
	if err := errors.Join(api.List(ctx, &instances), api.List(ctx, &agents)); err != nil {
		return err
	}
	there := map[string]bool{}
	for _, i := range instances.Items {
		there[string(i.UID)] = true
		if i.Status.DataPlaneName != "" && len(i.Finalizers) == 0 {
			return fmt.Errorf("instance %s is on %s, and nothing holds it", i.Name, i.Status.DataPlaneName)
		}
	}
	for _, a := range agents.Items {
		for _, in := range a.Spec.Instances {
			said := a.Status.Report != nil && slices.ContainsFunc(a.Status.Report.Instances, func(r v1alpha1.InstanceReport) bool {
				return r.UID == in.UID && r.Phase == v1alpha1.AgentDeleted
			})
			if !there[in.UID] && !said {
				return fmt.Errorf("instance %s is gone, and listed on %s", in.Name, a.Name)
			}
		}
	}
	return nil
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

// begin creates a region with data planes.
func begin(planes ...string) act {
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "fleet"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}},
		newRegion("fleet", 0),
	}
	for _, name := range planes {
		objects = append(objects, &v1alpha1.DataPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name}, Spec: newPlane("", "").Spec})
	}
	return func(ctx context.Context, api client.Client) error {
		if err := create(objects...)(ctx, api); err != nil {
			return err
		}
		var list v1alpha1.DataPlaneList
		errs := []error{api.List(ctx, &list)}
		for _, dp := range list.Items {
			a := &v1alpha1.DataPlaneAgent{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: dp.Name}}
			a.Spec.DataPlaneUID = string(dp.UID)
			errs = append(errs, api.Create(ctx, a))
		}
		return errors.Join(errs...)
	}
}

func order(ctx context.Context, api client.Client) error {
	i := newInstance(free)
	i.UID = ""
	return api.Create(ctx, i)
}

func cancel(ctx context.Context, api client.Client) error { return api.Delete(ctx, newInstance()) }

// lose deletes a data plane with its agent, by force.
func lose(name string) act {
	return func(ctx context.Context, api client.Client) error {
		return errors.Join(api.Delete(ctx, newAgent("fleet", name)), api.Delete(ctx, newPlane("fleet", name)))
	}
}

func ends(want string) act {
	return func(ctx context.Context, api client.Client) error {
		var i v1alpha1.ServiceInstance
		got := "gone"
		err := api.Get(ctx, key, &i)
		if err == nil {
			got = how(&i)
		}
		if client.IgnoreNotFound(err) != nil || got != want {
			return fmt.Errorf("it is %q, want %q: %w", got, want, err)
		}
		return nil
	}
}

func TestCrashWhileAnInstanceComesAndGoes(t *testing.T) {
	t.Parallel()
	crashtest.Run(t, stage(t, ends("gone"), begin("p"), order, ends("Ready Ready=True/Ready on p"), cancel))
}

func TestCrashWhileAnInstanceIsRefused(t *testing.T) {
	t.Parallel()
	crashtest.Run(t, stage(t, ends("gone"), begin("full", "p"), order, ends("Ready Ready=True/Ready Placed=False/Refused on p"), cancel))
}

func TestCrashWhileADataPlaneIsLost(t *testing.T) {
	t.Parallel()
	crashtest.Run(t, stage(t, ends("gone"), begin("p"), order, lose("p"), ends("Failed Ready=False/DataPlaneGone on p"), cancel))
}

func TestCrashWhileNobodyHasRoom(t *testing.T) {
	t.Parallel()
	crashtest.Run(t, stage(t, ends("gone"), begin("full"), order, ends("Pending Ready=False/NotPlaced Placed=False/Refused not full"), cancel))
}
