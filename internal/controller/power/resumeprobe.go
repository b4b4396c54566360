package power

import (
	"context"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/power"
)

// applyResumeProbe creates the plan's resume probe, or deletes the one that is done. If the
// cluster refuses the probe, that refusal becomes part of the snapshot, and applyResumeProbe
// returns a new plan for it, which may complete the resume.
func (r *Reconciler) applyResumeProbe(ctx context.Context, cd *hivev1.ClusterDeployment, s power.Snapshot, d power.Plan) (power.Plan, error) {
	if d.DeleteProbe {
		return d, r.Remote.DeleteResumeProbe(ctx, kubeconfigSecret(cd))
	}
	if d.CreateProbe == "" {
		return d, nil
	}
	sent, refused, err := r.Remote.CreateResumeProbe(ctx, kubeconfigSecret(cd), d.CreateProbe)
	switch {
	case err != nil:
		return d, err
	case sent:
		return d.AfterProbeCreated(), nil
	case refused == "":
		return d, nil
	}
	s.Spoke.ResumeProbe = power.ResumeProbe{Refused: refused}
	return r.completeResume(ctx, cd, s, power.Decide(s, r.Clock.Now())), nil
}
