package fleetregion

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fleet/facts"
)

// observation has the objects of one pass. They belong to the cache: copy them before you change
// them.
type observation struct {
	facts.Objects
	// duplicateReason says which older FleetRegion has the same provider and region; "" when none
	// has.
	duplicateReason string
	// planesByName are the data planes by name; instancesByName are the instances by namespace and
	// name.
	planesByName    map[string]*v1alpha1.DataPlane
	instancesByName map[string]*v1alpha1.ServiceInstance
}

// observeRegion reads the region and everything that its plan depends on. It returns nil for a
// region that needs no pass.
func (r *Reconciler) observeRegion(ctx context.Context, key types.NamespacedName) (*observation, error) {
	var region v1alpha1.FleetRegion
	if err := r.Client.Get(ctx, key, &region); err != nil {
		if apierrors.IsNotFound(err) {
			r.Metrics.DeleteRegionSeries(key)
		}
		return nil, client.IgnoreNotFound(err)
	}
	s := &observation{Objects: facts.Objects{
		Region: r.regions.NewestVersion(&region), Types: map[string]*v1alpha1.InstanceType{}, Pools: map[string]*hivev1.ClusterPool{}, Started: r.Started,
	}}
	if s.Region.Unreadable != "" || s.Region.DeletionTimestamp != nil {
		return nil, nil //nolint:nilnil // nil means that nothing needs to be done
	}
	if err := r.findDuplicate(ctx, s); err != nil || s.duplicateReason != "" {
		return s, err
	}
	for _, read := range []func(context.Context, *observation) error{r.readTypes, r.readPools, r.readPlanes, r.readInstances} {
		if err := read(ctx, s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (r *Reconciler) findDuplicate(ctx context.Context, s *observation) error {
	var list v1alpha1.FleetRegionList
	if err := r.Client.List(ctx, &list, client.MatchingFields{byPlace: placeKey(s.Region.Spec.Provider, s.Region.Spec.Region)}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing FleetRegions: %w", err)
	}
	var all []*v1alpha1.FleetRegion
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			all = append(all, &list.Items[i])
		}
	}
	s.duplicateReason = facts.RegionDuplicateReason(s.Region, all)
	return nil
}

func (r *Reconciler) readTypes(ctx context.Context, s *observation) error {
	var list v1alpha1.InstanceTypeList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing InstanceTypes: %w", err)
	}
	for i := range list.Items {
		s.Types[list.Items[i].Name] = &list.Items[i]
	}
	return nil
}

func (r *Reconciler) readPools(ctx context.Context, s *observation) error {
	if s.Region.Spec.ClusterSource.Claim == nil {
		return nil
	}
	for _, p := range s.Region.Spec.ClusterSource.Claim.Pools {
		var pool hivev1.ClusterPool
		err := r.Client.Get(ctx, types.NamespacedName{Namespace: s.Region.Namespace, Name: p.PoolRef.Name}, &pool)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading ClusterPool %s: %w", p.PoolRef.Name, err)
		}
		if err == nil {
			s.Pools[pool.Name] = &pool
		}
	}
	return nil
}

func (r *Reconciler) readPlanes(ctx context.Context, s *observation) error {
	var list v1alpha1.DataPlaneList
	here := client.MatchingFields{byPlace: placeKey(s.Region.Spec.Provider, s.Region.Spec.Region)}
	if err := r.Client.List(ctx, &list, client.InNamespace(s.Region.Namespace), here, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing DataPlanes: %w", err)
	}
	s.planesByName = make(map[string]*v1alpha1.DataPlane, len(list.Items))
	for i := range list.Items {
		dp := r.planes.NewestVersion(&list.Items[i])
		s.Planes = append(s.Planes, dp)
		s.planesByName[dp.Name] = dp
	}
	return nil
}

func (r *Reconciler) readInstances(ctx context.Context, s *observation) error {
	var list v1alpha1.ServiceInstanceList
	here := client.MatchingFields{byPlace: placeKey(s.Region.Spec.Provider, s.Region.Spec.Region)}
	if err := r.Client.List(ctx, &list, here, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing ServiceInstances: %w", err)
	}
	s.instancesByName = make(map[string]*v1alpha1.ServiceInstance, len(list.Items))
	for i := range list.Items {
		inst := r.instances.NewestVersion(&list.Items[i])
		s.Instances = append(s.Instances, inst)
		s.instancesByName[client.ObjectKeyFromObject(inst).String()] = inst
	}
	return nil
}
