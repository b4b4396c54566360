package clusterpool_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/crashtest"
	"hotspare.io/hotspare/internal/inventory/lease"
)

// stocked is a scenario of pools with inventories, in which leases are true after each write.
func stocked(t *testing.T, acts ...func(context.Context, client.Client) error) crashtest.Scenario {
	t.Helper()
	s := stage(t, append([]func(context.Context, client.Client) error{create(imageSet())}, acts...)...)
	always := s.Always
	s.Always = func(ctx context.Context, api client.Client) error {
		return errors.Join(always(ctx, api), trueLeases(ctx, api))
	}
	return s
}

// trueLeases returns an error if a cluster uses a customization whose lease it does not have.
func trueLeases(ctx context.Context, api client.Client) error {
	var list hivev1.ClusterDeploymentList
	if err := api.List(ctx, &list); err != nil {
		return err
	}
	for i := range list.Items {
		cd := &list.Items[i]
		key := slotOf(cd)
		if key.Name == "" || !stands(cd) {
			continue
		}
		var c hivev1.ClusterDeploymentCustomization
		if err := api.Get(ctx, key, &c); err != nil {
			return fmt.Errorf("cluster %s uses customization %s: %w", cd.Name, key.Name, err)
		}
		if holder, _ := lease.Holder(&c); holder.Name != cd.Name {
			return fmt.Errorf("cluster %s uses customization %s, which %q has", cd.Name, key.Name, holder.Name)
		}
	}
	return nil
}

// leave checks what is left: pools with their entries, "p: a Reserved 3, b Missing 3",
// and that leases and entries agree.
func leave(want ...string) func(context.Context, client.Client) error {
	return func(ctx context.Context, api client.Client) error {
		var pools hivev1.ClusterPoolList
		var slots hivev1.ClusterDeploymentCustomizationList
		if err := errors.Join(api.List(ctx, &pools), api.List(ctx, &slots), trueLeases(ctx, api)); err != nil {
			return err
		}
		holders := map[string]string{}
		for i := range slots.Items {
			holder, _ := lease.Holder(&slots.Items[i])
			holders[slots.Items[i].Name] = holder.Name
		}
		var got []string
		for _, p := range pools.Items {
			var parts []string
			for name, e := range p.Status.Inventory {
				parts = append(parts, fmt.Sprintf("%s %s %d", name, e.Status, e.Attempts))
				if ref := e.ClusterDeployment; ref != nil && ref.Name != holders[name] {
					return fmt.Errorf("pool %s says that %s has %s, and %q has the lease", p.Name, ref.Name, name, holders[name])
				}
				if ref := e.ClusterDeployment; ref != nil {
					delete(holders, name)
				}
			}
			slices.Sort(parts)
			got = append(got, p.Name+": "+strings.Join(parts, ", "))
			if len(p.Status.Pending) > 0 {
				return fmt.Errorf("pool %s still has %v on record", p.Name, p.Status.Pending)
			}
		}
		for name, holder := range holders {
			if holder != "" {
				return fmt.Errorf("customization %s is that of cluster %s, which no pool knows of", name, holder)
			}
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("got %q, want %q", got, want)
		}
		return nil
	}
}

// edit edits an object as a user does.
func edit[T client.Object](o T, name string, change func(T)) func(context.Context, client.Client) error {
	return func(ctx context.Context, api client.Client) error {
		if err := api.Get(ctx, types.NamespacedName{Namespace: "pools", Name: name}, o); err != nil {
			return err
		}
		before := o.DeepCopyObject().(client.Object)
		change(o)
		return api.Patch(ctx, o, client.MergeFrom(before))
	}
}

func TestCrashWhileAPoolWithAnInventoryServes(t *testing.T) {
	t.Parallel()
	s := stocked(t, create(named("a", "one"), named("b", "two"), listing(1, "a", "b")), create(claim("x")), remove(claim("x")))
	s.Finally = leave("p: a Available 3, b Reserved 3")
	crashtest.Run(t, s)
}

func TestCrashWhileAnEntryIsRemoved(t *testing.T) {
	t.Parallel()
	s := stocked(t, create(named("a", "one"), named("b", "two"), listing(1, "a", "b")),
		edit(&hivev1.ClusterPool{}, "p", func(p *hivev1.ClusterPool) { p.Spec.Inventory = p.Spec.Inventory[1:] }))
	s.Finally = leave("p: b Reserved 3")
	crashtest.Run(t, s)
}

func TestCrashWhileACustomizationIsEdited(t *testing.T) {
	t.Parallel()
	patch := func(path string) func(context.Context, client.Client) error {
		return edit(&hivev1.ClusterDeploymentCustomization{}, "a", func(c *hivev1.ClusterDeploymentCustomization) {
			c.Spec.InstallConfigPatches[0].Path = path
		})
	}
	s := stocked(t, create(named("a", "one"), named("b", "two"), listing(1, "a", "b")), patch("/metadata/nowhere"), patch("/metadata/name"))
	s.Finally = leave("p: a Available 3, b Reserved 3")
	crashtest.Run(t, s)
}

func TestCrashWhileTwoPoolsShareCustomizations(t *testing.T) {
	t.Parallel()
	q := listing(1, "a", "b")
	q.Name = "q"
	s := stocked(t, create(named("a", "one"), named("b", "two"), listing(1, "b", "a")), create(q), create(claim("x")), remove(listing(0)))
	s.Finally = leave("p: a Unavailable 3, b Reserved 3", "q: a Reserved 3, b Unavailable 3")
	crashtest.Run(t, s)
}

func TestCrashWhileAnInventoryComesAndGoes(t *testing.T) {
	t.Parallel()
	var had hivev1.Inventory
	list := func(change func(*hivev1.ClusterPool)) func(context.Context, client.Client) error {
		return edit(&hivev1.ClusterPool{}, "p", change)
	}
	s := stocked(t, create(named("a", "one"), listing(1, "a")),
		list(func(p *hivev1.ClusterPool) { had, p.Spec.Inventory = p.Spec.Inventory, nil }),
		list(func(p *hivev1.ClusterPool) { p.Spec.Inventory = had }))
	s.Finally = leave("p: a Reserved 3")
	crashtest.Run(t, s)
}
