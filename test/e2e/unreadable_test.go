package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// Objects as they may be left from the time before a schema was tightened, or from
// under somebody else's (Hive B14; known from the field as "lifetime: 1w froze all claims").
func TestAnObjectThatCannotBeReadStopsNoOther(t *testing.T) {
	h := own(t)
	ns := h.namespace(t)
	bad, good := fakePool(ns, "bad", 1, 1), fakePool(ns, "good", 2, 1)
	kept, waits, first := claimOn(good, "kept"), claimOn(good, "waits"), claimOn(good, "first")
	h.create(t, bad, good, kept)
	h.settled(t, bad)
	cd := h.served(t, kept)

	t.Log("while everything runs, three fields become what their types cannot hold")
	aboutBad := func() {
		t.Helper()
		h.tells(t, bad, hivev1.PoolMissingDependencies, `spec.maxSize: "many" is not a whole number`, "kubectl edit clusterpool bad -n "+ns, "until then hotspare does nothing for this pool")
	}
	aboutKept := func() {
		t.Helper()
		h.tells(t, kept, hivev1.ClaimPending, "Cluster claimed", "spec.lifetime: 8 is not a string")
	}
	aboutWaits := func() {
		t.Helper()
		h.tells(t, waits, hivev1.ClaimPending, "cannot be served", "spec.lifetime: 9 is not a string", "correct it", "or delete the claim")
	}
	h.spoil(t, "clusterpools", bad, "maxSize", "many", aboutBad)
	h.spoil(t, "clusterclaims", kept, "lifetime", 8, aboutKept)
	h.spoil(t, "clusterclaims", waits, "lifetime", 9, aboutWaits)
	h.create(t, first)
	h.served(t, first)
	h.settled(t, good)

	t.Log("after a restart they are in the first list")
	if err := h.down(); err != nil {
		t.Fatal(err)
	}
	h.restart(t)
	second := claimOn(good, "second")
	h.create(t, second)
	h.served(t, second)
	h.settled(t, good)
	aboutBad()
	aboutKept()
	aboutWaits()
	if now := get(t, h, cluster(cd.Name)); now.UID != cd.UID || now.DeletionTimestamp != nil {
		t.Error("the claim that cannot be read has lost its cluster")
	}
	if n := len(h.clusters(t, bad)); n != 1 {
		t.Errorf("the pool that cannot be read has %d clusters, want its 1", n)
	}

	t.Log("what hotspare has written has left the fields as they were; corrected, all goes on")
	for o, want := range map[client.Object]string{bad: "map[maxSize:many]", kept: "map[lifetime:8]"} {
		spec, _, _ := unstructured.NestedMap(h.raw(t, o).Object, "spec")
		got := map[string]any{}
		for _, field := range []string{"maxSize", "lifetime"} {
			if v, found := spec[field]; found {
				got[field] = v
			}
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%s has %v, want %s", o.GetName(), got, want)
		}
	}
	h.merge(t, bad, `{"spec":{"maxSize":5,"size":2}}`)
	h.settled(t, bad)
	h.merge(t, waits, `{"spec":{"lifetime":"8h"}}`)
	h.served(t, waits)

	t.Log("a claim that cannot be read can be deleted, and its cluster with it; the API lets it go once it is corrected")
	if err := h.Delete(t.Context(), h.raw(t, kept)); err != nil {
		t.Fatal(err)
	}
	h.gone(t, cluster(cd.Name))
	h.merge(t, kept, `{"spec":{"lifetime":"8h"}}`)
	h.gone(t, h.untyped(kept))
}

// A list in place of a time is taken by the API server itself: to its validation a
// list is a string that has a format. So anybody who may write a status can do this.
func TestAStatusThatCannotBeReadStopsNoOther(t *testing.T) {
	h := shared(t)
	pool := fakePool(h.namespace(t), "ci", 2, 1)
	bad, good := claimOn(pool, "bad"), claimOn(pool, "good")
	h.create(t, pool, bad)
	h.served(t, bad)
	if err := h.Status().Patch(t.Context(), h.raw(t, bad), client.RawPatch(types.MergePatchType,
		[]byte(`{"status":{"conditions":[{"type":"A","status":"True","lastProbeTime":["2026"]}]}}`))); err != nil {
		t.Fatal(err)
	}
	h.create(t, good)
	h.served(t, good)
	t.Log("what is hotspare's own heals")
	h.served(t, bad)
}

// spoil gives a field a value that its type cannot hold, and waits for told. The schema looks away
// meanwhile: under a rule for the field, the API server would refuse the conditions as well.
// An object that does not exist is made.
func (h *hub) spoil(t *testing.T, resource string, o client.Object, field string, value any, told func()) {
	t.Helper()
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	crd.SetName(resource + ".hive.openshift.io")
	if err := h.Get(t.Context(), client.ObjectKeyFromObject(crd), crd); err != nil {
		t.Fatal(err)
	}
	strict, loose := crd.DeepCopy(), crd.DeepCopy()
	versions, _, _ := unstructured.NestedSlice(loose.Object, "spec", "versions")
	if err := unstructured.SetNestedField(versions[0].(map[string]any), map[string]any{"x-kubernetes-preserve-unknown-fields": true},
		"schema", "openAPIV3Schema", "properties", "spec", "properties", field); err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedSlice(loose.Object, versions, "spec", "versions"); err != nil {
		t.Fatal(err)
	}
	if err := h.Update(t.Context(), loose); err != nil {
		t.Fatal(err)
	}
	whole, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	diff := fmt.Sprintf(`{"spec":{%q:%s}}`, field, whole)
	eventually(t, "the schema looks away", func(ctx context.Context) error {
		u := h.untyped(o)
		switch err := h.Get(ctx, client.ObjectKeyFromObject(o), u); {
		case err == nil:
			return h.Patch(ctx, u, client.RawPatch(types.MergePatchType, []byte(diff)))
		case client.IgnoreNotFound(err) != nil:
			return err
		}
		u.Object["spec"] = map[string]any{"clusterPoolName": o.(*hivev1.ClusterClaim).Spec.ClusterPoolName, field: int64(value.(int))}
		return h.Create(ctx, u)
	})
	told()
	if err := h.Get(t.Context(), client.ObjectKeyFromObject(crd), crd); err != nil {
		t.Fatal(err)
	}
	strict.SetResourceVersion(crd.GetResourceVersion())
	if err := h.Update(t.Context(), strict); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the schema looks again", func(ctx context.Context) error {
		u := h.untyped(o)
		u.SetName("refused")
		u.Object["spec"] = map[string]any{field: []any{}}
		if err := h.Create(ctx, u, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "spec."+field) {
			return fmt.Errorf("it said %w", err)
		}
		return nil
	})
}

func (h *hub) untyped(o client.Object) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	kinds, _, _ := kinds().ObjectKinds(o)
	u.SetGroupVersionKind(kinds[0])
	u.SetNamespace(o.GetNamespace())
	u.SetName(o.GetName())
	return u
}

// raw is an object as it is stored.
func (h *hub) raw(t *testing.T, o client.Object) *unstructured.Unstructured {
	t.Helper()
	return get(t, h, h.untyped(o))
}

func (h *hub) merge(t *testing.T, o client.Object, diff string) {
	t.Helper()
	if err := h.Patch(t.Context(), h.untyped(o), client.RawPatch(types.MergePatchType, []byte(diff))); err != nil {
		t.Fatal(err)
	}
}

// tells waits until a condition's message has all these parts.
func (h *hub) tells(t *testing.T, o client.Object, typ string, parts ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s says what of it cannot be read", o.GetName()), func(ctx context.Context) error {
		u := h.untyped(o)
		if err := h.Get(ctx, client.ObjectKeyFromObject(o), u); err != nil {
			return err
		}
		all, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		for _, c := range all {
			if c := c.(map[string]any); c["type"] == typ {
				for _, part := range parts {
					if message, _ := c["message"].(string); !strings.Contains(message, part) {
						return fmt.Errorf("nothing says %s: %v", part, c)
					}
				}
				return nil
			}
		}
		return fmt.Errorf("it has %v", all)
	})
}
