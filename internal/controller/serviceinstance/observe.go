package serviceinstance

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fleet/facts"
	"hotspare.io/hotspare/internal/fleet/instance"
)

// observeInstance reads the instance, and what other objects report about it. It returns nil for an
// instance that needs no pass: one that cannot be decoded keeps its finalizer and its status,
// because its contents are unknown. The instance is shared with the cache and must not be changed.
func (r *Reconciler) observeInstance(ctx context.Context, key types.NamespacedName) (*instance.Snapshot, error) {
	var i v1alpha1.ServiceInstance
	if err := r.Client.Get(ctx, key, &i); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if i.Unreadable != "" {
		r.Events.Eventf(&i, nil, corev1.EventTypeWarning, hivev1.ReasonUnreadable, "Follow", "The instance is not changed until it can be read: %s",
			instance.TruncateText(i.Unreadable, maxEventNote))
		return nil, nil //nolint:nilnil // nil means that nothing needs to be done
	}
	s := &instance.Snapshot{Now: r.Clock.Now(), Instance: &i}
	home, err := r.findRegion(ctx, &i)
	if err != nil {
		return nil, err
	}
	s.HasRegion = home != nil
	if s.Planes, err = r.findPlanes(ctx, &i, home); err != nil {
		return nil, err
	}
	s.Traces, err = r.findTraces(ctx, &i)
	return s, err
}

// findRegion returns the FleetRegion with the instance's provider and region; nil if there is none.
// If there are several, the oldest takes precedence, as everywhere.
func (r *Reconciler) findRegion(ctx context.Context, i *v1alpha1.ServiceInstance) (*v1alpha1.FleetRegion, error) {
	var list v1alpha1.FleetRegionList
	if err := r.Client.List(ctx, &list, client.MatchingFields{byPlace: placeOf(i)}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing FleetRegions: %w", err)
	}
	var all []*v1alpha1.FleetRegion
	for n := range list.Items {
		if list.Items[n].DeletionTimestamp == nil {
			all = append(all, &list.Items[n])
		}
	}
	for _, region := range all {
		if facts.RegionDuplicateReason(region, all) == "" {
			return region, nil
		}
	}
	return nil, nil //nolint:nilnil // nil means that there is none
}

// findPlanes returns the data planes that the instance's status may name, the one of its
// FleetRegion first. The name refers to that namespace; but a FleetRegion can be deleted, or one in
// another namespace can replace it, and the data plane is then still where it was.
func (r *Reconciler) findPlanes(ctx context.Context, i *v1alpha1.ServiceInstance, home *v1alpha1.FleetRegion) ([]instance.Plane, error) {
	if i.Status.DataPlaneName == "" {
		return nil, nil
	}
	var list v1alpha1.DataPlaneList
	if err := r.Client.List(ctx, &list, client.MatchingFields{byName: i.Status.DataPlaneName}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing DataPlanes: %w", err)
	}
	out, err := r.matchPlanes(ctx, list.Items, i, home)
	if err != nil || len(out) > 0 && out[0].InRegionNamespace {
		return out, err
	}
	// A stale cache must not make the instance's data plane seem deleted.
	if err := r.Live.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("looking for DataPlane %s: %w", i.Status.DataPlaneName, err)
	}
	return r.matchPlanes(ctx, list.Items, i, home)
}

func (r *Reconciler) matchPlanes(ctx context.Context, list []v1alpha1.DataPlane, i *v1alpha1.ServiceInstance, home *v1alpha1.FleetRegion) ([]instance.Plane, error) {
	var out []instance.Plane
	for n := range list {
		dp := &list[n]
		if dp.Name != i.Status.DataPlaneName || placeOf(dp) != placeOf(i) {
			continue
		}
		p := instance.Plane{Namespace: dp.Namespace, Name: dp.Name, InRegionNamespace: home != nil && home.Namespace == dp.Namespace, PlaneState: planeStateOf(dp)}
		if err := r.readAgentReport(ctx, &p, dp, i); err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	// If several data planes have that name, those in other namespaces matter only if their agents
	// know the instance.
	if slices.ContainsFunc(out, func(p instance.Plane) bool { return p.InRegionNamespace }) {
		out = slices.DeleteFunc(out, func(p instance.Plane) bool { return !p.InRegionNamespace && !p.Traced })
	}
	slices.SortFunc(out, func(a, b instance.Plane) int {
		return cmp.Or(-compareBools(a.InRegionNamespace, b.InRegionNamespace), compareBools(a.Released, b.Released), strings.Compare(a.Namespace, b.Namespace))
	})
	return out, nil
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// planeStateOf returns the state of a data plane that matters to its instances.
func planeStateOf(dp *v1alpha1.DataPlane) instance.PlaneState {
	why := ""
	if c := meta.FindStatusCondition(dp.Status.Conditions, v1alpha1.DataPlaneReady); c != nil && facts.IsClusterGone(dp) {
		why = c.Reason
	}
	return instance.PlaneState{
		ClusterGone: why == v1alpha1.ReasonClusterGone && dp.Unreadable == "" && dp.Spec.Ownership != v1alpha1.Registered, ClusterDeleting: why == v1alpha1.ReasonClusterDeleting,
		Released: dp.Unreadable == "" &&
			(dp.Status.ReleasedAt != nil || dp.Status.Phase == v1alpha1.PhaseCleanup || dp.Status.Phase == v1alpha1.PhaseFailed),
		AgentSilent: meta.IsStatusConditionFalse(dp.Status.Conditions, v1alpha1.DataPlaneAgentLive),
		Unreadable:  dp.Unreadable,
	}
}

// readAgentReport reads the report of the data plane's agent about this placement of the instance.
// It ignores a report of another data plane.
func (r *Reconciler) readAgentReport(ctx context.Context, p *instance.Plane, dp *v1alpha1.DataPlane, i *v1alpha1.ServiceInstance) error {
	var list v1alpha1.DataPlaneAgentList
	err := r.Client.List(ctx, &list, client.InNamespace(dp.Namespace), client.MatchingFields{byName: dp.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("reading DataPlaneAgent %s: %w", dp.Name, err)
	}
	if len(list.Items) == 0 {
		return nil
	}
	if why := list.Items[0].Unreadable; why != "" {
		p.Unreadable = why
		return nil
	}
	p.Traced = instance.HasTrace(&list.Items[0], string(i.UID))
	report := list.Items[0].Status.Report
	if report == nil || report.DataPlaneUID != string(dp.UID) {
		return nil
	}
	p.APISilent = isPlaneAPISilent(report)
	for n := range report.Instances {
		if e := &report.Instances[n]; !e.Reserved && e.UID == string(i.UID) && e.PlacementID == i.PlacementID() {
			p.Report, p.Refusal = e, facts.BuildRefusal(dp.Name, report, i)
			return nil
		}
	}
	return nil
}

// isPlaneAPISilent reports whether the agent runs and the API of its data plane does not answer.
func isPlaneAPISilent(r *v1alpha1.DataPlaneReport) bool {
	return r != nil && !r.Ready && r.Reason == v1alpha1.ReasonPlaneSilent
}

// findTraces returns the data planes that may have objects of an earlier placement of the instance.
// It reads from the API server, before the finalizer is removed. An instance that was placed at
// most once has none.
func (r *Reconciler) findTraces(ctx context.Context, i *v1alpha1.ServiceInstance) ([]string, error) {
	earlier := i.Status.Placements
	if i.Status.DataPlaneName != "" {
		earlier--
	}
	if i.DeletionTimestamp == nil || earlier <= 0 {
		return nil, nil
	}
	var list v1alpha1.DataPlaneAgentList
	if err := r.Live.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("looking for objects of %s on data planes: %w", client.ObjectKeyFromObject(i), err)
	}
	var out []string
	for n := range list.Items {
		if a := &list.Items[n]; a.Name != i.Status.DataPlaneName && instance.HasTrace(a, string(i.UID)) {
			out = append(out, a.Namespace+"/"+a.Name)
		}
	}
	slices.Sort(out)
	return out, nil
}
