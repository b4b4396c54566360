package e2e

import (
	"context"
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
)

// showsPriority waits until the status of a claim has the priority.
func (h *hub) showsPriority(t *testing.T, c *hivev1.ClusterClaim, want int32) {
	t.Helper()
	eventually(t, fmt.Sprintf("claim %s has priority %d", c.Name, want), func(ctx context.Context) error {
		if err := h.Get(ctx, client.ObjectKeyFromObject(c), c); err != nil {
			return err
		}
		if got := c.Status.Priority; got == nil || *got != want {
			return fmt.Errorf("its status has priority %v: %v", got, c.Status.Conditions)
		}
		return nil
	})
}

// waits checks that a claim has no cluster.
func (h *hub) waits(t *testing.T, c *hivev1.ClusterClaim) {
	t.Helper()
	if err := h.Get(t.Context(), client.ObjectKeyFromObject(c), c); err != nil || c.Spec.Namespace != "" {
		t.Errorf("claim %s has cluster %q, %v", c.Name, c.Spec.Namespace, err)
	}
}

// A pool is full, and two claims wait. The later one has a priority, and is served first.
func TestAClaimWithAPriorityIsServedFirst(t *testing.T) {
	h := shared(t)
	ns := h.namespace(t)
	pool := fakePool(ns, "dev", 1, 1)
	pool.Spec.MaxSize = new(int32(1))
	first, second := claimOn(pool, "first"), claimOn(pool, "second")
	h.create(t, pool, first)
	h.served(t, first)
	h.create(t, second)
	h.pends(t, second, hivev1.ReasonNoClusters)

	refused(t, h.run(t, "", "claim", "create", "dev", "-n", ns, "--name", "urgent", "--priority", "1001"), "--priority must be from -1000 to 1000")
	if r := h.run(t, "", "claim", "create", "dev", "-n", ns, "--name", "urgent", "--priority", "10"); r.code != 0 {
		t.Fatal(r.all())
	}
	urgent := claimOn(pool, "urgent")
	h.showsPriority(t, urgent, 10)
	says(t, h.run(t, "", "claim", "list", "-n", ns).out, "PRIORITY", "10")
	says(t, h.run(t, "", "explain", "claim", "second", "-n", ns).out, "1 claim is before it: urgent (priority 10)")
	says(t, h.run(t, "", "explain", "claim", "urgent", "-n", ns).out, "it is the first in the queue", "Priority")

	t.Log("the hub refuses what is no priority, and accepts a change")
	annotate := func(value string) result {
		return h.run(t, "", "kubectl", "annotate", "clusterclaim", "second", "-n", ns, hivev1.AnnotationPriority+"="+value, "--overwrite")
	}
	for _, value := range []string{"high", "1001", "01", "1.5"} {
		refused(t, annotate(value), `annotation hotspare.io/priority is "`+value+`": set it to a whole number from -1000 to 1000`)
	}
	if r := annotate("-1000"); r.code != 0 {
		t.Error(r.all())
	}
	h.showsPriority(t, second, -1000)

	h.delete(t, first)
	h.served(t, urgent)
	h.waits(t, second)
	h.delete(t, urgent)
	h.served(t, second)
	if got := get(t, h, claimOn(pool, "second")).Status.Priority; got != nil {
		t.Errorf("it has a cluster, and its status has priority %d", *got)
	}
}

// A ClaimPolicy limits the priorities of claims, whatever their creators write after the admission.
func TestClaimPoliciesLimitPriorities(t *testing.T) {
	h := shared(t)
	ns := h.namespace(t)
	alice, bob := person{h, "alice-" + ns}, person{h, "bob-" + ns}
	h.lets(t, ns, alice, bob)
	pool := fakePool(ns, "dev", 1, 1)
	pool.Spec.MaxSize = new(int32(1))
	policy, faster := claimPolicy(ns, "team", alice, bob), claimPolicy(ns, "release", bob)
	policy.Spec.MaxClaimsPerUser, faster.Spec.MaxClaimsPerUser = nil, nil
	faster.Spec.MaxPriority = new(int32(5))
	h.create(t, pool, policy, faster)
	h.settled(t, pool)
	alice.recordsCreators(t, pool)

	holder := alice.claim(t, claimOn(pool, "holder"))
	h.served(t, holder)
	mine := alice.claim(t, claimOn(pool, "mine"))
	h.pends(t, mine, hivev1.ReasonNoClusters)
	jumps := claimOn(pool, "pushy")
	jumps.Annotations = map[string]string{hivev1.AnnotationPriority: "1000"}
	alice.claim(t, jumps)
	h.showsPriority(t, jumps, 0)
	says(t, h.pends(t, jumps, hivev1.ReasonNoClusters), "its priority 1000 counts as 0: no ClaimPolicy permits "+alice.name+" a higher one on pool dev")
	alice.may(t, "annotate", "clusterclaim", "mine", "-n", ns, hivev1.AnnotationPriority+"=-1")
	h.showsPriority(t, mine, -1)
	alice.may(t, "annotate", "clusterclaim", "mine", "-n", ns, hivev1.AnnotationPriority+"-")
	bobs := claimOn(pool, "bobs")
	bobs.Annotations = map[string]string{hivev1.AnnotationPriority: "10"}
	bob.claim(t, bobs)
	h.showsPriority(t, bobs, 5)
	says(t, h.pends(t, bobs, hivev1.ReasonNoClusters), "its priority 10 counts as 5: ClaimPolicy release permits "+bob.name+" at most 5 on pool dev")
	eventually(t, "the claims are admitted", func(ctx context.Context) error {
		for _, c := range []*hivev1.ClusterClaim{mine, jumps, bobs} {
			if err := h.Get(ctx, client.ObjectKeyFromObject(c), c); err != nil || !condition.IsTrue(c.Status.Conditions, hivev1.ClaimAdmitted) {
				return fmt.Errorf("claim %s: %v, %w", c.Name, c.Status.Conditions, err)
			}
		}
		return nil
	})

	h.delete(t, holder)
	h.served(t, bobs)
	h.waits(t, mine)
	h.delete(t, bobs)
	h.served(t, mine)
	h.waits(t, jumps)
}
