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
	"hotspare.io/hotspare/internal/capacity/facts"
)

// observation is what a pass has read. The instance is the cache's own, and not changed.
type observation struct {
	instance *v1alpha1.ServiceInstance
	snapshot
}

// observeInstance reads the instance, and what is known of it elsewhere. It is nil for an
// instance that there is nothing to do for: one that cannot be read keeps its finalizer
// and its status, since nobody knows what it says.
func (r *Reconciler) observeInstance(ctx context.Context, key types.NamespacedName) (*observation, error) {
	var i v1alpha1.ServiceInstance
	if err := r.Client.Get(ctx, key, &i); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if i.Unreadable != "" {
		r.Events.Eventf(&i, nil, corev1.EventTypeWarning, hivev1.ReasonUnreadable, "Follow", "It is left alone until it can be read: %s", truncateText(i.Unreadable, maxEventNote))
		return nil, nil //nolint:nilnil // that nothing is to be done is a fact
	}
	s := &observation{instance: &i, snapshot: snapshot{now: r.Clock.Now()}}
	home, err := r.findRegion(ctx, &i)
	if err != nil {
		return nil, err
	}
	s.hasRegion = home != nil
	if s.planes, err = r.findPlanes(ctx, &i, home); err != nil {
		return nil, err
	}
	s.traces, err = r.findTraces(ctx, &i)
	return s, err
}

// findRegion is the FleetRegion of the instance's provider and region; nil without. Of several
// the oldest counts, as everywhere.
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
	return nil, nil //nolint:nilnil // that there is none is a fact
}

// findPlanes are the data planes that the instance's status may name, that of its FleetRegion
// first. The name is one in that namespace; but a FleetRegion can go, or one in another
// namespace take its place, and then the data plane is still where it was.
func (r *Reconciler) findPlanes(ctx context.Context, i *v1alpha1.ServiceInstance, home *v1alpha1.FleetRegion) ([]plane, error) {
	if i.Status.DataPlaneName == "" {
		return nil, nil
	}
	var list v1alpha1.DataPlaneList
	if err := r.Client.List(ctx, &list, client.MatchingFields{byName: i.Status.DataPlaneName}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing DataPlanes: %w", err)
	}
	out, err := r.matchPlanes(ctx, list.Items, i, home)
	if err != nil || len(out) > 0 && out[0].inRegionNamespace {
		return out, err
	}
	// A cache that is behind must not make of an instance one whose data plane is gone.
	if err := r.Live.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("looking for DataPlane %s: %w", i.Status.DataPlaneName, err)
	}
	return r.matchPlanes(ctx, list.Items, i, home)
}

func (r *Reconciler) matchPlanes(ctx context.Context, list []v1alpha1.DataPlane, i *v1alpha1.ServiceInstance, home *v1alpha1.FleetRegion) ([]plane, error) {
	var out []plane
	for n := range list {
		dp := &list[n]
		if dp.Name != i.Status.DataPlaneName || placeOf(dp) != placeOf(i) {
			continue
		}
		p := plane{namespace: dp.Namespace, name: dp.Name, inRegionNamespace: home != nil && home.Namespace == dp.Namespace, planeState: planeStateOf(dp)}
		if err := r.readAgentReport(ctx, &p, dp, i); err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	// Of several with one name those of other namespaces concern it only if they know it.
	if slices.ContainsFunc(out, func(p plane) bool { return p.inRegionNamespace }) {
		out = slices.DeleteFunc(out, func(p plane) bool { return !p.inRegionNamespace && !p.traced })
	}
	slices.SortFunc(out, func(a, b plane) int {
		return cmp.Or(-compareBools(a.inRegionNamespace, b.inRegionNamespace), compareBools(a.released, b.released), strings.Compare(a.namespace, b.namespace))
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

// planeStateOf is what matters of a data plane to its instances.
func planeStateOf(dp *v1alpha1.DataPlane) planeState {
	why := ""
	if c := meta.FindStatusCondition(dp.Status.Conditions, v1alpha1.DataPlaneReady); c != nil && facts.IsClusterGone(dp) {
		why = c.Reason
	}
	return planeState{
		clusterGone: why == v1alpha1.ReasonClusterGone && dp.Unreadable == "" && dp.Spec.Ownership != v1alpha1.Registered, clusterDeleting: why == v1alpha1.ReasonClusterDeleting,
		released: dp.Unreadable == "" &&
			(dp.Status.ReleasedAt != nil || dp.Status.Phase == v1alpha1.PhaseCleanup || dp.Status.Phase == v1alpha1.PhaseFailed),
		agentSilent: meta.IsStatusConditionFalse(dp.Status.Conditions, v1alpha1.DataPlaneAgentLive),
		unreadable:  dp.Unreadable,
	}
}

// readAgentReport looks for what the agent of the data plane says of this placement of the instance.
// A report of another data plane is none.
func (r *Reconciler) readAgentReport(ctx context.Context, p *plane, dp *v1alpha1.DataPlane, i *v1alpha1.ServiceInstance) error {
	var list v1alpha1.DataPlaneAgentList
	err := r.Client.List(ctx, &list, client.InNamespace(dp.Namespace), client.MatchingFields{byName: dp.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("reading DataPlaneAgent %s: %w", dp.Name, err)
	}
	if len(list.Items) == 0 {
		return nil
	}
	if why := list.Items[0].Unreadable; why != "" {
		p.unreadable = why
		return nil
	}
	p.traced = hasTrace(&list.Items[0], string(i.UID))
	report := list.Items[0].Status.Report
	if report == nil || report.DataPlaneUID != string(dp.UID) {
		return nil
	}
	p.apiSilent = isPlaneSilent(report)
	for n := range report.Instances {
		if e := &report.Instances[n]; !e.Reserved && e.UID == string(i.UID) && e.PlacementID == i.PlacementID() {
			p.report, p.refusal = e, facts.BuildRefusal(dp.Name, report, i)
			return nil
		}
	}
	return nil
}

// isPlaneSilent is whether the agent lives and its data plane does not answer it.
func isPlaneSilent(r *v1alpha1.DataPlaneReport) bool {
	return r != nil && !r.Ready && r.Reason == v1alpha1.ReasonPlaneSilent
}

// findTraces are data planes that may have something of an earlier placement of the instance,
// which is asked, past the cache, before it is let go. One that was placed once at most
// has none.
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
		return nil, fmt.Errorf("looking for what data planes have of %s: %w", client.ObjectKeyFromObject(i), err)
	}
	var out []string
	for n := range list.Items {
		if a := &list.Items[n]; a.Name != i.Status.DataPlaneName && hasTrace(a, string(i.UID)) {
			out = append(out, a.Namespace+"/"+a.Name)
		}
	}
	slices.Sort(out)
	return out, nil
}

// hasTrace is whether an agent is still told of the instance, or has something of it. What
// it would not have is not there, unless it is listed no longer.
func hasTrace(a *v1alpha1.DataPlaneAgent, uid string) bool {
	if a.Status.Report != nil {
		for _, e := range a.Status.Report.Instances {
			if e.UID == uid && !e.Reserved {
				return e.Phase != v1alpha1.AgentDeleted
			}
		}
	}
	return slices.ContainsFunc(a.Spec.Instances, func(in v1alpha1.AgentInstance) bool { return in.UID == uid && !in.Reserved })
}
