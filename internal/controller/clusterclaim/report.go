package clusterclaim

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/claim"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/kstatus"
	"hotspare.io/hotspare/internal/patch"
)

// patchStatus writes the claim's status as the plan has it. The API server refuses the status of a claim with a field
// that has a validation rule and a value of another type than its schema says: an event reports such a field instead.
func (r *Reconciler) patchStatus(ctx context.Context, s *observation, p claim.Plan) error {
	before := s.claim.DeepCopy()
	r.setClaimStatus(s.claim, p)
	wrote, err := patch.Status(ctx, r.Client, before, s.claim)
	if wrote && err == nil {
		r.claims.RecordWrite(s.claim, r.Clock.Now())
	}
	switch {
	case err == nil:
		r.Metrics.RecordClaimWait(before, s.claim, s.cluster, r.Clock.Now())
	case apierrors.IsInvalid(err) && s.Unreadable != "":
		r.Events.Eventf(s.claim, nil, corev1.EventTypeWarning, hivev1.ReasonUnreadable, "Reconcile", "%s", p.Pending.Message)
	}
	return err
}

// setClaimStatus sets the status that the plan has.
func (r *Reconciler) setClaimStatus(c *hivev1.ClusterClaim, p claim.Plan) {
	now := r.Clock.Now()
	condition.Apply(&c.Status.Conditions, hivev1.ClaimPending, p.Pending, now)
	condition.Apply(&c.Status.Conditions, hivev1.ClaimClusterRunning, p.ClusterRunning, now)
	condition.Apply(&c.Status.Conditions, hivev1.ClaimHeartbeatMissing, p.HeartbeatMissing, now)
	if p.Pending.Reason != hivev1.ReasonNoClusters && p.Pending.Status != "" {
		c.Status.Position, c.Status.EstimatedReadyTime = nil, nil
	}
	if p.Pending.Status != "" {
		c.Status.Priority = p.Priority
	}
	if p.Lifetime != nil || p.Pending.Status == corev1.ConditionFalse {
		c.Status.Lifetime = p.Lifetime
	}
	if p.Pending.Status != "" || p.ClusterRunning.Status != "" {
		kstatus.ReportClusterClaim(c, stalledProgress(p), now)
	}
}

// stalledProgress returns the progress of a claim that has an invalid field; the zero value if it has
// none.
func stalledProgress(p claim.Plan) kstatus.Progress {
	if !p.Stalled.IsTrue() {
		return kstatus.Progress{}
	}
	return kstatus.Stalled(p.Stalled.Reason, p.Stalled.Message)
}

// appendPendingMessage appends text to the condition Pending of a claim that has its cluster.
func appendPendingMessage(p *claim.Plan, text string) {
	if p.Pending.Status == corev1.ConditionFalse {
		p.Pending.Message += "; " + text
	}
}
