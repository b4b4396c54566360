package poolpolicy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/patch"
	"hotspare.io/hotspare/internal/sizing/counts"
)

// refusals are why the API server refuses what a pass writes to the pool; empty if it does not.
type refusals struct{ counts, ladder string }

// String returns the sentences; each begins with a capital letter.
func (r refusals) String() string {
	return strings.Join(slices.DeleteFunc([]string{r.counts, r.ladder}, func(text string) bool { return text == "" }), " ")
}

// isRefusal reports whether the API server will not accept a write as long as nobody changes its rules.
func isRefusal(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err)
}

// act carries out a plan. It returns why the API server refuses the counts; empty if it does not.
func (r *Reconciler) act(ctx context.Context, p *v1alpha1.PoolPolicy, s *observation, plan counts.Plan) (refusal string, err error) {
	if plan.Apply != nil {
		err := r.setCounts(ctx, p, s, plan)
		if isRefusal(err) {
			return fmt.Sprintf("The API server refuses to set spec.runningCount to %d and spec.size to %d: %s",
				plan.Apply.Running, plan.Apply.Size, fault.OneLine(err)), nil
		}
		if err != nil {
			return "", fmt.Errorf("setting the counts of pool %s: %w", client.ObjectKeyFromObject(s.pool), err)
		}
	}
	if plan.EndResume {
		return "", r.endResume(ctx, p)
	}
	return "", nil
}

// setCounts writes the counts of a pool, and what is recorded about them, in one patch.
func (r *Reconciler) setCounts(ctx context.Context, p *v1alpha1.PoolPolicy, s *observation, plan counts.Plan) error {
	after := s.pool.DeepCopy()
	after.Spec.RunningCount, after.Spec.Size = int32(plan.Apply.Running), int32(plan.Apply.Size)
	if after.Annotations == nil {
		after.Annotations = map[string]string{}
	}
	after.Annotations[v1alpha1.AnnotationSizing] = plan.Apply.String()
	if _, err := patch.Object(ctx, client.WithFieldOwner(r.Client, FieldManager), s.pool, after); err != nil {
		return err
	}
	for _, change := range plan.Describe(poolSetting(s.pool)) {
		r.Events.Eventf(after, p, corev1.EventTypeNormal, "Sized", "SetCounts", "PoolPolicy %s: set %s", p.Name, change)
		r.Events.Eventf(p, after, corev1.EventTypeNormal, "Sized", "SetCounts", "set %s", change)
		ctrl.LoggerFrom(ctx).Info("set a count of a pool", "change", change)
	}
	s.pool = after
	return nil
}

// endResume removes the annotation by which a person has ended a change by hand.
func (r *Reconciler) endResume(ctx context.Context, p *v1alpha1.PoolPolicy) error {
	before := p.DeepCopy()
	delete(p.Annotations, v1alpha1.AnnotationResumeSizing)
	if _, err := patch.Object(ctx, r.Client, before, p); err != nil {
		return fmt.Errorf("removing annotation %s: %w", v1alpha1.AnnotationResumeSizing, err)
	}
	return nil
}
