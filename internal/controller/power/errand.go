package power

import (
	"context"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/power"
)

// applyResumeProbe sends the decision's errand, or takes the one that is done away. If the
// cluster refuses, that is one more thing that has been seen of it, and what comes
// back is decided anew.
func (r *Reconciler) applyResumeProbe(ctx context.Context, cd *hivev1.ClusterDeployment, s power.Snapshot, d power.Plan) (power.Plan, error) {
	if d.Dismiss {
		return d, r.Remote.DeleteResumeProbe(ctx, kubeconfigSecret(cd))
	}
	if d.Errand == "" {
		return d, nil
	}
	sent, refused, err := r.Remote.CreateResumeProbe(ctx, kubeconfigSecret(cd), d.Errand)
	switch {
	case err != nil:
		return d, err
	case sent:
		return d.AfterProbeCreated(), nil
	case refused == "":
		return d, nil
	}
	s.Spoke.Errand = power.ResumeProbe{Refused: refused}
	return power.Decide(s, r.Clock.Now()), nil
}
