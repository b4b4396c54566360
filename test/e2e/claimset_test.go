package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

func claimSet(ns, name string, size int32, pool string) *v1alpha1.ClaimSet {
	return &v1alpha1.ClaimSet{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: v1alpha1.ClaimSetSpec{Size: size, ClusterPoolName: pool}}
}

// setIs waits until the condition Pending of a set has a reason, and returns the message.
func (h *hub) setIs(t *testing.T, set *v1alpha1.ClaimSet, reason string) string {
	t.Helper()
	var message string
	eventually(t, fmt.Sprintf("condition Pending of ClaimSet %s has reason %s", set.Name, reason), func(ctx context.Context) error {
		if err := h.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		found := meta.FindStatusCondition(set.Status.Conditions, v1alpha1.ClaimSetPending)
		if found == nil || found.Reason != reason {
			return fmt.Errorf("condition Pending is %+v", found)
		}
		message = found.Message
		return nil
	})
	return message
}

// countServed returns the number of claims of a set that have clusters.
func (h *hub) countServed(t *testing.T, set *v1alpha1.ClaimSet) int {
	t.Helper()
	var claims hivev1.ClusterClaimList
	if err := h.List(t.Context(), &claims, client.InNamespace(set.Namespace)); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, c := range claims.Items {
		if strings.HasPrefix(c.Name, set.Name+"-") && c.Spec.Namespace != "" {
			n++
		}
	}
	return n
}

// Two sets want the same clusters of a pool, and are served one after the other. A set that is too large blocks nobody. A
// set takes another pool if the preferred one is short.
func TestClaimSetsGetTheirClustersTogether(t *testing.T) {
	h := shared(t)
	ns := h.namespace(t)
	pool := fakePool(ns, "dev", 2, 2)
	pool.Spec.MaxSize = new(int32(2))
	h.create(t, pool)
	h.settled(t, pool)

	refused(t, h.run(t, "", "claim", "create", "dev", "-n", ns, "--count", "2"), "--count needs --all-or-none or --pool-selector")
	refused(t, h.run(t, "", "claim", "create", "dev", "-n", ns, "--count", "101", "--all-or-none"), "--count must be from 1 to 100")
	refused(t, h.run(t, "", "claim", "create", "-n", ns, "--pool-selector", "!!"), `--pool-selector "!!" is not a label selector`)
	r := h.run(t, "", "claim", "create", "dev", "-n", ns, "--count", "2", "--all-or-none", "--name", "first", "--wait")
	if r.code != 0 {
		t.Fatal(r.all())
	}
	says(t, r.out, "ClaimSet first has 2 clusters of pool dev", "first-0", "first-1")

	t.Log("a second set waits, whole, and a claim behind it waits with it")
	second, big := claimSet(ns, "second", 2, "dev"), claimSet(ns, "big", 3, "dev")
	behind := claimOn(pool, "third") // its name is after that of the set: both may be created in the same second
	h.create(t, second)
	h.setIs(t, second, v1alpha1.ReasonSetWaiting)
	h.create(t, big)
	says(t, h.setIs(t, big, v1alpha1.ReasonSetTooLarge), "The set needs 3 clusters at once, and ClusterPool dev has at most 2: its maxSize is 2")
	eventually(t, "the claims of the set exist", func(ctx context.Context) error {
		return h.Get(ctx, client.ObjectKey{Namespace: ns, Name: "second-1"}, &hivev1.ClusterClaim{})
	})
	h.create(t, behind)
	h.pends(t, behind, hivev1.ReasonNoClusters)
	says(t, h.run(t, "", "claimset", "list", "-n", ns).out, "first", "2 of 2", "second", "0 of 2", "big")
	says(t, h.run(t, "", "explain", "claimset", "second", "-n", ns).out, "it needs 2 clusters at once, and is the first in the queue", "maxSize")
	says(t, h.run(t, "", "explain", "claimset", "big", "-n", ns).out, "at most 2")
	says(t, h.run(t, "", "explain", "claim", "second-0", "-n", ns).out, "it is served together with ClaimSet second")

	t.Log("one cluster becomes free: it is kept for the set, and the claim behind it does not get it")
	h.delete(t, claimOn(pool, "first-0"))
	eventually(t, "the pool keeps a cluster for the set", func(ctx context.Context) error {
		if err := h.Get(ctx, client.ObjectKeyFromObject(pool), pool); err != nil {
			return err
		}
		if !strings.Contains(pool.Status.Plan, "keeping 1 for ClaimSet second, which needs 2 at once") {
			return fmt.Errorf("its plan is %q", pool.Status.Plan)
		}
		return nil
	})
	h.waits(t, behind)
	if n := h.countServed(t, second); n != 0 {
		t.Errorf("%d claims of the second set have clusters", n)
	}
	says(t, h.run(t, "", "explain", "claimset", "second", "-n", ns).out, "running clusters kept for it: 1")

	t.Log("the rest becomes free: the set is served, and then the claim")
	if r = h.run(t, "", "claimset", "release", "first", "-n", ns, "--wait"); r.code != 0 {
		t.Fatal(r.all())
	}
	h.setIs(t, second, v1alpha1.ReasonSetServed)
	if n := h.countServed(t, second); n != 2 {
		t.Errorf("%d claims of the second set have clusters", n)
	}
	h.waits(t, behind)
	h.delete(t, claimOn(pool, "second-1"))
	h.served(t, behind)
	if n := h.countServed(t, second); n != 1 {
		t.Errorf("a claim that was released is replaced: %d have clusters", n)
	}

	t.Log("a set with preferences takes the pool that can serve it")
	h.run(t, "", "kubectl", "label", "clusterpool", "dev", "-n", ns, "size=large")
	other := fakePool(ns, "other", 2, 2)
	other.Labels = map[string]string{"size": "small"}
	h.create(t, other)
	h.settled(t, other)
	r = h.run(t, "", "claim", "create", "-n", ns, "--count", "2", "--pool-selector", "size=large", "--pool-selector", "size=small", "--name", "any", "--wait")
	if r.code != 0 {
		t.Fatal(r.all())
	}
	says(t, r.out, "ClaimSet any has 2 clusters of pool other")
}

// Users make no claim part of a set, and create sets only if they may create claims. A ClaimPolicy counts the claims of a set
// as those of its creator.
func TestClaimSetsGiveNobodyMoreThanClaims(t *testing.T) {
	h := shared(t)
	ns := h.namespace(t)
	alice, eve := person{h, "alice-" + ns}, person{h, "eve-" + ns}
	h.lets(t, ns, alice)
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "e2e-sets-" + ns},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"claimsets"}, Verbs: []string{rbacv1.VerbAll}}},
	}
	h.create(t, role)
	t.Cleanup(func() { _ = h.Delete(context.Background(), role) }) // the shared hub ends with the run
	for _, p := range []person{alice, eve} {
		h.allow(t, role.Name, ns, p.name)
		p.may(t, "get", "claimsets", "-n", ns)
	}
	pool, policy := fakePool(ns, "dev", 3, 3), claimPolicy(ns, "team", alice)
	policy.Spec.MaxClaimsPerUser = new(int32(2))
	h.create(t, pool, policy)
	h.settled(t, pool)
	alice.recordsCreators(t, pool)

	makes := func(p person, set *v1alpha1.ClaimSet) result {
		text := strings.Replace(manifest(t, "ClaimSet", set), hivev1.GroupVersion.String(), v1alpha1.GroupVersion.String(), 1)
		return p.run(t, text, "kubectl", "--as", p.name, "create", "--validate=false", "-f", "-")
	}
	refused(t, makes(eve, claimSet(ns, "eves", 1, "dev")), "ask somebody who may create them there")
	mine := claimSet(ns, "mine", 2, "dev")
	if r := makes(alice, mine); r.code != 0 {
		t.Fatal(r.all())
	}
	h.setIs(t, mine, v1alpha1.ReasonSetServed)
	if got := mine.Annotations[hivev1.AnnotationCreator]; got != alice.name {
		t.Errorf("the creator is %q", got)
	}
	second, large := claimSet(ns, "second", 1, "dev"), claimSet(ns, "large", 3, "dev")
	for _, set := range []*v1alpha1.ClaimSet{second, large} {
		if r := makes(alice, set); r.code != 0 {
			t.Fatal(r.all())
		}
	}
	says(t, h.setIs(t, second, hivev1.ReasonLimitReached), "ClaimPolicy team admits at most 2 claims of "+alice.name)
	says(t, h.setIs(t, large, hivev1.ReasonLimitTooLow), "ClaimSet large needs 3 at once")

	forged := claimOn(pool, "second-9")
	forged.OwnerReferences = []metav1.OwnerReference{{APIVersion: "hotspare.io/v1alpha1", Kind: "ClaimSet", Name: "second", UID: second.UID}}
	r := alice.run(t, manifest(t, "ClusterClaim", forged), "kubectl", "--as", alice.name, "create", "--validate=false", "-f", "-")
	refused(t, r, "only hotspare makes a ClusterClaim part of a ClaimSet")
	refused(t, alice.run(t, "", "kubectl", "--as", alice.name, "annotate", "claimset", "second", "-n", ns, "--overwrite", hivev1.AnnotationCreator+"=bob"), "cannot be set or changed")
	refused(t, alice.run(t, "", "kubectl", "--as", alice.name, "patch", "claimset", "second", "-n", ns, "--type", "merge", "-p", `{"spec":{"size":2}}`), "size cannot be changed")
	h.delete(t, mine)
	h.setIs(t, second, v1alpha1.ReasonSetServed)
}
