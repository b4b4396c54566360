package fleet

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/explain/fleetplan"
	"hotspare.io/hotspare/internal/explain/humanize"
)

// readFleet reads the data planes and pools of a namespace, or of all namespaces if it is empty.
// It reads regions and instances of all namespaces, because an older region of the same provider
// and region takes precedence, and instances can be created in any namespace.
//
// If the user may not list all namespaces, it reads the one namespace and prints a note.
func (a commands) readFleet(ctx context.Context, h *base.Hub, namespace string) (*fleetplan.Hub, error) {
	var (
		regions   v1alpha1.FleetRegionList
		types     v1alpha1.InstanceTypeList
		planes    v1alpha1.DataPlaneList
		instances v1alpha1.ServiceInstanceList
		pools     hivev1.ClusterPoolList
	)
	var unseen []string
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
		err := h.List(ctx, read.list, client.InNamespace(read.in))
		if apierrors.IsForbidden(err) && read.in != namespace && read.list != client.ObjectList(&types) {
			unseen = append(unseen, read.what)
			err = h.List(ctx, read.list, client.InNamespace(namespace))
		}
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", read.what, err)
		}
	}
	if len(unseen) > 0 {
		fmt.Fprintf(a.Stderr, "note: you are not allowed to list %s in all namespaces: the output ignores those in other namespaces, "+
			"so the free capacity may be lower, and the hub may decide differently\n", humanize.JoinWords(unseen))
	}
	return &fleetplan.Hub{
		Regions: pointersTo(regions.Items), Types: pointersTo(types.Items), Planes: pointersTo(planes.Items),
		Instances: pointersTo(instances.Items), Pools: pointersTo(pools.Items),
	}, nil
}

func pointersTo[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}

// findRegion returns a region. If it does not exist, the error lists the regions of the namespace.
func (a commands) findRegion(f *fleetplan.Hub, h *base.Hub, name string) (*v1alpha1.FleetRegion, error) {
	here := f.RegionsInNamespace(h.Namespace)
	for _, r := range here {
		if r.Name == name {
			return r, nil
		}
	}
	var names []string
	for _, r := range here {
		names = append(names, r.Name)
	}
	has := "it has " + humanize.JoinWords(names)
	if len(names) == 0 {
		has = "it has none"
	}
	return nil, base.WithRemedy(fmt.Errorf("namespace %s has no FleetRegion %q", h.Namespace, name),
		has+"; list the regions of all namespaces with: "+a.FormatCommand("fleet status -A"))
}

func listRegionNames(ctx context.Context, h *base.Hub) ([]string, error) {
	var list v1alpha1.FleetRegionList
	err := h.List(ctx, &list, client.InNamespace(h.Namespace))
	var out []string
	for _, r := range list.Items {
		out = append(out, r.Name)
	}
	return out, err
}
