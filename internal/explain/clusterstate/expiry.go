package clusterstate

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
)

// DescribeExpiry returns how long a claim's lifetime still lasts, in words: "in 3h", "now" or
// "never"; empty while the claim has no cluster.
func DescribeExpiry(c *hivev1.ClusterClaim, now time.Time) string {
	pending := condition.Find(c.Status.Conditions, hivev1.ClaimPending)
	if pending == nil || pending.Status != corev1.ConditionFalse {
		return ""
	}
	switch at := ClaimExpiryTime(c); {
	case at.IsZero():
		return "never"
	case !at.After(now):
		return "now"
	default:
		return "in " + duration.HumanDuration(at.Sub(now))
	}
}

// ClaimExpiryTime returns when a claim's lifetime ends; zero if the claim has no cluster or its
// lifetime has no end. The lifetime begins when the claim gets its cluster, which is when
// the claim ceases to be pending.
func ClaimExpiryTime(c *hivev1.ClusterClaim) time.Time {
	pending := condition.Find(c.Status.Conditions, hivev1.ClaimPending)
	if pending == nil || pending.Status != corev1.ConditionFalse || c.Status.Lifetime == nil {
		return time.Time{}
	}
	lifetime, err := c.Status.Lifetime.Parse()
	if err != nil || lifetime == 0 {
		return time.Time{}
	}
	return pending.LastTransitionTime.Add(lifetime)
}
