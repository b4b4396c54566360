package base

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/provision"
)

// FindNextAttempt returns when the next attempt to install a cluster starts, after an attempt that has
// failed; zero if none has failed, or if no other one follows.
func (h *Hub) FindNextAttempt(ctx context.Context, cd *hivev1.ClusterDeployment) (time.Time, error) {
	conditions := cd.Status.Conditions
	if cd.Spec.Installed || cd.DeletionTimestamp != nil || !condition.IsTrue(conditions, hivev1.ClusterProvisionFailed) ||
		condition.IsTrue(conditions, hivev1.ClusterProvisionStopped) {
		return time.Time{}, nil
	}
	var attempts hivev1.ClusterProvisionList
	if err := h.List(ctx, &attempts, client.InNamespace(cd.Namespace)); err != nil {
		return time.Time{}, fmt.Errorf("listing the installs of cluster %s: %w", cd.Name, err)
	}
	var last *hivev1.ClusterProvision
	for i := range attempts.Items {
		cp := &attempts.Items[i]
		if cp.Spec.ClusterDeploymentRef.Name == cd.Name && (last == nil || cp.Spec.Attempt > last.Spec.Attempt) {
			last = cp
		}
	}
	if last == nil || last.Spec.Stage != hivev1.StageFailed {
		return time.Time{}, nil
	}
	failedAt := last.CreationTimestamp.Time // of an attempt that was marked as failed manually
	if c := condition.Find(last.Status.Conditions, hivev1.ProvisionFailed); c != nil {
		failedAt = c.LastTransitionTime.Time
	}
	return provision.NextAttemptTime(last.Spec.Attempt, failedAt), nil
}

// DescribeNextAttempt returns when the next attempt of an install starts; "" if at is zero.
func DescribeNextAttempt(at, now time.Time) string {
	switch {
	case at.IsZero():
		return ""
	case at.After(now):
		return "in " + duration.HumanDuration(at.Sub(now))
	}
	return "as soon as the last one is cleaned up and all requirements are met"
}
