package poolplan

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// DescribePoolPolicy returns in one line who sets the counts of a pool, what its policy recommends, and why. It
// is empty without a policy.
func DescribePoolPolicy(p *v1alpha1.PoolPolicy) string {
	if p == nil {
		return ""
	}
	for _, typ := range []string{v1alpha1.PolicyValid, v1alpha1.PolicyApplied} {
		c := meta.FindStatusCondition(p.Status.Conditions, typ)
		if c != nil && c.Status == metav1.ConditionFalse && c.Reason != v1alpha1.ReasonRecommendOnly {
			return fmt.Sprintf("%s: %s", p.Spec.Mode, c.Message)
		}
	}
	rec := p.Status.Recommended
	if rec == nil {
		return fmt.Sprintf("%s: nothing was computed yet", p.Spec.Mode)
	}
	verb := "recommends"
	if p.Status.CountsSetBy == v1alpha1.CountsSetByPolicy {
		verb = "sets"
	}
	return fmt.Sprintf("%s: %s %d running of %d. Running: %s. Size: %s", p.Spec.Mode, verb, rec.Running.Count, rec.Size.Count, rec.Running.Reason, rec.Size.Reason)
}
