package dataplane_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/controller/dataplane"
	"hotspare.io/hotspare/internal/crashtest"
	"hotspare.io/hotspare/internal/crashtest/chaos"
	decide "hotspare.io/hotspare/internal/fleet/dataplane"
)

type act = func(context.Context, client.Client) error

// stage is a scenario with this controller. Each attempt has a new cluster.
func stage(t *testing.T, finally act, acts ...act) crashtest.Scenario {
	t.Helper()
	var ix chaos.Indexes
	if err := dataplane.AddIndexes(t.Context(), &ix); err != nil {
		t.Fatal(err)
	}
	var p *spoke
	begin := func(ctx context.Context, api client.Client) error {
		p = newSpoke(t)
		return create(append(fleet(), plane())...)(ctx, api)
	}
	return crashtest.Scenario{
		Scheme: hubScheme(t), Kinds: everything, Indexes: &ix,
		Acts:    append([]act{begin}, acts...),
		World:   func(ctx context.Context, api client.Client) (bool, error) { return world(ctx, api, p) },
		Finally: finally, Always: nothingByGuess,
		Start: func(cached, live client.Client) []crashtest.Controller {
			r := &dataplane.Reconciler{
				Client: cached, Live: live, Spokes: lazy{&p}, Hub: dataplane.Hub{Server: "https://127.0.0.1:1"},
				Clock: clocktesting.NewFakePassiveClock(start), Events: events.NewFakeRecorder(10000),
			}
			return []crashtest.Controller{func(ctx context.Context) error {
				_, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: key})
				return err
			}}
		},
	}
}

type lazy struct{ of **spoke }

func (l lazy) Client(ctx context.Context, secret client.ObjectKey) (client.Client, string, error) {
	return spokes{*l.of}.Client(ctx, secret)
}

func create(objects ...client.Object) act {
	return func(ctx context.Context, api client.Client) error {
		var errs []error
		for _, o := range objects {
			errs = append(errs, api.Create(ctx, o.DeepCopyObject().(client.Object)))
		}
		return errors.Join(errs...)
	}
}

func edit[T client.Object](o T, change func(T)) act {
	return func(ctx context.Context, api client.Client) error {
		if err := api.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		before := o.DeepCopyObject().(client.Object)
		change(o)
		status := api.Status().Patch(ctx, o.DeepCopyObject().(client.Object), client.MergeFrom(before))
		return errors.Join(client.IgnoreNotFound(status), api.Patch(ctx, o, client.MergeFrom(before))) // some have none
	}
}

// nothingByGuess returns an error if a cluster is destroyed that was not released, or while an
// instance is on it.
func nothingByGuess(ctx context.Context, api client.Client) error {
	var claims hivev1.ClusterClaimList
	var instances v1alpha1.ServiceInstanceList
	if err := errors.Join(api.List(ctx, &claims), api.List(ctx, &instances)); err != nil {
		return err
	}
	if len(claims.Items) > 1 {
		return fmt.Errorf("there are %d claims", len(claims.Items))
	}
	for _, c := range claims.Items {
		if c.DeletionTimestamp == nil {
			continue
		}
		var dp v1alpha1.DataPlane
		if err := api.Get(ctx, key, &dp); err != nil {
			return fmt.Errorf("the data plane has gone before its claim: %w", err)
		}
		if !decide.IsBeingRemoved(&dp) || dp.Status.Phase != v1alpha1.PhaseCleanup && dp.Status.Phase != v1alpha1.PhaseFailed {
			return fmt.Errorf("the claim is destroyed in phase %s", dp.Status.Phase)
		}
		if len(instances.Items) > 0 {
			return errors.New("the claim is destroyed while an instance is there")
		}
	}
	return nil
}

// left returns an error unless exactly these objects exist of the kinds that the controller
// creates.
func left(phase v1alpha1.DataPlanePhase, claims, agents, rights int) act {
	return func(ctx context.Context, api client.Client) error {
		var c hivev1.ClusterClaimList
		var a v1alpha1.DataPlaneAgentList
		var sa corev1.ServiceAccountList
		var secrets corev1.SecretList
		var roles rbacv1.RoleList
		var bindings rbacv1.RoleBindingList
		var dps v1alpha1.DataPlaneList
		if err := errors.Join(api.List(ctx, &c), api.List(ctx, &a), api.List(ctx, &sa), api.List(ctx, &secrets), api.List(ctx, &roles), api.List(ctx, &bindings), api.List(ctx, &dps)); err != nil {
			return err
		}
		var got v1alpha1.DataPlanePhase
		if len(dps.Items) > 0 {
			got = dps.Items[0].Status.Phase
		}
		there := [4]int{len(sa.Items), len(secrets.Items), len(roles.Items), len(bindings.Items)}
		if got != phase || len(c.Items) != claims || len(a.Items) != agents || there != [4]int{rights, rights, rights, rights} {
			return fmt.Errorf("%v: phase %q, %d claims, %d agents, rights %v; want %q, %d, %d, %d", dps.Items, got, len(c.Items), len(a.Items), there, phase, claims, agents, rights)
		}
		return nil
	}
}

func TestCrashOnTheWayToReady(t *testing.T) {
	t.Parallel()
	crashtest.Run(t, stage(t, left(v1alpha1.PhaseReady, 1, 1, 1)))
}

func TestCrashWhileItIsReleased(t *testing.T) {
	t.Parallel()
	release := edit(plane(), func(dp *v1alpha1.DataPlane) {
		dp.Status.Phase, dp.Status.ReleasedAt = v1alpha1.PhaseDeprovisioning, &metav1.Time{Time: start}
	})
	crashtest.Run(t, stage(t, left("", 0, 0, 0), release))
}

func TestCrashWhileItIsDeletedWithAnInstance(t *testing.T) {
	t.Parallel()
	i := &v1alpha1.ServiceInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "i"}}
	i.Spec = v1alpha1.ServiceInstanceSpec{Type: "developer", Size: "x1", Provider: "local", Region: "laptop"}
	place := edit(i.DeepCopy(), func(i *v1alpha1.ServiceInstance) {
		i.Status.DataPlaneName, i.Status.Units, i.Status.Placements = "p", 1, 1
	})
	waits := left(v1alpha1.PhaseReady, 1, 1, 1)
	crashtest.Run(t, stage(t, left("", 0, 0, 0),
		create(i), place, remove(plane()), waits,
		remove(i)))
}

func TestCrashWhileWhatHasFailedIsGivenBack(t *testing.T) {
	t.Parallel()
	fail := edit(plane(), func(dp *v1alpha1.DataPlane) { dp.Status.Phase = v1alpha1.PhaseFailed })
	crashtest.Run(t, stage(t, left("", 0, 0, 0), fail, left(v1alpha1.PhaseFailed, 0, 0, 0), remove(plane())))
}

func TestCrashWhileItsClusterStays(t *testing.T) {
	t.Parallel()
	orphan := edit(plane(), func(dp *v1alpha1.DataPlane) { dp.Spec.DeletionPolicy = v1alpha1.DeletionOrphan })
	crashtest.Run(t, stage(t, left("", 1, 0, 0), orphan, remove(plane())))
}

func remove(o client.Object) act {
	return func(ctx context.Context, api client.Client) error {
		return api.Delete(ctx, o.DeepCopyObject().(client.Object))
	}
}
