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
	"hotspare.io/hotspare/internal/capacity"
	"hotspare.io/hotspare/internal/capacity/facts"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/kstatus"
	"hotspare.io/hotspare/internal/patch"
)

// act takes the steps: those of one data plane with one write of it, whatever becomes
// of the others'.
func (r *Reconciler) act(ctx context.Context, s *seen, plan capacity.Plan) error {
	byPlane := map[string][]capacity.Step{}
	var names []string
	for _, st := range plan.Steps {
		if st.Verb == capacity.Create || st.Verb == capacity.Place && !s.placeable(st.Instance) {
			continue
		}
		if byPlane[st.DataPlane] == nil {
			names = append(names, st.DataPlane)
		}
		byPlane[st.DataPlane] = append(byPlane[st.DataPlane], st)
	}
	errs := []error{r.make(ctx, s)}
	for _, name := range names {
		if dp := s.planes[name]; dp != nil {
			errs = append(errs, r.change(ctx, s, dp, byPlane[name]))
		}
	}
	return errors.Join(errs...)
}

// placeable reports whether the instance is held until its data plane has nothing of it.
func (s *seen) placeable(name string) bool {
	i := s.instances[name]
	return i != nil && controllerutil.ContainsFinalizer(i, v1alpha1.FinalizerServiceInstance)
}

// make creates the data planes that the region's status names and that are not there.
func (r *Reconciler) make(ctx context.Context, s *seen) error {
	var errs []error
	for _, p := range s.Region.Status.Pending {
		t := s.Types[p.InstanceType]
		if s.planes[p.Name] != nil || t == nil {
			continue
		}
		dp := s.newPlane(p, t.Spec.MultiZone)
		switch err := r.Client.Create(ctx, dp); {
		case apierrors.IsAlreadyExists(err): // made before a crash, or not yet in the cache
		case err != nil:
			errs = append(errs, fmt.Errorf("creating DataPlane %s: %w", p.Name, err))
		default:
			r.Metrics.FleetTook(client.ObjectKeyFromObject(s.Region), s.creation(p))
			r.event(s, dp, "DataPlaneCreated", "for type %s", p.InstanceType)
		}
	}
	return errors.Join(errs...)
}

// creation is the step that has a data plane made, with its reason if it is still known.
func (s *seen) creation(p v1alpha1.PendingDataPlane) capacity.Step {
	st := capacity.Step{Verb: capacity.Create, Type: p.InstanceType}
	for _, t := range s.Region.Status.InstanceTypes {
		if t.Name == p.InstanceType && t.Decision != nil && t.Decision.Action == "Create" {
			st.Reason = capacity.Reason(t.Decision.Reason)
		}
	}
	return st
}

func (s *seen) newPlane(p v1alpha1.PendingDataPlane, multiZone bool) *v1alpha1.DataPlane {
	return &v1alpha1.DataPlane{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Region.Namespace, Name: p.Name, Finalizers: []string{v1alpha1.FinalizerDataPlane},
		},
		Spec: v1alpha1.DataPlaneSpec{
			Provider: s.Region.Spec.Provider, Region: s.Region.Spec.Region, MultiZone: multiZone, InstanceTypes: []string{p.InstanceType},
			Ownership: v1alpha1.Managed, Schedulable: ptr.To(true), DeletionPolicy: v1alpha1.DeletionDelete,
		},
	}
}

// change takes the steps of one data plane. It is written first; instances are told only
// of places that are theirs.
func (r *Reconciler) change(ctx context.Context, s *seen, dp *v1alpha1.DataPlane, steps []capacity.Step) error {
	after := dp.DeepCopy()
	var placed []capacity.Step
	slices.SortStableFunc(steps, func(a, b capacity.Step) int { return within[a.Verb] - within[b.Verb] })
	for _, st := range steps {
		switch st.Verb {
		case capacity.Forget:
			return r.forget(ctx, s, dp)
		case capacity.Release:
			if err := r.vacant(ctx, dp); err != nil {
				return err
			}
		case capacity.Place:
			placed = append(placed, st)
		}
		r.edit(s, after, st)
	}
	kstatus.ReportDataPlane(after, &after.Status, r.Clock.Now())
	wrote, err := patch.Status(ctx, r.Client, dp, after)
	if err != nil {
		return fmt.Errorf("writing DataPlane %s: %w", dp.Name, err)
	}
	if wrote {
		r.planes.Note(after, r.Clock.Now())
		r.announce(s, after, steps)
	}
	var errs []error
	for _, st := range placed {
		errs = append(errs, r.assign(ctx, s, after, st))
	}
	return errors.Join(errs...)
}

// within is the order in one data plane: an old booking goes before a new one of its name comes.
var within = map[capacity.Verb]int{capacity.Unbook: -1}

// edit makes one step's change to a data plane.
func (r *Reconciler) edit(s *seen, dp *v1alpha1.DataPlane, st capacity.Step) {
	phase := func(p v1alpha1.DataPlanePhase) {
		dp.Status.Phase, dp.Status.PhaseSince = p, ptr.To(metav1.NewTime(r.Clock.Now()))
	}
	switch st.Verb {
	case capacity.Unbook:
		dp.Status.Bookings = slices.DeleteFunc(dp.Status.Bookings, func(b v1alpha1.Booking) bool { return b.Namespace+"/"+b.Name == st.Instance })
	case capacity.Place:
		i := s.instances[st.Instance]
		if !slices.ContainsFunc(dp.Status.Bookings, func(b v1alpha1.Booking) bool { return b.UID == string(i.UID) }) {
			dp.Status.Bookings = append(dp.Status.Bookings, v1alpha1.Booking{
				Namespace: i.Namespace, Name: i.Name, UID: string(i.UID), Type: st.Type, Units: int32(st.Units), //nolint:gosec // units of a size are an int32
			})
		}
	case capacity.Fail:
		phase(v1alpha1.PhaseFailed)
		meta.SetStatusCondition(&dp.Status.Conditions, metav1.Condition{
			Type: v1alpha1.DataPlaneReady, Status: metav1.ConditionFalse, Reason: string(st.Reason), Message: st.Message,
			ObservedGeneration: dp.Generation, LastTransitionTime: metav1.NewTime(r.Clock.Now()),
		})
	case capacity.Remove:
		phase(v1alpha1.PhaseDeprovisioning)
	case capacity.Restore:
		phase(v1alpha1.PhaseReady)
	case capacity.Release:
		dp.Status.ReleasedAt = ptr.To(metav1.NewTime(r.Clock.Now()))
	}
}

// vacant is an error unless there is nobody on the data plane past the cache either: no
// instance that names it, and nothing else that its agent reports. An instance that is
// given a place from now on is refused by the version of the data plane.
func (r *Reconciler) vacant(ctx context.Context, dp *v1alpha1.DataPlane) error {
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
	if dp.Spec.DiscardUnlisted || facts.Gone(dp) {
		return nil
	}
	var agent v1alpha1.DataPlaneAgent
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(dp), &agent); err != nil {
		return fmt.Errorf("asking the agent of DataPlane %s: %w", dp.Name, err)
	}
	since := dp.CreationTimestamp.Time
	if dp.Status.PhaseSince != nil {
		since = dp.Status.PhaseSince.Time
	}
	live := facts.AgentLive(dp, r.Clock.Now()).Status == metav1.ConditionTrue
	if why := facts.Occupied(dp, facts.ContentsOf(dp, &agent, nil, nil), live, facts.Inquiry(since, r.Started)); why != "" {
		return fault.New(fault.Conflict, fmt.Errorf("keeping DataPlane %s: %s", dp.Name, why))
	}
	return nil
}

// forget deletes a data plane that failed. Its finalizer has given back what it held.
func (r *Reconciler) forget(ctx context.Context, s *seen, dp *v1alpha1.DataPlane) error {
	if dp.DeletionTimestamp != nil {
		return nil
	}
	err := r.Client.Delete(ctx, dp, client.Preconditions{UID: &dp.UID, ResourceVersion: &dp.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting DataPlane %s: %w", dp.Name, err)
	}
	r.Metrics.FleetTook(client.ObjectKeyFromObject(s.Region), capacity.Step{Verb: capacity.Forget, Reason: capacity.Superseded})
	r.event(s, dp, "DataPlaneForgotten", "it had failed, and later ones say more")
	return nil
}

// assign tells an instance of the data plane on which a place is booked for it.
func (r *Reconciler) assign(ctx context.Context, s *seen, dp *v1alpha1.DataPlane, st capacity.Step) error {
	before := s.instances[st.Instance]
	i := before.DeepCopy()
	i.Status.DataPlaneName, i.Status.Units = dp.Name, int32(st.Units) //nolint:gosec // units of a size are an int32
	i.Status.Placements++
	i.Status.ObservedGeneration = i.Generation
	i.Status.Phase = v1alpha1.InstanceProvisioning
	now := metav1.NewTime(r.Clock.Now())
	meta.SetStatusCondition(&i.Status.Conditions, metav1.Condition{
		Type: v1alpha1.InstancePlaced, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonPlaced,
		Message: "It is on data plane " + dp.Name + ".", ObservedGeneration: i.Generation, LastTransitionTime: now,
	})
	kstatus.ReportServiceInstance(i, &i.Status, r.Clock.Now())
	if _, err := patch.Status(ctx, r.Client, before, i); err != nil {
		return fmt.Errorf("telling %s of its data plane: %w", st.Instance, err)
	}
	r.instances.Note(i, r.Clock.Now())
	s.instances[st.Instance] = i
	r.Events.Eventf(i, dp, corev1.EventTypeNormal, "Placed", "Place", "on data plane %s", dp.Name)
	return nil
}
