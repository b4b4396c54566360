package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/condition"
)

// lets allows people to write claims and their status in a namespace.
func (h *hub) lets(t *testing.T, ns string, people ...person) {
	t.Helper()
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "e2e-claims-" + ns},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{hivev1.GroupVersion.Group}, Resources: []string{"clusterclaims", "clusterclaims/status"}, Verbs: []string{rbacv1.VerbAll}}},
	}
	h.create(t, role)
	t.Cleanup(func() { _ = h.Delete(context.Background(), role) }) // the shared hub ends with the run
	for _, p := range people {
		h.allow(t, role.Name, ns, p.name)
		p.may(t, "get", "clusterclaims", "-n", ns)
	}
}

// claim creates a claim as a person.
func (p person) claim(t *testing.T, c *hivev1.ClusterClaim) *hivev1.ClusterClaim {
	t.Helper()
	r := p.run(t, manifest(t, "ClusterClaim", c), "kubectl", "--as", p.name, "create", "-f", "-")
	if r.code != 0 {
		t.Fatalf("%s cannot create claim %s: %s", p.name, c.Name, r.all())
	}
	return c
}

// pends waits until a claim is pending for a reason, and returns the message.
func (h *hub) pends(t *testing.T, c *hivev1.ClusterClaim, reason string) string {
	t.Helper()
	var message string
	eventually(t, fmt.Sprintf("claim %s pends: %s", c.Name, reason), func(ctx context.Context) error {
		if err := h.Get(ctx, client.ObjectKeyFromObject(c), c); err != nil {
			return err
		}
		found := condition.Find(c.Status.Conditions, hivev1.ClaimPending)
		if found == nil || found.Status != corev1.ConditionTrue || found.Reason != reason {
			return fmt.Errorf("condition Pending is %+v", found)
		}
		message = found.Message
		return nil
	})
	return message
}

// claimPolicy permits people to claim from the pool dev, one claim each.
func claimPolicy(ns, name string, people ...person) *v1alpha1.ClaimPolicy {
	one, hour := int32(1), hivev1.Duration("1h")
	p := &v1alpha1.ClaimPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec: v1alpha1.ClaimPolicySpec{
			Pools: []string{"dev"}, MaxClaimsPerUser: &one, Lifetime: &v1alpha1.ClaimPolicyLifetime{Maximum: &hour},
		},
	}
	for _, someone := range people {
		p.Spec.Subjects = append(p.Spec.Subjects, v1alpha1.ClaimSubject{Kind: "User", Name: someone.name})
	}
	return p
}

// recordsCreators waits until claims on the pool get the annotation: an API server learns of the first
// ClaimPolicy a moment later.
func (p person) recordsCreators(t *testing.T, pool *hivev1.ClusterPool) {
	t.Helper()
	eventually(t, "the hub records creators", func(context.Context) error {
		r := p.run(t, manifest(t, "ClusterClaim", claimOn(pool, "probe")), "kubectl", "--as", p.name, "create", "--dry-run=server", "-o", "yaml", "-f", "-")
		if !strings.Contains(r.out, hivev1.AnnotationCreator+": "+p.name) {
			return fmt.Errorf("no creator: %s", r.all())
		}
		return nil
	})
}

func TestClaimPoliciesLimitClaims(t *testing.T) {
	h := shared(t)
	ns := h.namespace(t)
	alice, bob, mallory := person{h, "alice-" + ns}, person{h, "bob-" + ns}, person{h, "mallory-" + ns}
	h.lets(t, ns, alice, bob, mallory)
	pool, later := fakePool(ns, "dev", 3, 3), fakePool(ns, "later", 1, 1)
	policy, other := claimPolicy(ns, "team", alice, bob), claimPolicy(ns, "other", alice)
	other.Spec.Pools = []string{"later"}
	h.create(t, pool, policy, other)
	h.settled(t, pool)
	alice.recordsCreators(t, pool)

	early := alice.claim(t, claimOn(later, "early"))
	says(t, h.pends(t, early, hivev1.ReasonPoolNotFound), "does not exist")
	first := alice.claim(t, claimOn(pool, "first"))
	h.served(t, first)
	if got := first.Annotations[hivev1.AnnotationCreator]; got != alice.name {
		t.Errorf("the creator is %q, want %q", got, alice.name)
	}
	eventually(t, "the policy limits the lifetime", func(ctx context.Context) error {
		if err := h.Get(ctx, client.ObjectKeyFromObject(first), first); err != nil || first.Status.Lifetime == nil || *first.Status.Lifetime != "1h0m0s" {
			return fmt.Errorf("the lifetime is %v, %w", first.Status.Lifetime, err)
		}
		return nil
	})
	second := alice.claim(t, claimOn(pool, "second"))
	says(t, h.pends(t, second, hivev1.ReasonLimitReached),
		"ClaimPolicy team admits at most 1 claim of "+alice.name+" at a time, and has admitted first: this claim of "+alice.name+" waits until one of them is released")
	h.served(t, bob.claim(t, claimOn(pool, "bobs")))
	refusedClaim := mallory.claim(t, claimOn(pool, "mallorys"))
	says(t, h.pends(t, refusedClaim, hivev1.ReasonNotPermitted), "No ClaimPolicy in this namespace permits "+mallory.name)

	t.Log("what becomes possible happens by itself")
	h.delete(t, first)
	h.served(t, second)
	h.create(t, later)
	h.served(t, early)
	h.delete(t, policy)
	h.delete(t, other)
	h.served(t, refusedClaim)
}

// Nobody passes the policies by what they write.
func TestClaimPoliciesCannotBeEvaded(t *testing.T) {
	h := shared(t)
	ns := h.namespace(t)
	alice, bob, mallory := person{h, "alice-" + ns}, person{h, "bob-" + ns}, person{h, "mallory-" + ns}
	h.lets(t, ns, alice, bob, mallory)
	dev, prod := fakePool(ns, "dev", 0, 0), fakePool(ns, "prod", 1, 1)
	dev.Spec.MaxSize = new(int32) // its claims wait
	h.create(t, dev, prod, claimPolicy(ns, "team", alice, bob))
	alice.recordsCreators(t, dev)
	const recorded, admission = "record who created the claim", "only hotspare sets condition Admitted"

	h.pends(t, mallory.claim(t, claimOn(prod, "mallorys")), hivev1.ReasonNotPermitted)
	forged := claimOn(dev, "forged")
	forged.Annotations = map[string]string{hivev1.AnnotationCreator: bob.name}
	refused(t, mallory.run(t, manifest(t, "ClusterClaim", forged), "kubectl", "--as", mallory.name, "create", "-f", "-"), recorded)
	forged.Annotations = map[string]string{hivev1.AnnotationCreator: mallory.name, hivev1.AnnotationCreatorGroups: "system:masters"}
	refused(t, mallory.run(t, manifest(t, "ClusterClaim", forged), "kubectl", "--as", mallory.name, "create", "-f", "-"), recorded)
	refused(t, mallory.kubectl(t, "annotate", "clusterclaim", "mallorys", "-n", ns, hivev1.AnnotationCreator+"="+bob.name, "--overwrite"), recorded)
	refused(t, mallory.kubectl(t, "annotate", "clusterclaim", "mallorys", "-n", ns, hivev1.AnnotationCreator+"-"), recorded)
	admit := `{"status":{"conditions":[{"type":"Admitted","status":"True","reason":"Admitted","message":""}]}}`
	refused(t, mallory.kubectl(t, "patch", "clusterclaim", "mallorys", "-n", ns, "--subresource", "status", "--type", "merge", "-p", admit), admission)
	mallory.may(t, "patch", "clusterclaim", "mallorys", "-n", ns, "--type", "merge", "-p", `{"metadata":{"labels":{"a":"b"}}}`)

	t.Log("a claim is admitted for one pool")
	mine := alice.claim(t, claimOn(dev, "mine"))
	h.pends(t, mine, hivev1.ReasonNoClusters)
	eventually(t, "the claim is admitted", func(ctx context.Context) error {
		if err := h.Get(ctx, client.ObjectKeyFromObject(mine), mine); err != nil || !condition.IsTrue(mine.Status.Conditions, hivev1.ClaimAdmitted) {
			return fmt.Errorf("the conditions are %v, %w", mine.Status.Conditions, err)
		}
		return nil
	})
	refused(t, alice.kubectl(t, "patch", "clusterclaim", "mine", "-n", ns, "--type", "merge", "-p", `{"spec":{"clusterPoolName":"prod"}}`), `has admitted the claim for ClusterPool "dev"`)

	t.Log("an administrator restores a claim with its creator")
	forged.Name, forged.Annotations = "restored", map[string]string{hivev1.AnnotationCreator: bob.name}
	h.create(t, forged)
	h.pends(t, forged, hivev1.ReasonNoClusters)

	t.Log("a lifetime ends claims")
	ending := `{"spec":{"lifetime":{"maximum":"1s"}}}`
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "e2e-claimpolicies-" + ns}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"claimpolicies"}, Verbs: []string{rbacv1.VerbAll},
	}}}
	h.create(t, role)
	t.Cleanup(func() { _ = h.Delete(context.Background(), role) }) // the shared hub ends with the run
	writer := person{h, "writer-" + ns}
	h.allow(t, role.Name, ns, writer.name)
	writer.may(t, "patch", "claimpolicy", "team", "-n", ns, "--type", "merge", "-p", `{"metadata":{"labels":{"a":"b"}}}`)
	refused(t, writer.kubectl(t, "patch", "claimpolicy", "team", "-n", ns, "--type", "merge", "-p", ending), "spec.lifetime ends claims in namespace")
}
