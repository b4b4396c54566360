package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// Two pools share six customizations. The hub is killed while they take them, and again
// while they give them back.
func TestAKillWhileCustomizationsChangeHandsLeaksNone(t *testing.T) {
	h := own(t)
	s := &scene{hub: h, t: t, ns: h.namespace(t)}
	names := []string{"a", "b", "c", "d", "e", "f"}
	s.make(names...)
	pools := []*hivev1.ClusterPool{fakePool(s.ns, "left", 3, 3), fakePool(s.ns, "right", 3, 3)}
	for _, p := range pools {
		p.Spec.Inventory = inventoryOf(names...)
	}
	held := h.watchHeld(t, s.ns)
	h.create(t, pools[0], pools[1])
	taken := await(t, held, func(n int) bool { return n > 1 })
	h.kill(t)

	h.restart(t)
	t.Logf("%d of %d were taken when the hub was killed", taken, len(names))
	for _, p := range pools {
		h.settled(t, p)
	}
	eventually(t, "each cluster has its own", func(ctx context.Context) error { return h.leased(ctx, s.ns, len(names)) })
	eventually(t, "everything fits together", h.sound)

	t.Log("the pools are deleted; the kill comes when they have given one back")
	held = h.watchHeld(t, s.ns)
	for _, p := range pools {
		h.delete(t, p)
	}
	await(t, held, func(n int) bool { return n == len(names) })
	taken = await(t, held, func(n int) bool { return n < len(names) })
	h.kill(t)

	h.restart(t)
	t.Logf("%d of %d were still taken when the hub was killed", taken, len(names))
	for _, p := range pools {
		h.gone(t, p)
	}
	eventually(t, "nobody has any", func(ctx context.Context) error { return h.free(ctx, s.ns) })
	eventually(t, "everything fits together", h.sound)
}

// watchHeld returns a channel that gets how many customizations have a cluster,
// whenever one is added or changes.
func (h *hub) watchHeld(t *testing.T, namespace string) <-chan int {
	t.Helper()
	w, err := h.Watch(t.Context(), &hivev1.ClusterDeploymentCustomizationList{}, client.InNamespace(namespace))
	if err != nil {
		t.Fatalf("watching customizations: %v", err)
	}
	out := make(chan int, 100)
	go func() {
		defer close(out)
		defer w.Stop()
		held := map[string]bool{}
		for e := range w.ResultChan() {
			if c, ok := e.Object.(*hivev1.ClusterDeploymentCustomization); ok {
				delete(held, c.Name)
				if c.Status.ClusterDeploymentRef != nil {
					held[c.Name] = true
				}
				out <- len(held)
			}
		}
	}()
	return out
}

// await takes numbers until one is good.
func await(t *testing.T, from <-chan int, good func(int) bool) int {
	t.Helper()
	ctx := patient(t)
	for {
		select {
		case n, ok := <-from:
			if !ok {
				t.Fatal("the watch has ended")
			}
			if good(n) {
				return n
			}
		case <-ctx.Done():
			t.Fatal("waited in vain")
		}
	}
}

// leased is an error unless a namespace's pools have so many clusters, and each has a
// customization that is nobody else's.
func (h *hub) leased(ctx context.Context, namespace string, want int) error {
	var clusters hivev1.ClusterDeploymentList
	var all hivev1.ClusterDeploymentCustomizationList
	if err := errors.Join(h.List(ctx, &clusters, client.MatchingLabels{hivev1.LabelPoolNamespace: namespace}), h.List(ctx, &all, client.InNamespace(namespace))); err != nil {
		return err
	}
	users := map[string]string{} // clusters by customization
	var errs []error
	for _, cd := range clusters.Items {
		ref := cd.Spec.ClusterPoolRef.CustomizationRef
		if ref == nil {
			errs = append(errs, fmt.Errorf("cluster %s has no customization", cd.Name))
			continue
		}
		if other := users[ref.Name]; other != "" {
			errs = append(errs, fmt.Errorf("clusters %s and %s were made with customization %s", other, cd.Name, ref.Name))
		}
		users[ref.Name] = cd.Name
	}
	if len(users) != want {
		errs = append(errs, fmt.Errorf("%d clusters have customizations, want %d", len(users), want))
	}
	for _, c := range all.Items {
		if ref := c.Status.ClusterDeploymentRef; ref != nil && ref.Name != users[c.Name] || ref == nil && users[c.Name] != "" {
			errs = append(errs, fmt.Errorf("customization %s is held for %v, and cluster %q was made with it", c.Name, ref, users[c.Name]))
		}
	}
	return errors.Join(errs...)
}

// free is an error unless all customizations of a namespace can be used.
func (h *hub) free(ctx context.Context, namespace string) error {
	var errs []error
	var all hivev1.ClusterDeploymentCustomizationList
	if err := h.List(ctx, &all, client.InNamespace(namespace)); err != nil {
		return err
	}
	for _, c := range all.Items {
		free := c.Status.ClusterDeploymentRef == nil && c.Status.ClusterPoolRef == nil
		for _, have := range c.Status.Conditions {
			free = free && (have.Type != hivev1.CustomizationAvailable || have.Status == metav1.ConditionTrue)
		}
		if !free {
			errs = append(errs, fmt.Errorf("customization %s is held: %+v", c.Name, c.Status))
		}
	}
	return errors.Join(errs...)
}
