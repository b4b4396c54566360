package e2e

import (
	"context"
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/kstatus/kstatustest"
)

// TestToolsThatWaitFollowAPoolAndItsClaim judges objects on a hub as Flux, Helm and others do.
func TestToolsThatWaitFollowAPoolAndItsClaim(t *testing.T) {
	h := shared(t)
	ns := h.namespace(t)
	becomes := func(o client.Object, want string) {
		t.Helper()
		eventually(t, fmt.Sprintf("kstatus of %T %s is %q", o, o.GetName(), want), func(ctx context.Context) error {
			if err := h.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
				return err
			}
			if got := kstatustest.ComputeStatus(t, o); got != want {
				return fmt.Errorf("it is %q", got)
			}
			return nil
		})
	}

	t.Log("an object that no controller has looked at is not current")
	p := fakePool(ns, "kstatus", 1, 1)
	h.create(t, p)
	kstatustest.ExpectStatus(t, p, "InProgress LatestGenerationNotObserved")
	becomes(p, "Current")
	claim := claimOn(p, "x")
	h.create(t, claim)
	kstatustest.ExpectStatus(t, claim, "InProgress LatestGenerationNotObserved")
	becomes(claim, "Current")
	cd := &hivev1.ClusterDeployment{}
	cd.Namespace, cd.Name = claim.Spec.Namespace, claim.Spec.Namespace
	becomes(cd, "Current")

	t.Log("nor is a customization; one whose patches do not apply needs a person")
	site := customization(ns, "site", replace("/metadata/nothing", "x"))
	h.create(t, site)
	kstatustest.ExpectStatus(t, site, "InProgress LatestGenerationNotObserved")
	becomes(site, "Current")
	sites := fakePool(ns, "sites", 1, 1)
	sites.Spec.Inventory = inventoryOf(site.Name)
	h.create(t, sites)
	becomes(site, "Failed BrokenBySyntax")
	corrected := site.DeepCopy()
	corrected.Spec.InstallConfigPatches[0].Path = "/metadata/name"
	if err := h.Patch(t.Context(), corrected, client.MergeFrom(site)); err != nil {
		t.Fatal(err)
	}
	kstatustest.ExpectStatus(t, corrected, "InProgress LatestGenerationNotObserved")
	becomes(sites, "Current")
	becomes(site, "Current")
	var attempts hivev1.ClusterProvisionList
	if err := h.List(t.Context(), &attempts, client.InNamespace(site.Status.ClusterDeploymentRef.Name)); err != nil || len(attempts.Items) != 1 {
		t.Fatalf("%d attempts, want 1 (%v)", len(attempts.Items), err)
	}
	becomes(&attempts.Items[0], "Current")
	h.delete(t, sites)
	h.gone(t, sites)

	t.Log("a claim on a pool that does not exist needs a person")
	lost := claimOn(fakePool(ns, "nowhere", 0, 0), "lost")
	h.create(t, lost)
	becomes(lost, "Failed PoolNotFound")

	t.Log("a pool that cannot have its clusters needs a person, and is current when that one has acted")
	becomes(p, "Current")
	before := p.DeepCopy()
	p.Spec.MaxSize = new(int32(2))
	p.Spec.Size = 2
	if err := h.Patch(t.Context(), p, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	kstatustest.ExpectStatus(t, p, "InProgress LatestGenerationNotObserved")
	becomes(p, "Failed MaxCapacity")
	h.delete(t, claim)
	h.gone(t, claim)
	becomes(p, "Current")
	h.delete(t, lost)
	h.delete(t, p)
	h.gone(t, p)
}
