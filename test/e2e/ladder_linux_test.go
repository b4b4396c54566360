package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// A PoolPolicy gives a pool of local clusters its ladder of depths: one spare is frozen and the others are stopped. A claim
// wakes the frozen one, and the cluster that replaces it is frozen in its place.
func TestAClaimWakesTheFrozenSpareOfALadder(t *testing.T) {
	h := shared(t)
	ns := h.namespace(t)
	pool := localPool(ns, "ladder", 0, 0)
	policy := func(mode, sleep string) string {
		return fmt.Sprintf(`{"apiVersion":"hotspare.io/v1alpha1","kind":"PoolPolicy","metadata":{"name":"ladder","namespace":%q},"spec":{"mode":%q,"size":{"max":2},"sleep":%s}}`, ns, mode, sleep)
	}
	write := func(manifest string) {
		t.Helper()
		if r := h.apply(t, manifest); r.code != 0 {
			t.Fatalf("applying %s: %s", manifest, r.all())
		}
	}
	h.create(t, pool)
	write(policy("Auto", `{"ladder":[{"depth":"freeze","count":1},{"depth":"stop"}]}`))
	h.ladderOf(t, pool, "freeze:1,stop")
	write(policy("Recommend", `{"ladder":[{"depth":"freeze","count":1},{"depth":"stop"}]}`)) // the counts and the ladder stay as they are
	before := pool.DeepCopy()
	pool.Spec.Size = 2
	if err := h.Patch(t.Context(), pool, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	frozen := h.depths(t, pool, "freeze stop")["freeze"]

	t.Log("a claim wakes the frozen one")
	c := claimOn(pool, "mine")
	h.create(t, c)
	if cd := h.served(t, c); cd.Name != frozen {
		t.Errorf("the claim has cluster %s, and %s was frozen", cd.Name, frozen)
	} else if tr := get(t, h, cd).Status.PowerTransition; tr == nil || tr.Depth != hivev1.DepthFreeze {
		t.Errorf("it was resumed from %+v", tr)
	}

	t.Log("the freed place is taken by the next spare")
	if again := h.depths(t, pool, "freeze stop")["freeze"]; again == frozen {
		t.Errorf("cluster %s is claimed and frozen", again)
	}

	t.Log("the short form of mode Auto is stored as the long one; others are refused")
	write(policy("Recommend", `"Auto"`))
	var p v1alpha1.PoolPolicy
	eventually(t, "a ladder is recommended", func(ctx context.Context) error {
		if err := h.Get(ctx, client.ObjectKeyFromObject(pool), &p); err != nil {
			return err
		}
		if rec := p.Status.Recommended; rec == nil || rec.Sleep == nil || rec.Sleep.Reason == "" {
			return fmt.Errorf("it is %+v", p.Status.Recommended)
		}
		return nil
	})
	if p.Spec.Sleep == nil || p.Spec.Sleep.Mode != v1alpha1.SleepAuto || p.Spec.Sleep.Ladder != nil {
		t.Errorf("it is stored as %+v", p.Spec.Sleep)
	}
	for sleep, want := range map[string]string{`"auto"`: `supported values: "Auto"`, `{}`: "set one of mode and ladder: {mode: Auto}", `{"mode":"Auto","ladder":[{"depth":"stop"}]}`: "set one of mode and ladder"} {
		// kubectl apply would merge the mapping with the stored one.
		if r := h.run(t, policy("Recommend", sleep), "kubectl", "create", "--dry-run=server", "-f", "-"); r.code == 0 || !strings.Contains(r.all(), want) {
			t.Errorf("%s: exit code %d, want %q\n%s", sleep, r.code, want, r.all())
		}
	}
}

// ladderOf waits until a pool has a ladder.
func (h *hub) ladderOf(t *testing.T, p *hivev1.ClusterPool, want string) {
	t.Helper()
	eventually(t, "pool "+p.Name+" has ladder "+want, func(ctx context.Context) error {
		if err := h.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		if got := p.Annotations[hivev1.AnnotationSleepLadder]; got != want {
			return fmt.Errorf("it has %q", got)
		}
		return nil
	})
}

// depths waits until the unclaimed clusters of a pool sleep at depths, in the order of depths, and returns a cluster of each.
func (h *hub) depths(t *testing.T, p *hivev1.ClusterPool, want string) map[string]string {
	t.Helper()
	var names map[string]string
	eventually(t, "the spares of pool "+p.Name+" sleep at depths "+want, func(context.Context) error {
		names = map[string]string{}
		count := map[string]int{}
		for _, cd := range h.clusters(t, p) {
			tr := cd.Status.PowerTransition
			if cd.Spec.ClusterPoolRef.ClaimName != "" {
				continue
			}
			if cd.Status.PowerState != hivev1.StatusHibernating || tr == nil {
				return fmt.Errorf("cluster %s is %s", cd.Name, cd.Status.PowerState)
			}
			names[tr.Depth] = cd.Name
			count[tr.Depth]++
		}
		var got []string
		for _, depth := range []string{hivev1.DepthFreeze, hivev1.DepthSuspend, hivev1.DepthStop} {
			for range count[depth] {
				got = append(got, depth)
			}
		}
		if text := strings.Join(got, " "); text != want {
			return fmt.Errorf("they sleep at %q", text)
		}
		return nil
	})
	return names
}
