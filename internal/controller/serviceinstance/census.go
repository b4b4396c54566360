package serviceinstance

import (
	"cmp"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fleet/facts"
	"hotspare.io/hotspare/internal/metrics"
)

// CountFleets counts the objects of each FleetRegion for metrics; no decision may depend on it. c
// reads from caches that AddIndexes has been called on. If several regions have the same provider and
// region, only the oldest gets the instances; each gets the data planes of its own namespace.
func CountFleets(ctx context.Context, c client.Reader) (map[types.NamespacedName]metrics.Fleet, error) {
	var regions v1alpha1.FleetRegionList
	if err := c.List(ctx, &regions, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing FleetRegions: %w", err)
	}
	var planes v1alpha1.DataPlaneList
	if err := c.List(ctx, &planes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing DataPlanes: %w", err)
	}
	var instances v1alpha1.ServiceInstanceList
	if err := c.List(ctx, &instances, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing ServiceInstances: %w", err)
	}
	all := make([]*v1alpha1.FleetRegion, len(regions.Items))
	for n := range regions.Items {
		all[n] = &regions.Items[n]
	}
	arrivals := map[string]map[v1alpha1.InstancePhase]int{}
	for n := range instances.Items {
		i := &instances.Items[n]
		at := placeOf(i)
		if arrivals[at] == nil {
			arrivals[at] = map[v1alpha1.InstancePhase]int{}
		}
		arrivals[at][cmp.Or(i.Status.Phase, v1alpha1.InstancePending)]++
	}
	out := make(map[types.NamespacedName]metrics.Fleet, len(all))
	for _, r := range all {
		f := metrics.Fleet{Types: r.Status.InstanceTypes, DataPlanes: map[v1alpha1.DataPlanePhase]int{}}
		if facts.RegionDuplicateReason(r, all) == "" {
			f.Instances = arrivals[placeOf(r)]
		}
		for n := range planes.Items {
			if dp := &planes.Items[n]; dp.Namespace == r.Namespace && placeOf(dp) == placeOf(r) {
				f.DataPlanes[cmp.Or(dp.Status.Phase, v1alpha1.PhaseAccepted)]++
				if meta.IsStatusConditionFalse(dp.Status.Conditions, v1alpha1.DataPlaneAgentLive) {
					f.Silent++
				}
			}
		}
		out[client.ObjectKeyFromObject(r)] = f
	}
	return out, nil
}
