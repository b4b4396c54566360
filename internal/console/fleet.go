package console

import (
	"context"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/console/page"
	"hotspare.io/hotspare/internal/explain/fleetplan"
)

// buildFleetPage builds the page of all regions.
func buildFleetPage(ctx context.Context, l *PageReader, now time.Time, _ *http.Request) (any, error) {
	h, whole, err := readFleet(ctx, l)
	if err != nil {
		return nil, err
	}
	return page.NewFleet(h, l.Namespace, !whole, now), nil
}

// buildRegionPage builds the page of one region.
func buildRegionPage(ctx context.Context, l *PageReader, now time.Time, r *http.Request) (any, error) {
	h, whole, err := readFleet(ctx, l)
	if err != nil {
		return nil, err
	}
	name := r.PathValue("name")
	f, found := page.NewSingleRegion(h, l.Namespace, name, !whole, now)
	if found {
		return f, nil
	}
	mapping, err := restMapping(&v1alpha1.FleetRegionList{})
	if err != nil {
		return nil, err
	}
	may, err := l.canWatch(ctx, mapping, l.Namespace)
	if err != nil {
		return nil, err
	}
	if !may {
		return nil, &errorPage{
			Status: http.StatusForbidden, Title: "You do not have access to this region",
			Message: "You do not have permission to list FleetRegions in namespace " + l.Namespace + ".",
			Remedy:  "Ask an administrator of the hub for permission to list and watch them there.",
		}
	}
	return nil, &errorPage{
		Status: http.StatusNotFound, Title: "Region not found",
		Message: "Namespace " + l.Namespace + " has no FleetRegion " + name + ".", Remedy: "It may have been deleted. Continue with the fleet page.",
	}
}

// readFleet reads the objects of fleets. whole is true if the viewer may read everything that
// decisions depend on: the regions, types and instances of all namespaces, and the data planes of
// the page's namespace.
func readFleet(ctx context.Context, l *PageReader) (h *fleetplan.Hub, whole bool, err error) {
	var (
		regions   v1alpha1.FleetRegionList
		types     v1alpha1.InstanceTypeList
		planes    v1alpha1.DataPlaneList
		instances v1alpha1.ServiceInstanceList
		pools     hivev1.ClusterPoolList
	)
	whole = true
	for _, list := range []client.ObjectList{&regions, &types, &instances} {
		seen, err := l.listVisible(ctx, list, l.ListAll)
		if err == nil && !seen && l.Namespace != "" && list != client.ObjectList(&types) {
			_, err = l.listVisible(ctx, list, l.List)
		}
		if err != nil {
			return nil, false, err
		}
		whole = whole && seen
	}
	seen, err := l.listVisible(ctx, &planes, l.List)
	if err != nil {
		return nil, false, err
	}
	whole = whole && seen
	poolsSeen, err := l.listVisible(ctx, &pools, l.List)
	if err != nil {
		return nil, false, err
	}
	return &fleetplan.Hub{
		Regions: pointersTo(regions.Items), Types: pointersTo(types.Items), Planes: pointersTo(planes.Items),
		Instances: pointersTo(instances.Items), Pools: pointersTo(pools.Items), PoolsAssumed: !poolsSeen,
	}, whole, nil
}

// listVisible lists a kind with List or ListAll and reports whether the viewer may see it.
func (r *PageReader) listVisible(ctx context.Context, list client.ObjectList, by func(context.Context, client.ObjectList, ...client.ListOption) error) (bool, error) {
	missing := len(r.Missing)
	err := by(ctx, list)
	return err == nil && len(r.Missing) == missing, err
}

func pointersTo[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}
