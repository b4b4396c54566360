package facts

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/claimpolicy"
	"hotspare.io/hotspare/internal/inventory"
)

func TestThePriorityInEffect(t *testing.T) {
	five := int32(5)
	policies := []claimpolicy.Policy{{Namespace: "n", Name: "team", Spec: v1alpha1.ClaimPolicySpec{
		Subjects: []v1alpha1.ClaimSubject{{Kind: "User", Name: "alice"}}, MaxPriority: &five,
	}}}
	for name, c := range map[string]struct {
		annotation string
		status     *int32
		policies   []claimpolicy.Policy
		unknown    bool
		want       int
	}{
		"none":                               {},
		"the claim's own":                    {annotation: "10", want: 10},
		"one that is not valid":              {annotation: "high"},
		"a policy limits it":                 {annotation: "10", policies: policies, want: 5},
		"a status has no effect on the pool": {annotation: "10", status: &five, want: 10},
		"a status says what the policies are, if need be": {annotation: "10", status: &five, unknown: true, want: 5},
		"a status raises nothing":                         {annotation: "1", status: &five, unknown: true, want: 1},
	} {
		o := objects(nil)
		claim := &hivev1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "x", Annotations: map[string]string{
			hivev1.AnnotationCreator: "alice", hivev1.AnnotationPriority: c.annotation,
		}}}
		claim.Status.Priority = c.status
		o.Claims["x"], o.Policies, o.PoliciesUnknown = claim, c.policies, c.unknown
		s, err := o.PoolSnapshot(inventory.Plan{}, noon)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Claims[0].Priority; got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
