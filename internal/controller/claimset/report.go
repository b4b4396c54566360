package claimset

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/claimset"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/kstatus"
	"hotspare.io/hotspare/internal/patch"
)

// reportStatus writes the status of the set, if it changed.
func (r *Reconciler) reportStatus(ctx context.Context, s *observation, p claimset.Plan) error {
	before, now := s.set.DeepCopy(), r.Clock.Now()
	st := &s.set.Status
	st.ObservedGeneration, st.ClusterPoolName = s.set.Generation, p.Pool
	st.Claims, st.Assigned, st.Running = listClaims(s.Claims)
	st.Position, st.EstimatedReadyTime = nil, nil
	if p.Position > 0 {
		st.Position = new(int32(p.Position)) //nolint:gosec // a number of claims
		if !p.Ready.IsZero() {
			st.EstimatedReadyTime = &metav1.Time{Time: p.Ready}
		}
	}
	if p.Served && st.ServedTime == nil {
		st.ServedTime = &metav1.Time{Time: now.Truncate(time.Second)}
	}
	setCondition(s.set, v1alpha1.ClaimSetPending, p.Pending, now)
	setCondition(s.set, v1alpha1.ClaimSetClustersRunning, p.ClustersRunning, now)
	setCondition(s.set, v1alpha1.ClaimSetHeartbeatMissing, p.HeartbeatMissing, now)
	kstatus.ReportClaimSet(s.set, p.Stalled, invalidProgress(p), now)
	if _, err := patch.Status(ctx, r.Client, before, s.set); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reporting on ClaimSet %s: %w", s.set.Name, err)
	}
	if p.Served && before.Status.ServedTime == nil {
		r.recordEvent(s.set, v1alpha1.ReasonSetServed, "Assign", "all %d claims have clusters of ClusterPool %s", len(s.Claims), p.Pool)
	}
	return nil
}

// invalidProgress returns the progress of a set with an invalid annotation; the zero value if it has none.
func invalidProgress(p claimset.Plan) kstatus.Progress {
	if !p.InvalidHeartbeat.IsTrue() {
		return kstatus.Progress{}
	}
	return kstatus.Stalled(p.InvalidHeartbeat.Reason, p.InvalidHeartbeat.Message)
}

// listClaims returns the claims in the form of the status, and how many have clusters, and running ones.
func listClaims(claims []claimset.Claim) (list []v1alpha1.ClaimSetClaim, assigned, running int32) {
	for _, c := range claims {
		list = append(list, v1alpha1.ClaimSetClaim{Name: c.Name, Cluster: c.Cluster})
		if c.Cluster != "" && !c.Deleting {
			assigned++
			if c.Running {
				running++
			}
		}
	}
	return list, assigned, running
}

// setCondition sets a condition of the set; the zero value leaves it as it is.
func setCondition(set *v1alpha1.ClaimSet, typ string, v condition.Value, now time.Time) {
	if v == (condition.Value{}) {
		return
	}
	meta.SetStatusCondition(&set.Status.Conditions, metav1.Condition{
		Type: typ, Status: metav1.ConditionStatus(v.Status), Reason: v.Reason, Message: v.Message,
		ObservedGeneration: set.Generation, LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
	})
}
