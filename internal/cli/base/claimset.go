package base

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// DescribeClaimSet describes what a set waits for, or that its clusters can be used.
func DescribeClaimSet(set *v1alpha1.ClaimSet) string {
	pending := meta.FindStatusCondition(set.Status.Conditions, v1alpha1.ClaimSetPending)
	running := meta.FindStatusCondition(set.Status.Conditions, v1alpha1.ClaimSetClustersRunning)
	switch {
	case set.Unreadable != "":
		return "cannot be read: " + set.Unreadable
	case pending == nil:
		return "waiting for hotspare"
	case pending.Status == metav1.ConditionTrue && set.Status.Position != nil:
		return fmt.Sprintf("number %d in the queue: %s", *set.Status.Position, pending.Message)
	case pending.Status == metav1.ConditionTrue || running == nil:
		return pending.Message
	default:
		return running.Message
	}
}
