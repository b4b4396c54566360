package poolplan

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

func TestAPolicyIsDescribedInOneLine(t *testing.T) {
	rec := &v1alpha1.RecommendedCounts{
		Running: v1alpha1.RecommendedCount{Count: 2, Reason: "Mon 9-10: 3 claims an hour expected"}, Size: v1alpha1.RecommendedCount{Count: 6, Reason: "your minimum is 6"},
	}
	with := func(typ, reason, message string) []metav1.Condition {
		return []metav1.Condition{{Type: typ, Status: metav1.ConditionFalse, Reason: reason, Message: message}}
	}
	for name, tc := range map[string]struct {
		policy *v1alpha1.PoolPolicy
		want   string
	}{
		"none":      {nil, ""},
		"a new one": {&v1alpha1.PoolPolicy{Spec: v1alpha1.PoolPolicySpec{Mode: "Auto"}}, "Auto: nothing was computed yet"},
		"a recommendation": {
			&v1alpha1.PoolPolicy{Spec: v1alpha1.PoolPolicySpec{Mode: "Recommend"}, Status: v1alpha1.PoolPolicyStatus{Recommended: rec, Conditions: with("Applied", "RecommendOnly", "x")}},
			"Recommend: recommends 2 running of 6. Running: Mon 9-10: 3 claims an hour expected. Size: your minimum is 6",
		},
		"one that sets the counts": {
			&v1alpha1.PoolPolicy{Spec: v1alpha1.PoolPolicySpec{Mode: "Auto"}, Status: v1alpha1.PoolPolicyStatus{CountsSetBy: "Policy", Recommended: rec}},
			"Auto: sets 2 running of 6. Running: Mon 9-10: 3 claims an hour expected. Size: your minimum is 6",
		},
		"a change by hand": {
			&v1alpha1.PoolPolicy{Spec: v1alpha1.PoolPolicySpec{Mode: "Auto"}, Status: v1alpha1.PoolPolicyStatus{Recommended: rec, Conditions: with("Applied", "ManualChange", "It was changed.")}},
			"Auto: It was changed.",
		},
		"one that is not valid": {
			&v1alpha1.PoolPolicy{Spec: v1alpha1.PoolPolicySpec{Mode: "Auto"}, Status: v1alpha1.PoolPolicyStatus{Conditions: with("Valid", "InvalidLimits", "spec.size is odd")}},
			"Auto: spec.size is odd",
		},
	} {
		if got := DescribePoolPolicy(tc.policy); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
