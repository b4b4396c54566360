package facts

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/claimpolicy"
	"hotspare.io/hotspare/internal/claimset"
	"hotspare.io/hotspare/internal/inventory"
	"hotspare.io/hotspare/internal/pool"
)

// Creator and priority of a claim of a set are those of the set, whatever is written into the claim.
func TestTheSetOfAClaim(t *testing.T) {
	created := metav1.NewTime(noon.Add(-time.Hour))
	original := v1alpha1.ClaimSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "n", Name: "s", UID: "u", CreationTimestamp: created, Annotations: map[string]string{hivev1.AnnotationCreator: "alice"},
		},
		Spec: v1alpha1.ClaimSetSpec{Size: 2, Priority: 10},
	}
	five := int32(5)
	policies := []claimpolicy.Policy{{Namespace: "n", Name: "team", Spec: v1alpha1.ClaimPolicySpec{
		Subjects: []v1alpha1.ClaimSubject{{Kind: "User", Name: "alice"}}, MaxPriority: &five,
	}}}
	want := pool.ClaimSet{Name: "s", Created: created.Time, Size: 2}
	for name, tc := range map[string]struct {
		claim    string
		change   func(o *Objects, set *v1alpha1.ClaimSet, c *hivev1.ClusterClaim)
		set      pool.ClaimSet
		held     bool
		priority int
	}{
		"a claim of the set":          {"s-1", nil, want, false, 10},
		"a claim beyond its size":     {"s-2", nil, pool.ClaimSet{}, true, 100},
		"a claim of another set":      {"s-1", func(_ *Objects, _ *v1alpha1.ClaimSet, c *hivev1.ClusterClaim) { c.OwnerReferences[0].UID = "v" }, pool.ClaimSet{}, true, 100},
		"a claim without a set":       {"s-1", func(_ *Objects, _ *v1alpha1.ClaimSet, c *hivev1.ClusterClaim) { c.OwnerReferences = nil }, pool.ClaimSet{}, false, 100},
		"a set that is being deleted": {"s-1", func(_ *Objects, set *v1alpha1.ClaimSet, _ *hivev1.ClusterClaim) { set.DeletionTimestamp = &created }, want, true, 10},
		"sets that are not known":     {"s-1", func(o *Objects, _ *v1alpha1.ClaimSet, _ *hivev1.ClusterClaim) { o.SetsUnknown = true }, pool.ClaimSet{}, false, 100},
		"a policy limits it":          {"s-1", func(o *Objects, _ *v1alpha1.ClaimSet, _ *hivev1.ClusterClaim) { o.Policies = policies }, want, true, 5},
		"also if the set's creator is nobody": {"s-1", func(o *Objects, set *v1alpha1.ClaimSet, _ *hivev1.ClusterClaim) {
			o.Policies, set.Annotations = policies, nil
		}, want, true, 0},
	} {
		o, set := objects(nil), *original.DeepCopy()
		c := &hivev1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{
			Namespace: "n", Name: tc.claim, OwnerReferences: []metav1.OwnerReference{claimset.NewOwnerReference(&set)},
			Annotations: map[string]string{hivev1.AnnotationCreator: "bob", hivev1.AnnotationPriority: "100"},
		}}
		if tc.change != nil {
			tc.change(&o, &set, c)
		}
		o.Claims[c.Name], o.Sets = c, claimset.ByUID([]v1alpha1.ClaimSet{set})
		s, err := o.PoolSnapshot(inventory.Plan{}, noon)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Claims[0]; got.Set != tc.set || got.Held != tc.held || got.Priority != tc.priority {
			t.Errorf("%s: set %+v, held %t, priority %d", name, got.Set, got.Held, got.Priority)
		}
	}
}
