package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/capacity/facts"
)

// fleet is what the hub has of fleets.
type fleet struct {
	regions   []*v1alpha1.FleetRegion
	types     map[string]*v1alpha1.InstanceType
	planes    []*v1alpha1.DataPlane
	instances []*v1alpha1.ServiceInstance
	pools     []*hivev1.ClusterPool
}

// seeFleet reads the data planes and pools of a namespace, or of all when it is empty, and
// what decides about them: regions and instances are those of all namespaces, since a
// region may have an older twin, and instances are ordered from anywhere.
func (h *hub) seeFleet(ctx context.Context, namespace string) (*fleet, error) {
	var (
		regions   v1alpha1.FleetRegionList
		types     v1alpha1.InstanceTypeList
		planes    v1alpha1.DataPlaneList
		instances v1alpha1.ServiceInstanceList
		pools     hivev1.ClusterPoolList
	)
	for _, read := range []struct {
		what string
		list client.ObjectList
		in   string
	}{
		{"FleetRegions", &regions, ""},
		{"InstanceTypes", &types, ""},
		{"DataPlanes", &planes, namespace},
		{"ServiceInstances", &instances, ""},
		{"ClusterPools", &pools, namespace},
	} {
		if err := h.List(ctx, read.list, client.InNamespace(read.in)); err != nil {
			return nil, fmt.Errorf("listing %s: %w", read.what, err)
		}
	}
	f := &fleet{
		regions: pointers(regions.Items), types: map[string]*v1alpha1.InstanceType{}, planes: pointers(planes.Items),
		instances: pointers(instances.Items), pools: pointers(pools.Items),
	}
	for i := range types.Items {
		f.types[types.Items[i].Name] = &types.Items[i]
	}
	return f, nil
}

func pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}

// in are the regions of a namespace, or all.
func (f *fleet) in(namespace string) []*v1alpha1.FleetRegion {
	var out []*v1alpha1.FleetRegion
	for _, r := range f.regions {
		if namespace == "" || r.Namespace == namespace {
			out = append(out, r)
		}
	}
	return out
}

// evaluate decides about a region as its controller does.
func (f *fleet) evaluate(r *v1alpha1.FleetRegion, now time.Time) (evaluation, error) {
	o := facts.Objects{Region: r, Types: f.types, Planes: f.planes, Instances: f.instances, Pools: map[string]*hivev1.ClusterPool{}}
	for _, p := range f.pools {
		if p.Namespace == r.Namespace {
			o.Pools[p.Name] = p
		}
	}
	alive := slices.DeleteFunc(slices.Clone(f.regions), func(r *v1alpha1.FleetRegion) bool { return r.DeletionTimestamp != nil })
	return newEvaluation(o, alive, now)
}

// view decides about regions and tells of them. Of one that cannot be read, or is being
// deleted, it says so, and tells of the others.
func (f *fleet) view(regions []*v1alpha1.FleetRegion, now time.Time, next advice) fleetView {
	v := fleetView{Now: now, Regions: []regionView{}}
	for _, r := range regions {
		e, err := f.evaluate(r, now)
		switch {
		case r.DeletionTimestamp != nil:
			e.duplicate = "it is being deleted"
		case err != nil:
			e.duplicate = err.Error()
		}
		v.Regions = append(v.Regions, e.view(next))
	}
	return v
}

// others are data planes of these namespaces that a view does not tell of: those that
// belong to no region, or to one about which nothing is decided.
func (f *fleet) others(v fleetView) []*v1alpha1.DataPlane {
	told := map[client.ObjectKey]bool{}
	for _, r := range v.Regions {
		for _, p := range r.DataPlanes {
			told[client.ObjectKey{Namespace: r.Namespace, Name: p.Name}] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(f.planes), func(dp *v1alpha1.DataPlane) bool { return told[client.ObjectKeyFromObject(dp)] })
}

// regionOf is the region of a data plane; nil when it has none.
func (f *fleet) regionOf(dp *v1alpha1.DataPlane) *v1alpha1.FleetRegion {
	for _, r := range f.regions {
		if r.Namespace == dp.Namespace && r.Spec.Provider == dp.Spec.Provider && r.Spec.Region == dp.Spec.Region {
			return r
		}
	}
	return nil
}

// region reads one region; the error for one that does not exist names those that do.
func (a *app) region(f *fleet, h *hub, name string) (*v1alpha1.FleetRegion, error) {
	here := f.in(h.namespace)
	for _, r := range here {
		if r.Name == name {
			return r, nil
		}
	}
	var names []string
	for _, r := range here {
		names = append(names, r.Name)
	}
	has := "it has " + list(names)
	if len(names) == 0 {
		has = "it has none"
	}
	return nil, advise(fmt.Errorf("namespace %s has no FleetRegion %q", h.namespace, name), has+"; look into the others with: "+a.next("fleet status -A"))
}

func regionNames(ctx context.Context, h *hub) ([]string, error) {
	var list v1alpha1.FleetRegionList
	err := h.List(ctx, &list, client.InNamespace(h.namespace))
	var out []string
	for _, r := range list.Items {
		out = append(out, r.Name)
	}
	return out, err
}
