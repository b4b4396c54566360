package customization

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/crashtest"
	"hotspare.io/hotspare/internal/crashtest/chaos"
	"hotspare.io/hotspare/internal/inventory/lease"
)

type act = func(context.Context, client.Client) error

// stage is a scenario with this controller, the stand-in for pools, and a world that
// installs clusters and destroys deleted ones, both at once.
func stage(t *testing.T, finally act, acts ...act) crashtest.Scenario {
	t.Helper()
	scheme, err := newScheme()
	var ix chaos.Indexes
	if err := errors.Join(err, AddIndexes(t.Context(), &ix)); err != nil {
		t.Fatal(err)
	}
	serial := 0
	return crashtest.Scenario{
		Scheme: scheme, Kinds: everything, Indexes: &ix,
		Acts:    acts,
		World:   world,
		Finally: finally,
		Always:  trueLeases,
		Start: func(cached, live client.Client) []crashtest.Controller {
			now := clocktesting.NewFakePassiveClock(time.Now())
			r := &Reconciler{Client: cached, Live: live, Clock: now, Events: events.NewFakeRecorder(10000)}
			m := &maker{client: cached, live: live, clock: now, suffix: func() string { serial++; return fmt.Sprintf("%05d", serial) }}
			return []crashtest.Controller{
				func(ctx context.Context) error { return eachPool(ctx, cached, m) },
				func(ctx context.Context) error { return eachSlot(ctx, cached, r) },
			}
		},
	}
}

// begin makes a pool of one cluster, and customizations for it.
func begin(slots ...string) act {
	objects := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "pools"}}}
	for _, name := range slots {
		objects = append(objects, newSlot(name))
	}
	return create(append(objects, newPool("p", 1))...)
}

func eachPool(ctx context.Context, cached client.Client, m *maker) error {
	var pools hivev1.ClusterPoolList
	errs := []error{cached.List(ctx, &pools)}
	for _, p := range pools.Items {
		_, err := m.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&p)})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func eachSlot(ctx context.Context, cached client.Client, r *Reconciler) error {
	var slots hivev1.ClusterDeploymentCustomizationList
	var clusters hivev1.ClusterDeploymentList
	errs := []error{cached.List(ctx, &slots), cached.List(ctx, &clusters)}
	var keys []types.NamespacedName
	for i := range slots.Items {
		keys = append(keys, client.ObjectKeyFromObject(&slots.Items[i]))
	}
	for _, key := range keysOf(clusters.Items, keys) {
		_, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: key})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func world(ctx context.Context, api client.Client) (bool, error) {
	var list hivev1.ClusterDeploymentList
	if err := api.List(ctx, &list); err != nil {
		return false, err
	}
	changed := false
	for i := range list.Items {
		cd := &list.Items[i]
		before := cd.DeepCopy()
		switch standing := controllerutil.ContainsFinalizer(cd, hivev1.FinalizerDeprovision); {
		case cd.DeletionTimestamp != nil && standing:
			controllerutil.RemoveFinalizer(cd, hivev1.FinalizerDeprovision)
		case cd.DeletionTimestamp == nil && !cd.Spec.Installed:
			controllerutil.AddFinalizer(cd, hivev1.FinalizerDeprovision)
			cd.Spec.Installed = true
		default:
			continue
		}
		changed = true
		if err := api.Patch(ctx, cd, client.MergeFrom(before)); err != nil {
			return false, err
		}
	}
	return changed, nil
}

// trueLeases returns an error if a cluster uses a customization whose lease it does not have.
func trueLeases(ctx context.Context, api client.Client) error {
	var list hivev1.ClusterDeploymentList
	if err := api.List(ctx, &list); err != nil {
		return err
	}
	for i := range list.Items {
		c := readCluster(&list.Items[i])
		var slot hivev1.ClusterDeploymentCustomization
		if err := api.Get(ctx, c.Customization, &slot); client.IgnoreNotFound(err) != nil {
			return err
		}
		if holder, _ := lease.Holder(&slot); holder != c.Key && !c.IsDestroyed() {
			return fmt.Errorf("cluster %s uses customization %s, which %q has", c.Key.Name, c.Customization.Name, holder.Name)
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

func remove(o client.Object) act {
	return func(ctx context.Context, api client.Client) error {
		return api.Delete(ctx, o.DeepCopyObject().(client.Object))
	}
}

func removeClusters(ctx context.Context, api client.Client) error {
	var list hivev1.ClusterDeploymentList
	errs := []error{api.List(ctx, &list)}
	for i := range list.Items {
		errs = append(errs, api.Delete(ctx, &list.Items[i]))
	}
	return errors.Join(errs...)
}

// ends checks what is left: how many clusters, and customizations with how they are.
func ends(clusters int, want ...string) act {
	return func(ctx context.Context, api client.Client) error {
		var list hivev1.ClusterDeploymentList
		var slots hivev1.ClusterDeploymentCustomizationList
		if err := errors.Join(api.List(ctx, &list), api.List(ctx, &slots)); err != nil {
			return err
		}
		var got []string
		for i := range slots.Items {
			f := readCustomization(&slots.Items[i])
			how := "free"
			if f.Leased {
				how = "leased"
			}
			if f.Leased != (f.Available == metav1.ConditionFalse) || f.Leased && !f.HasFinalizer {
				return fmt.Errorf("customization %s is %s: %+v", slots.Items[i].Name, how, f)
			}
			got = append(got, slots.Items[i].Name+" "+how+" "+f.ApplyReason)
		}
		if len(list.Items) != clusters || fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
			return fmt.Errorf("%d clusters and %q, want %d and %q", len(list.Items), got, clusters, want)
		}
		return nil
	}
}

func TestCrashWhileALeaseIsTakenAndReleased(t *testing.T) {
	t.Parallel()
	crashtest.Run(t, stage(t, ends(1, "a leased Succeeded"), begin("a"), removeClusters, removeClusters))
}

func TestCrashWhileAPoolGoes(t *testing.T) {
	t.Parallel()
	crashtest.Run(t, stage(t, ends(0, "a free Succeeded"), begin("a"), remove(newPool("p", 0)), removeClusters))
}

func TestCrashWhileACustomizationGoes(t *testing.T) { // B8
	t.Parallel()
	crashtest.Run(t, stage(t, ends(1, "b leased Succeeded"), begin("a", "b"), remove(newSlot("a")), removeClusters))
}

// A lease that was lost (a backup was restored, or the customization was removed by
// force and made again) comes back.
func TestCrashWhileALostLeaseIsRepaired(t *testing.T) {
	t.Parallel()
	lose := func(ctx context.Context, api client.Client) error {
		var c hivev1.ClusterDeploymentCustomization
		if err := api.Get(ctx, types.NamespacedName{Namespace: "pools", Name: "a"}, &c); err != nil {
			return err
		}
		before := c.DeepCopy()
		c.Finalizers = nil
		return errors.Join(api.Patch(ctx, &c, client.MergeFrom(before)), api.Delete(ctx, &c), create(newSlot("a"))(ctx, api))
	}
	s := stage(t, ends(1, "a leased Succeeded", "b free "), begin("a", "b"), lose)
	s.Always = nil // for a moment no cluster has the lease
	crashtest.Run(t, s)
}
