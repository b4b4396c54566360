package powerschedule

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/kstatus"
	"hotspare.io/hotspare/internal/patch"
	"hotspare.io/hotspare/internal/power/schedule"
)

// reportPlan writes the plan into the schedule's status before it is carried out.
func (r *Reconciler) reportPlan(ctx context.Context, ps *v1alpha1.PowerSchedule, d schedule.Plan, clusters int) error {
	return r.patchStatus(ctx, ps, func(st *v1alpha1.PowerScheduleStatus) {
		st.Clusters, st.NextSlot = int32(clusters), nil
		if !d.Next.IsZero() {
			slot := slotStatus(d.Next)
			st.NextSlot = &slot
		}
		message := ""
		if was := st.LastSlot; was != nil && recordFromStatus(was).Slot == d.Record.Slot && d.Record.Outcome == v1alpha1.OutcomeUnderway {
			message = was.Message
		}
		st.LastSlot = takenSlot(d.Record)
		if st.LastSlot != nil {
			st.LastSlot.Message = message
		}
		r.setValidCondition(ps, st, metav1.ConditionTrue, v1alpha1.ReasonUnderstood, "The specification is valid")
	})
}

// reportInvalidSpec reports which fields of the specification cannot be parsed. No slot is due
// then.
func (r *Reconciler) reportInvalidSpec(ctx context.Context, ps *v1alpha1.PowerSchedule, faults []schedule.FieldError) error {
	var all []string
	for _, f := range faults {
		all = append(all, f.String())
	}
	return r.patchStatus(ctx, ps, func(st *v1alpha1.PowerScheduleStatus) {
		st.Clusters, st.NextSlot = 0, nil
		r.setValidCondition(ps, st, metav1.ConditionFalse, faults[0].Reason, strings.Join(all, "; "))
	})
}

// reportStepFailure writes into the status why a cluster could not be changed, and records one
// event.
func (r *Reconciler) reportStepFailure(ctx context.Context, ps *v1alpha1.PowerSchedule, complaint error) error {
	last := ps.Status.LastSlot
	if last == nil || last.Message == complaint.Error() {
		return nil
	}
	err := r.patchStatus(ctx, ps, func(st *v1alpha1.PowerScheduleStatus) { st.LastSlot.Message = complaint.Error() })
	if err == nil {
		r.Events.Eventf(ps, nil, corev1.EventTypeWarning, "ClusterNotTold", "SetPower", "%s", complaint.Error())
	}
	return err
}

func (r *Reconciler) setValidCondition(ps *v1alpha1.PowerSchedule, st *v1alpha1.PowerScheduleStatus, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&st.Conditions, metav1.Condition{
		Type: v1alpha1.ScheduleValid, Status: status, Reason: reason, Message: message, ObservedGeneration: ps.Generation,
		LastTransitionTime: metav1.NewTime(r.Clock.Now().Truncate(time.Second)),
	})
}

// patchStatus edits the status, and records an event when the schedule becomes invalid.
func (r *Reconciler) patchStatus(ctx context.Context, ps *v1alpha1.PowerSchedule, edit func(*v1alpha1.PowerScheduleStatus)) error {
	before := ps.DeepCopy()
	edit(&ps.Status)
	ps.Status.ObservedGeneration = ps.Generation
	kstatus.ReportPowerSchedule(ps, r.Clock.Now())
	if _, err := patch.Status(ctx, r.Client, before, ps); err != nil {
		return fmt.Errorf("reporting on %s: %w", client.ObjectKeyFromObject(ps), err)
	}
	was, is := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ScheduleValid), meta.FindStatusCondition(ps.Status.Conditions, v1alpha1.ScheduleValid)
	if is != nil && is.Status == metav1.ConditionFalse && (was == nil || was.Message != is.Message) {
		r.Events.Eventf(ps, nil, corev1.EventTypeWarning, is.Reason, "Validate", "%s", is.Message)
	}
	return nil
}

func slotStatus(s schedule.Slot) v1alpha1.Slot {
	return v1alpha1.Slot{Time: metav1.NewTime(s.At), PowerState: s.Power}
}

func takenSlot(r schedule.Record) *v1alpha1.TakenSlot {
	if r.IsZero() {
		return nil
	}
	out := &v1alpha1.TakenSlot{
		Slot: slotStatus(r.Slot), Outcome: r.Outcome, StartedAt: metav1.NewTime(r.StartedAt), Clusters: int32(r.Clusters),
	}
	if !r.FinishedAt.IsZero() {
		at := metav1.NewTime(r.FinishedAt)
		out.FinishedAt = &at
	}
	return out
}
