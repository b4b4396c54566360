package power

import (
	"context"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/power"
)

// errand sends the decision's errand, or takes the one that is done away. If the
// cluster refuses, that is one more thing that has been seen of it, and what comes
// back is decided anew.
func (r *Reconciler) errand(ctx context.Context, cd *hivev1.ClusterDeployment, s power.Seen, d power.Decision) (power.Decision, error) {
	if d.Dismiss {
		return d, r.Remote.Dismiss(ctx, kubeconfig(cd))
	}
	if d.Errand == "" {
		return d, nil
	}
	sent, refused, err := r.Remote.Send(ctx, kubeconfig(cd), d.Errand)
	switch {
	case err != nil:
		return d, err
	case sent:
		return d.Sent(), nil
	case refused == "":
		return d, nil
	}
	s.Spoke.Errand = power.Errand{Refused: refused}
	return power.Next(s, r.Clock.Now()), nil
}
