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

// seen is what a pass has read. The instance is the cache's own, and not changed.
type seen struct {
	instance *v1alpha1.ServiceInstance
	situation
}

// observe reads the instance, and what is known of it elsewhere. It is nil for an
// instance that there is nothing to do for: one that cannot be read keeps its finalizer
// and its status, since nobody knows what it says.
func (r *Reconciler) observe(ctx context.Context, key types.NamespacedName) (*seen, error) {
	var i v1alpha1.ServiceInstance
	if err := r.Client.Get(ctx, key, &i); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if i.Unreadable != "" {
		r.Events.Eventf(&i, nil, corev1.EventTypeWarning, hivev1.ReasonUnreadable, "Follow", "It is left alone until it can be read: %s", cut(i.Unreadable, maxNote))
		return nil, nil //nolint:nilnil // that nothing is to be done is a fact
	}
	s := &seen{instance: &i, situation: situation{now: r.Clock.Now()}}
	home, err := r.home(ctx, &i)
	if err != nil {
		return nil, err
	}
	s.region = home != nil
	if s.planes, err = r.planes(ctx, &i, home); err != nil {
		return nil, err
	}
	s.traces, err = r.traces(ctx, &i)
	return s, err
}

// home is the FleetRegion of the instance's provider and region; nil without. Of several
// the oldest counts, as everywhere.
func (r *Reconciler) home(ctx context.Context, i *v1alpha1.ServiceInstance) (*v1alpha1.FleetRegion, error) {
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
		if facts.Duplicate(region, all) == "" {
			return region, nil
		}
	}
	return nil, nil //nolint:nilnil // that there is none is a fact
}

// planes are the data planes that the instance's status may name, that of its FleetRegion
// first. The name is one in that namespace; but a FleetRegion can go, or one in another
// namespace take its place, and then the data plane is still where it was.
func (r *Reconciler) planes(ctx context.Context, i *v1alpha1.ServiceInstance, home *v1alpha1.FleetRegion) ([]plane, error) {
	if i.Status.DataPlaneName == "" {
		return nil, nil
	}
	var list v1alpha1.DataPlaneList
	if err := r.Client.List(ctx, &list, client.MatchingFields{byName: i.Status.DataPlaneName}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing DataPlanes: %w", err)
	}
	out, err := r.among(ctx, list.Items, i, home)
	if err != nil || len(out) > 0 && out[0].home {
		return out, err
	}
	// A cache that is behind must not make of an instance one whose data plane is gone.
	if err := r.Live.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("looking for DataPlane %s: %w", i.Status.DataPlaneName, err)
	}
	return r.among(ctx, list.Items, i, home)
}

func (r *Reconciler) among(ctx context.Context, list []v1alpha1.DataPlane, i *v1alpha1.ServiceInstance, home *v1alpha1.FleetRegion) ([]plane, error) {
	var out []plane
	for n := range list {
		dp := &list[n]
		if dp.Name != i.Status.DataPlaneName || placeOf(dp) != placeOf(i) {
			continue
		}
		p := plane{namespace: dp.Namespace, name: dp.Name, home: home != nil && home.Namespace == dp.Namespace, state: stateOf(dp)}
		if err := r.ask(ctx, &p, dp, i); err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	// Of several with one name those of other namespaces concern it only if they know it.
	if slices.ContainsFunc(out, func(p plane) bool { return p.home }) {
		out = slices.DeleteFunc(out, func(p plane) bool { return !p.home && !p.traced })
	}
	slices.SortFunc(out, func(a, b plane) int {
		return cmp.Or(-compare(a.home, b.home), compare(a.over, b.over), strings.Compare(a.namespace, b.namespace))
	})
	return out, nil
}

func compare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// stateOf is what matters of a data plane to its instances.
func stateOf(dp *v1alpha1.DataPlane) state {
	why := ""
	if c := meta.FindStatusCondition(dp.Status.Conditions, v1alpha1.DataPlaneReady); c != nil && facts.Gone(dp) {
		why = c.Reason
	}
	return state{
		gone: why == v1alpha1.ReasonClusterGone && dp.Unreadable == "" && dp.Spec.Ownership != v1alpha1.Registered, going: why == v1alpha1.ReasonClusterDeleting,
		over: dp.Unreadable == "" &&
			(dp.Status.ReleasedAt != nil || dp.Status.Phase == v1alpha1.PhaseCleanup || dp.Status.Phase == v1alpha1.PhaseFailed),
		silent:     meta.IsStatusConditionFalse(dp.Status.Conditions, v1alpha1.DataPlaneAgentLive),
		unreadable: dp.Unreadable,
	}
}

// ask looks for what the agent of the data plane says of this placement of the instance.
// A report of another data plane is none.
func (r *Reconciler) ask(ctx context.Context, p *plane, dp *v1alpha1.DataPlane, i *v1alpha1.ServiceInstance) error {
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
	p.traced = traced(&list.Items[0], string(i.UID))
	report := list.Items[0].Status.Report
	if report == nil || report.DataPlaneUID != string(dp.UID) {
		return nil
	}
	p.deaf = deaf(report)
	for n := range report.Instances {
		if e := &report.Instances[n]; !e.Reserved && e.UID == string(i.UID) && e.PlacementID == i.PlacementID() {
			p.says, p.refusal = e, facts.RefusalOf(dp.Name, report, i)
			return nil
		}
	}
	return nil
}

// deaf is whether the agent lives and its data plane does not answer it.
func deaf(r *v1alpha1.DataPlaneReport) bool {
	return r != nil && !r.Ready && r.Reason == v1alpha1.ReasonPlaneSilent
}

// traces are data planes that may have something of an earlier placement of the instance,
// which is asked, past the cache, before it is let go. One that was placed once at most
// has none.
func (r *Reconciler) traces(ctx context.Context, i *v1alpha1.ServiceInstance) ([]string, error) {
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
		if a := &list.Items[n]; a.Name != i.Status.DataPlaneName && traced(a, string(i.UID)) {
			out = append(out, a.Namespace+"/"+a.Name)
		}
	}
	slices.Sort(out)
	return out, nil
}

// traced is whether an agent is still told of the instance, or has something of it. What
// it would not have is not there, unless it is listed no longer.
func traced(a *v1alpha1.DataPlaneAgent, uid string) bool {
	if a.Status.Report != nil {
		for _, e := range a.Status.Report.Instances {
			if e.UID == uid && !e.Reserved {
				return e.Phase != v1alpha1.AgentDeleted
			}
		}
	}
	return slices.ContainsFunc(a.Spec.Instances, func(in v1alpha1.AgentInstance) bool { return in.UID == uid && !in.Reserved })
}
