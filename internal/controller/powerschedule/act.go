package powerschedule

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/patch"
	"hotspare.io/hotspare/internal/power/schedule"
)

// applySteps sets the power state of the clusters in steps. One failure does not stop the others.
// The schedule's status reports which cluster failed and why, and the step is retried until the
// next slot.
func (r *Reconciler) applySteps(ctx context.Context, ps *v1alpha1.PowerSchedule, s *snapshot, steps []schedule.Step) error {
	var conflicts []error
	var complaint error
	for _, st := range steps {
		err := r.setPowerState(ctx, ps, s.clusters[st.Cluster], st)
		switch {
		case err == nil:
		case fault.KindOf(err) == fault.Conflict, fault.KindOf(err) == fault.Gone, ctx.Err() != nil:
			conflicts = append(conflicts, err)
		case complaint == nil:
			complaint = err
		}
	}
	if complaint == nil {
		return errors.Join(conflicts...)
	}
	if err := r.reportStepFailure(ctx, ps, complaint); err != nil {
		return errors.Join(err, complaint)
	}
	return fault.NewWait(retryDelay, "setting the power state of clusters: %w", complaint)
}

// eventReasons maps each power state to the reason of the event that records the step.
var eventReasons = map[hivev1.PowerState]string{
	hivev1.PowerRunning:     "ScheduledResume",
	hivev1.PowerHibernating: "ScheduledHibernation",
}

// setPowerState sets a cluster's spec.powerState and records the slot in its annotations, in one
// write.
func (r *Reconciler) setPowerState(ctx context.Context, ps *v1alpha1.PowerSchedule, cd *hivev1.ClusterDeployment, st schedule.Step) error {
	before, after := cd.DeepCopy(), cd.DeepCopy()
	if st.Changes {
		after.Spec.PowerState = st.Slot.Power
	}
	if after.Annotations == nil {
		after.Annotations = map[string]string{}
	}
	if st.Slot.Power == hivev1.PowerHibernating {
		delete(after.Annotations, hivev1.AnnotationInactivity) // from now on the schedule wants it to sleep: a connection does not wake it
	}
	after.Annotations[v1alpha1.AnnotationSlot] = fmt.Sprintf("%s %s", st.Slot, client.ObjectKeyFromObject(ps))
	if _, err := patch.Object(ctx, r.Client, before, after); err != nil {
		return fmt.Errorf("setting the power state of cluster %s: %w", st.Cluster, err)
	}
	if st.Changes {
		at := st.Slot.At.UTC().Format(time.RFC3339)
		r.Events.Eventf(after, ps, corev1.EventTypeNormal, eventReasons[st.Slot.Power], "SetPower",
			"PowerSchedule %s: set spec.powerState to %s, slot of %s", client.ObjectKeyFromObject(ps), st.Slot.Power, at)
		r.Events.Eventf(ps, after, corev1.EventTypeNormal, eventReasons[st.Slot.Power], "SetPower",
			"cluster %s: set spec.powerState to %s, slot of %s", st.Cluster, st.Slot.Power, at)
	}
	return nil
}
