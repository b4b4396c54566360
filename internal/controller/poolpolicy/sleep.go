package poolpolicy

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/patch"
	"hotspare.io/hotspare/internal/pool"
	"hotspare.io/hotspare/internal/sizing"
	"hotspare.io/hotspare/internal/sizing/counts"
	"hotspare.io/hotspare/internal/sizing/ladder"
	"hotspare.io/hotspare/internal/sizing/policy"
)

// parseLadder returns the ladder of depths of a specification; nil if it has none, or if hotspare chooses it.
func parseLadder(spec v1alpha1.PoolPolicySpec) (pool.Ladder, []policy.FieldError) {
	if spec.Sleep == nil {
		return nil, nil
	}
	switch mode := spec.Sleep.Mode; {
	case mode != "" && mode != v1alpha1.SleepAuto:
		return nil, []policy.FieldError{{Reason: v1alpha1.ReasonInvalidSleep, Field: "sleep.mode", Problem: fmt.Sprintf("%q is not a mode: use Auto, or set sleep.ladder", mode)}}
	case (mode != "") == (len(spec.Sleep.Ladder) > 0):
		return nil, []policy.FieldError{{Reason: v1alpha1.ReasonInvalidSleep, Field: "sleep", Problem: "needs either mode: Auto or a ladder: keep one of them"}}
	}
	var l pool.Ladder
	for _, r := range spec.Sleep.Ladder {
		rung := pool.Rung{Depth: r.Depth}
		if r.Count != nil {
			n := max(int(*r.Count), 0)
			rung.Count = &n
		}
		l = append(l, rung)
	}
	if err := l.Validate(); err != nil {
		return nil, []policy.FieldError{{Reason: v1alpha1.ReasonInvalidSleep, Field: "sleep.ladder", Problem: "cannot be used: " + err.Error()}}
	}
	return l, nil
}

// applyLadder writes a ladder into its pool if the policy is in mode Auto. The reason may be empty. A policy without a
// ladder leaves the pool's own alone. It returns why the API server refuses the ladder; empty if it does not.
func (r *Reconciler) applyLadder(ctx context.Context, p *v1alpha1.PoolPolicy, s *observation, text, reason string) (refusal string, err error) {
	if !s.policy.Auto || text == "" || s.pool.Annotations[hivev1.AnnotationSleepLadder] == text {
		return "", nil
	}
	after := s.pool.DeepCopy()
	metav1.SetMetaDataAnnotation(&after.ObjectMeta, hivev1.AnnotationSleepLadder, text)
	_, err = patch.Object(ctx, client.WithFieldOwner(r.Client, FieldManager), s.pool, after)
	if isRefusal(err) {
		return fmt.Sprintf("The API server refuses to set annotation %s to %s: %s", hivev1.AnnotationSleepLadder, text, fault.OneLine(err)), nil
	}
	if err != nil {
		return "", fmt.Errorf("setting the ladder of depths of pool %s: %w", client.ObjectKeyFromObject(s.pool), err)
	}
	change := text
	if reason != "" {
		change += ": " + reason
	}
	r.Events.Eventf(after, p, corev1.EventTypeNormal, "SleepLadder", "SetSleepLadder", "PoolPolicy %s: spare clusters sleep at the depths %s", p.Name, change)
	ctrl.LoggerFrom(ctx).Info("set the ladder of depths of a pool", "change", change)
	s.pool = after
	return "", nil
}

// decideLadder returns the ladder that hotspare chooses; nil if spec.sleep does not have mode Auto.
func decideLadder(spec v1alpha1.PoolPolicySpec, s *observation, plan counts.Plan) *ladder.Plan {
	if spec.Sleep == nil || spec.Sleep.Mode != v1alpha1.SleepAuto {
		return nil
	}
	in := s.snapshot.Sizing
	standby := max(plan.Recommended.Size.Count-in.Limits.Running.Min, 0)
	worth, known := sizing.SleepWorth(in, standby)
	out := ladder.Decide(ladder.Snapshot{
		Standby: standby, Prices: in.Limits.Prices, Durations: in.Durations, Worth: worth, Known: known, Sleeping: in.Sleeping,
		Refused: s.record.tracker.RecentlyRefused(in.Now), Current: currentLadder(s.pool, standby),
	})
	return &out
}

// currentLadder returns the counts of the ladder of a pool; nil if it has none. A depth without a limit has room for all.
func currentLadder(p *hivev1.ClusterPool, standby int) *ladder.Counts {
	rungs, err := pool.ParseLadder(p.Annotations[hivev1.AnnotationSleepLadder])
	if err != nil || len(rungs) == 0 {
		return nil
	}
	var out ladder.Counts
	for _, rung := range rungs {
		n := out.Of(cloud.Depth(rung.Depth))
		switch {
		case n == nil:
		case rung.Count == nil:
			*n = standby
		default:
			*n = *rung.Count
		}
	}
	return &out
}
