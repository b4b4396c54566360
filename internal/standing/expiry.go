package standing

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
)

// Expiry is in how long a claim's lifetime ends: "in 3h", "now" or "never"; empty while it
// has no cluster. It counts from when the claim
// got its cluster, which is when it ceased to be pending.
func Expiry(c *hivev1.ClusterClaim, now time.Time) string {
	pending := condition.Find(c.Status.Conditions, hivev1.ClaimPending)
	if pending == nil || pending.Status != corev1.ConditionFalse {
		return ""
	}
	if c.Status.Lifetime == nil {
		return "never"
	}
	lifetime, err := c.Status.Lifetime.Parse()
	if err != nil || lifetime == 0 {
		return "never"
	}
	left := pending.LastTransitionTime.Add(lifetime).Sub(now)
	if left <= 0 {
		return "now"
	}
	return "in " + duration.HumanDuration(left)
}
