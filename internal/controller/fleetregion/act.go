package fleetregion

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/fleet/facts"
	"hotspare.io/hotspare/internal/fleet/scaling"
	"hotspare.io/hotspare/internal/kstatus"
	"hotspare.io/hotspare/internal/patch"
)

// applyPlan executes the steps. It writes each data plane once, with all of its steps; a failure of
// one data plane does not affect the others.
func (r *Reconciler) applyPlan(ctx context.Context, s *observation, plan scaling.Plan) error {
	byPlane := map[string][]scaling.Step{}
	var names []string
	for _, st := range plan.Steps {
		if st.Verb == scaling.Create || st.Verb == scaling.Place && !s.isPlaceable(st.Instance) {
			continue
		}
		if byPlane[st.DataPlane] == nil {
			names = append(names, st.DataPlane)
		}
		byPlane[st.DataPlane] = append(byPlane[st.DataPlane], st)
	}
	errs := []error{r.createPendingPlanes(ctx, s)}
	for _, name := range names {
		if dp := s.planesByName[name]; dp != nil {
			errs = append(errs, r.applyPlaneSteps(ctx, s, dp, byPlane[name]))
		}
	}
	return errors.Join(errs...)
}

// isPlaceable reports whether the instance has the finalizer, which keeps it until nothing of it is
// left on its data plane.
func (o *observation) isPlaceable(name string) bool {
	i := o.instancesByName[name]
	return i != nil && controllerutil.ContainsFinalizer(i, v1alpha1.FinalizerServiceInstance)
}

// createPendingPlanes creates the data planes that the region's status names and that do not exist.
func (r *Reconciler) createPendingPlanes(ctx context.Context, s *observation) error {
	var errs []error
	for _, p := range s.Region.Status.Pending {
		t := s.Types[p.InstanceType]
		if s.planesByName[p.Name] != nil || t == nil {
			continue
		}
		dp := s.newPlane(p, t.Spec.MultiZone)
		switch err := r.Client.Create(ctx, dp); {
		case apierrors.IsAlreadyExists(err): // created before a crash, or not yet in the cache
		case err != nil:
			errs = append(errs, fmt.Errorf("creating DataPlane %s: %w", p.Name, err))
		default:
			r.Metrics.RecordFleetStep(client.ObjectKeyFromObject(s.Region), s.createStep(p))
			r.recordEvent(s, dp, "DataPlaneCreated", "for type %s", p.InstanceType)
		}
	}
	return errors.Join(errs...)
}

// createStep returns the step that creates a data plane, with its reason if it is still known.
func (o *observation) createStep(p v1alpha1.PendingDataPlane) scaling.Step {
	st := scaling.Step{Verb: scaling.Create, Type: p.InstanceType}
	for _, t := range o.Region.Status.InstanceTypes {
		if t.Name == p.InstanceType && t.Decision != nil && t.Decision.Action == "Create" {
			st.Reason = scaling.Reason(t.Decision.Reason)
		}
	}
	return st
}

func (o *observation) newPlane(p v1alpha1.PendingDataPlane, multiZone bool) *v1alpha1.DataPlane {
	return &v1alpha1.DataPlane{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: o.Region.Namespace, Name: p.Name, Finalizers: []string{v1alpha1.FinalizerDataPlane},
		},
		Spec: v1alpha1.DataPlaneSpec{
			Provider: o.Region.Spec.Provider, Region: o.Region.Spec.Region, MultiZone: multiZone, InstanceTypes: []string{p.InstanceType},
			Ownership: v1alpha1.Managed, Schedulable: ptr.To(true), DeletionPolicy: v1alpha1.DeletionDelete,
		},
	}
}

// applyPlaneSteps executes the steps of one data plane. It writes the data plane first; only booked
// places are then written to the instances.
func (r *Reconciler) applyPlaneSteps(ctx context.Context, s *observation, dp *v1alpha1.DataPlane, steps []scaling.Step) error {
	after := dp.DeepCopy()
	var placed []scaling.Step
	slices.SortStableFunc(steps, func(a, b scaling.Step) int { return stepOrder[a.Verb] - stepOrder[b.Verb] })
	for _, st := range steps {
		switch st.Verb {
		case scaling.Forget:
			return r.deleteFailedPlane(ctx, s, dp)
		case scaling.Release:
			if err := r.confirmEmpty(ctx, dp); err != nil {
				return err
			}
		case scaling.Place:
			placed = append(placed, st)
		}
		r.applyStep(s, after, st)
	}
	kstatus.ReportDataPlane(after, &after.Status, r.Clock.Now())
	wrote, err := patch.Status(ctx, r.Client, dp, after)
	if err != nil {
		return fmt.Errorf("writing DataPlane %s: %w", dp.Name, err)
	}
	if wrote {
		r.planes.RecordWrite(after, r.Clock.Now())
		r.recordStepEvents(s, after, steps)
	}
	var errs []error
	for _, st := range placed {
		errs = append(errs, r.assignDataPlane(ctx, s, after, st))
	}
	return errors.Join(errs...)
}

// stepOrder is the order of the steps of one data plane: an old booking is deleted before a new one
// with the same name is added.
var stepOrder = map[scaling.Verb]int{scaling.Unbook: -1}

// applyStep changes a data plane as one step requires.
func (r *Reconciler) applyStep(s *observation, dp *v1alpha1.DataPlane, st scaling.Step) {
	phase := func(p v1alpha1.DataPlanePhase) {
		dp.Status.Phase, dp.Status.PhaseSince = p, ptr.To(metav1.NewTime(r.Clock.Now()))
	}
	switch st.Verb {
	case scaling.Unbook:
		dp.Status.Bookings = slices.DeleteFunc(dp.Status.Bookings, func(b v1alpha1.Booking) bool { return b.Namespace+"/"+b.Name == st.Instance })
	case scaling.Place:
		i := s.instancesByName[st.Instance]
		if !slices.ContainsFunc(dp.Status.Bookings, func(b v1alpha1.Booking) bool { return b.UID == string(i.UID) }) {
			dp.Status.Bookings = append(dp.Status.Bookings, v1alpha1.Booking{
				Namespace: i.Namespace, Name: i.Name, UID: string(i.UID), Type: st.Type, Units: int32(st.Units), //nolint:gosec // units of a size are an int32
			})
		}
	case scaling.Fail:
		phase(v1alpha1.PhaseFailed)
		meta.SetStatusCondition(&dp.Status.Conditions, metav1.Condition{
			Type: v1alpha1.DataPlaneReady, Status: metav1.ConditionFalse, Reason: string(st.Reason), Message: st.Message,
			ObservedGeneration: dp.Generation, LastTransitionTime: metav1.NewTime(r.Clock.Now()),
		})
	case scaling.Remove:
		phase(v1alpha1.PhaseDeprovisioning)
	case scaling.Restore:
		phase(v1alpha1.PhaseReady)
	case scaling.Release:
		dp.Status.ReleasedAt = ptr.To(metav1.NewTime(r.Clock.Now()))
	}
}

// confirmEmpty returns an error unless the API server confirms that the data plane is empty: no
// instance names it, and its agent reports nothing else. If an instance is placed from now on, its
// write fails, because the resource version of the data plane has changed.
func (r *Reconciler) confirmEmpty(ctx context.Context, dp *v1alpha1.DataPlane) error {
	var list v1alpha1.ServiceInstanceList
	if err := r.Live.List(ctx, &list); err != nil {
		return fmt.Errorf("looking for instances on DataPlane %s: %w", dp.Name, err)
	}
	for i := range list.Items {
		inst := &list.Items[i]
		if inst.Status.DataPlaneName == dp.Name && inst.Spec.Provider == dp.Spec.Provider && inst.Spec.Region == dp.Spec.Region {
			return fault.New(fault.Conflict, fmt.Errorf("instance %s is on DataPlane %s, and the cache does not show it", client.ObjectKeyFromObject(inst), dp.Name))
		}
	}
	if dp.Spec.DiscardUnlisted || facts.IsClusterGone(dp) {
		return nil
	}
	var agent v1alpha1.DataPlaneAgent
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(dp), &agent); err != nil {
		return fmt.Errorf("reading the DataPlaneAgent of DataPlane %s: %w", dp.Name, err)
	}
	since := dp.CreationTimestamp.Time
	if dp.Status.PhaseSince != nil {
		since = dp.Status.PhaseSince.Time
	}
	live := facts.AgentLiveCondition(dp, r.Clock.Now()).Status == metav1.ConditionTrue
	if why := facts.OccupiedReason(dp, facts.CompareContents(dp, &agent, nil, nil), live, facts.InquiryTime(since, r.Started)); why != "" {
		return fault.New(fault.Conflict, fmt.Errorf("keeping DataPlane %s: %s", dp.Name, why))
	}
	return nil
}

// deleteFailedPlane deletes a failed data plane. Its finalizer has released everything that it had.
func (r *Reconciler) deleteFailedPlane(ctx context.Context, s *observation, dp *v1alpha1.DataPlane) error {
	if dp.DeletionTimestamp != nil {
		return nil
	}
	err := r.Client.Delete(ctx, dp, client.Preconditions{UID: &dp.UID, ResourceVersion: &dp.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting DataPlane %s: %w", dp.Name, err)
	}
	r.Metrics.RecordFleetStep(client.ObjectKeyFromObject(s.Region), scaling.Step{Verb: scaling.Forget, Reason: scaling.Superseded})
	r.recordEvent(s, dp, "DataPlaneForgotten", "deleted: it failed, and newer failures determine the backoff")
	return nil
}

// assignDataPlane writes the data plane on which a place is booked to the instance's status.
func (r *Reconciler) assignDataPlane(ctx context.Context, s *observation, dp *v1alpha1.DataPlane, st scaling.Step) error {
	before := s.instancesByName[st.Instance]
	i := before.DeepCopy()
	i.Status.DataPlaneName, i.Status.Units = dp.Name, int32(st.Units) //nolint:gosec // units of a size are an int32
	i.Status.Placements++
	i.Status.ObservedGeneration = i.Generation
	i.Status.Phase = v1alpha1.InstanceProvisioning
	now := metav1.NewTime(r.Clock.Now())
	meta.SetStatusCondition(&i.Status.Conditions, metav1.Condition{
		Type: v1alpha1.InstancePlaced, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonPlaced,
		Message: "The instance is on data plane " + dp.Name + ".", ObservedGeneration: i.Generation, LastTransitionTime: now,
	})
	kstatus.ReportServiceInstance(i, &i.Status, r.Clock.Now())
	if _, err := patch.Status(ctx, r.Client, before, i); err != nil {
		return fmt.Errorf("writing the data plane of %s to its status: %w", st.Instance, err)
	}
	r.instances.RecordWrite(i, r.Clock.Now())
	s.instancesByName[st.Instance] = i
	r.Events.Eventf(i, dp, corev1.EventTypeNormal, "Placed", "Place", "on data plane %s", dp.Name)
	return nil
}
