package serviceinstance

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fleet/instance"
	"hotspare.io/hotspare/internal/kstatus"
	"hotspare.io/hotspare/internal/patch"
)

// applyPlan executes the plan with one write, at the observed resource version of the instance.
func (r *Reconciler) applyPlan(ctx context.Context, before *v1alpha1.ServiceInstance, p instance.Plan) error {
	after := before.DeepCopy()
	if p.Finalizer != "" {
		if p.Finalizer == instance.AddFinalizer {
			controllerutil.AddFinalizer(after, v1alpha1.FinalizerServiceInstance)
		} else {
			controllerutil.RemoveFinalizer(after, v1alpha1.FinalizerServiceInstance)
		}
		if _, err := patch.Object(ctx, r.Client, before, after); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("step %q: %w", p.Finalizer, err)
		}
		return nil
	}
	after.Status = p.Status
	kstatus.ReportServiceInstance(after, &after.Status, r.Clock.Now())
	wrote, err := patch.Status(ctx, r.Client, before, after)
	if err != nil {
		return fmt.Errorf("writing the status of ServiceInstance %s: %w", client.ObjectKeyFromObject(before), err)
	}
	switch {
	case !wrote:
	case before.Status.Phase != after.Status.Phase:
		r.recordPhaseEvent(after)
	case isNotApplied(after) && !isNotApplied(before):
		why := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.InstanceIsReady)
		r.Events.Eventf(after, nil, corev1.EventTypeWarning, why.Reason, "Follow", "%s", instance.TruncateText(why.Message, maxEventNote))
	}
	return nil
}

// isNotApplied reports whether the data plane's API refuses an object of the instance. This need
// not change the phase: the instance may be Ready as before, or its agent may retry.
func isNotApplied(i *v1alpha1.ServiceInstance) bool {
	c := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.InstanceIsReady)
	return c != nil && c.Reason == v1alpha1.ReasonNotApplied
}

// recordPhaseEvent records an event for the instance's new phase.
func (r *Reconciler) recordPhaseEvent(i *v1alpha1.ServiceInstance) {
	why := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.InstanceIsReady)
	kind := corev1.EventTypeNormal
	switch {
	case i.Status.Phase == v1alpha1.InstanceFailed, isNotApplied(i):
		kind = corev1.EventTypeWarning
	case i.Status.Phase == v1alpha1.InstancePending:
		kind, why = corev1.EventTypeWarning, meta.FindStatusCondition(i.Status.Conditions, v1alpha1.InstancePlaced)
	}
	if why == nil {
		why = &metav1.Condition{Reason: string(i.Status.Phase)}
	}
	r.Events.Eventf(i, nil, kind, why.Reason, "Follow", "%s: %s", i.Status.Phase, instance.TruncateText(why.Message, maxEventNote))
}

// maxEventNote keeps an event's note within the 1,024 bytes that the API server accepts.
const maxEventNote = 900
