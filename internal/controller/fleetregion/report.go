package fleetregion

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fleet/facts"
	"hotspare.io/hotspare/internal/fleet/scaling"
	"hotspare.io/hotspare/internal/kstatus"
	"hotspare.io/hotspare/internal/patch"
)

// patchRegionStatus writes the region's status, with the names of the data planes to create. It
// does so before any is created, so that neither a crash nor a stale cache creates one twice.
func (r *Reconciler) patchRegionStatus(ctx context.Context, s *observation, plan scaling.Plan) error {
	after := s.Region.DeepCopy()
	after.Status = s.BuildRegionStatus(plan, r.Clock.Now())
	var err error
	if after.Status.Pending, err = r.listPendingPlanes(ctx, s, plan); err != nil {
		return err
	}
	return r.patchStatus(ctx, s, after)
}

func (r *Reconciler) patchStatus(ctx context.Context, s *observation, after *v1alpha1.FleetRegion) error {
	wrote, err := patch.Status(ctx, r.Client, s.Region, after)
	if err != nil {
		return fmt.Errorf("writing the status of FleetRegion %s: %w", client.ObjectKeyFromObject(after), err)
	}
	if wrote {
		r.regions.RecordWrite(after, r.Clock.Now())
	}
	s.Region = after
	return nil
}

// listPendingPlanes returns the recorded data planes that have not been observed yet, and those of
// this plan. It drops a data plane whose type the region no longer has: if it was created after
// all, a later pass observes it.
func (r *Reconciler) listPendingPlanes(ctx context.Context, s *observation, plan scaling.Plan) ([]v1alpha1.PendingDataPlane, error) {
	var out []v1alpha1.PendingDataPlane
	missing := 0
	for _, p := range s.Region.Status.Pending {
		if s.planesByName[p.Name] == nil {
			out = append(out, p)
			missing++
		}
	}
	if missing > 0 {
		// They may have been created, observed and removed, and the cached region may be stale.
		var now v1alpha1.FleetRegion
		if err := r.Live.Get(ctx, client.ObjectKeyFromObject(s.Region), &now); err != nil {
			return nil, fmt.Errorf("reading FleetRegion %s: %w", s.Region.Name, err)
		}
		out = slices.DeleteFunc(out, func(p v1alpha1.PendingDataPlane) bool { return !slices.Contains(now.Status.Pending, p) })
	}
	out = slices.DeleteFunc(out, func(p v1alpha1.PendingDataPlane) bool {
		return !slices.ContainsFunc(s.Region.Spec.InstanceTypes, func(t v1alpha1.RegionType) bool { return t.Name == p.InstanceType })
	})
	for _, st := range plan.StepsOf(scaling.Create) {
		out = append(out, v1alpha1.PendingDataPlane{Name: r.newPlaneName(s.Region.Name), InstanceType: st.Type})
	}
	return out, nil
}

// maxRegionPrefix is the number of characters of the region's name in the name of a data plane: the
// names of its claim and account, and its labels, must fit the whole name.
const maxRegionPrefix = 40

func (r *Reconciler) newPlaneName(region string) string {
	return region[:min(maxRegionPrefix, len(region))] + "-" + r.Suffix()
}

// reportDuplicate reports in the status that an older region takes precedence.
func (r *Reconciler) reportDuplicate(ctx context.Context, s *observation) error {
	after := s.Region.DeepCopy()
	after.Status.ObservedGeneration, after.Status.Plan, after.Status.InstanceTypes = after.Generation, "", nil
	meta.SetStatusCondition(&after.Status.Conditions, metav1.Condition{
		Type: v1alpha1.RegionValid, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonRegionDouble, Message: s.duplicateReason,
		ObservedGeneration: after.Generation, LastTransitionTime: metav1.NewTime(r.Clock.Now()),
	})
	kstatus.ReportFleetRegion(after, &after.Status, r.Clock.Now())
	return r.patchStatus(ctx, s, after)
}

// reportWaitingInstances writes to each instance without a data plane why it has none, and fixes
// its number of units.
func (r *Reconciler) reportWaitingInstances(ctx context.Context, s *observation, plan scaling.Plan) error {
	var errs []error
	for _, p := range plan.Placements {
		before := s.instancesByName[p.Instance]
		if p.Decision.Action != scaling.Wait || before.Unreadable != "" {
			continue
		}
		i := before.DeepCopy()
		i.Status.ObservedGeneration, i.Status.Phase = i.Generation, v1alpha1.InstancePending
		if units, _, _ := s.InstanceUnits(i); i.Status.Units == 0 {
			i.Status.Units = int32(units) //nolint:gosec // units of a size are an int32
		}
		c := facts.PlacedCondition(i, p)
		c.LastTransitionTime = metav1.NewTime(r.Clock.Now())
		meta.SetStatusCondition(&i.Status.Conditions, c)
		kstatus.ReportServiceInstance(i, &i.Status, r.Clock.Now())
		wrote, err := patch.Status(ctx, r.Client, before, i)
		switch {
		case client.IgnoreNotFound(err) != nil:
			errs = append(errs, fmt.Errorf("writing to the status of %s why it waits: %w", p.Instance, err))
		case err == nil && wrote:
			r.instances.RecordWrite(i, r.Clock.Now())
		}
	}
	return errors.Join(errs...)
}

// recordStepEvents records the events and the metrics for the steps of a data plane.
func (r *Reconciler) recordStepEvents(s *observation, dp *v1alpha1.DataPlane, steps []scaling.Step) {
	for _, st := range steps {
		r.Metrics.RecordFleetStep(client.ObjectKeyFromObject(s.Region), st)
		switch st.Verb {
		case scaling.Fail:
			r.recordEvent(s, dp, "DataPlaneFailed", "%s", st.Message)
		case scaling.Remove:
			r.recordEvent(s, dp, "DataPlaneNotNeeded", "%s", st.Message)
		case scaling.Restore:
			r.recordEvent(s, dp, "DataPlaneKept", "%s", st.Message)
		case scaling.Release:
			r.recordEvent(s, dp, "DataPlaneReleased", "%s", st.Message)
		}
	}
}

func (r *Reconciler) recordEvent(s *observation, dp *v1alpha1.DataPlane, reason, format string, args ...any) {
	kind := corev1.EventTypeNormal
	if reason == "DataPlaneFailed" {
		kind = corev1.EventTypeWarning
	}
	r.Events.Eventf(s.Region, dp, kind, reason, "Scale", "data plane %s: %s", dp.Name, fmt.Sprintf(format, args...))
}
