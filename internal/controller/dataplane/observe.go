package dataplane

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fleet/dataplane"
	"hotspare.io/hotspare/internal/fleet/facts"
)

// observeDataPlane reads a data plane and everything that its plan depends on; it returns nil if
// the data plane does not exist, or must be left alone. Before anything is released, it reads from
// the API server instead of the caches.
func (r *Reconciler) observeDataPlane(ctx context.Context, key types.NamespacedName) (*dataplane.Snapshot, error) {
	var dp v1alpha1.DataPlane
	found, err := getObject(ctx, r.Client, key, &dp)
	if err != nil {
		return nil, err
	}
	e := observer{Reconciler: r, skipCache: found && dataplane.IsBeingRemoved(&dp)}
	if e.skipCache {
		dp = v1alpha1.DataPlane{}
		found, err = getObject(ctx, r.Live, key, &dp)
	}
	if err != nil || !found || dp.Unreadable != "" {
		if err == nil && !found {
			r.progress.deleteProgress(key)
		}
		return nil, err
	}
	d := r.progress.getProgress(key, dp.UID)
	s := &dataplane.Snapshot{Now: r.Clock.Now(), Started: r.Started, Plane: &dp, Installed: d.installed, Removed: d.removed, Revoked: d.revoked}
	for _, look := range []func(context.Context, *dataplane.Snapshot) error{
		e.readRegion, e.readCluster, e.readAgent, e.readInstances, e.readMovedInstances, e.readTypes, e.readPools, e.countFailures,
	} {
		if err := look(ctx, s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// observer reads the objects that belong to a data plane.
type observer struct {
	*Reconciler
	// skipCache makes it read from the API server instead of the caches.
	skipCache bool
}

// getConfirmed reads an object: only the API server can confirm that it does not exist.
func (o observer) getConfirmed(ctx context.Context, key types.NamespacedName, into client.Object) (bool, error) {
	if !o.skipCache {
		if found, err := getObject(ctx, o.Client, key, into); found || err != nil {
			return found, err
		}
	}
	return getObject(ctx, o.Live, key, into)
}

func getObject(ctx context.Context, c client.Reader, key types.NamespacedName, into client.Object) (bool, error) {
	err := c.Get(ctx, key, into)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %T %s: %w", into, key, err)
	}
	return true, nil
}

// listByIndex lists objects by an index of the cache; with skipCache, it lists all objects from the
// API server.
func (o observer) listByIndex(ctx context.Context, into client.ObjectList, index, value string) error {
	var err error
	if o.skipCache {
		err = o.Live.List(ctx, into)
	} else {
		err = o.Client.List(ctx, into, client.MatchingFields{index: value})
	}
	if err != nil {
		return fmt.Errorf("listing %T: %w", into, err)
	}
	return nil
}

// readRegion finds the FleetRegion in the data plane's namespace, unless it is a duplicate of an
// older one.
func (o observer) readRegion(ctx context.Context, s *dataplane.Snapshot) error {
	var list v1alpha1.FleetRegionList
	spec := s.Plane.Spec
	if err := o.listByIndex(ctx, &list, byPlace, placeKey(spec.Provider, spec.Region)); err != nil {
		return err
	}
	var all []*v1alpha1.FleetRegion
	for i := range list.Items {
		if fr := &list.Items[i]; fr.Spec.Provider == spec.Provider && fr.Spec.Region == spec.Region {
			all = append(all, fr)
		}
	}
	s.NoRegion = fmt.Sprintf("no FleetRegion has provider %s and region %s in namespace %s", spec.Provider, spec.Region, s.Plane.Namespace)
	for _, fr := range all {
		switch double := facts.RegionDuplicateReason(fr, all); {
		case fr.Namespace != s.Plane.Namespace:
		case double != "":
			s.NoRegion = fmt.Sprintf("FleetRegion %s is ignored: %s", fr.Name, double)
		default:
			s.Region, s.Hosts, s.NoRegion = fr, true, ""
			return nil
		}
	}
	return nil
}

// readCluster reads the claim, ClusterDeployment, MachinePools and kubeconfig.
func (o observer) readCluster(ctx context.Context, s *dataplane.Snapshot) error {
	ref := s.Plane.Spec.ClusterRef
	if ref == nil {
		return nil
	}
	here := func(n *v1alpha1.NameReference) types.NamespacedName {
		return types.NamespacedName{Namespace: s.Plane.Namespace, Name: n.Name}
	}
	switch {
	case ref.KubeconfigSecret != nil:
		var secret corev1.Secret
		found, err := getObject(ctx, o.Live, here(ref.KubeconfigSecret), &secret)
		s.Kubeconfig = found && len(hivev1.KubeconfigOf(secret.Data)) > 0
		return err
	case ref.Claim != nil:
		var claim hivev1.ClusterClaim
		found, err := o.getConfirmed(ctx, here(ref.Claim), &claim)
		if err != nil || !found {
			return err
		}
		s.Claim = &claim
		if claim.Spec.Namespace == "" {
			return nil
		}
		return o.readDeployment(ctx, s, types.NamespacedName{Namespace: claim.Spec.Namespace, Name: claim.Spec.Namespace}, claim.Name)
	case ref.Deployment != nil:
		return o.readDeployment(ctx, s, here(ref.Deployment), "")
	}
	return nil
}

// readDeployment reads the ClusterDeployment, if it belongs to the claim, and its MachinePools.
func (o observer) readDeployment(ctx context.Context, s *dataplane.Snapshot, key types.NamespacedName, claim string) error {
	var cd hivev1.ClusterDeployment
	found, err := o.getConfirmed(ctx, key, &cd)
	if err != nil || !found {
		return err
	}
	if of := cd.Spec.ClusterPoolRef; claim != "" && (of == nil || of.ClaimName != claim || of.Namespace != s.Plane.Namespace) {
		return nil
	}
	s.Cluster = &cd
	var list hivev1.MachinePoolList
	if err := o.Client.List(ctx, &list, client.InNamespace(cd.Namespace)); err != nil {
		return fmt.Errorf("listing MachinePools of cluster %s: %w", key, err)
	}
	for i := range list.Items {
		if mp := &list.Items[i]; mp.Spec.ClusterDeploymentRef.Name == cd.Name && mp.Unreadable == "" {
			s.Nodes = append(s.Nodes, mp)
		}
	}
	return nil
}

func (o observer) readAgent(ctx context.Context, s *dataplane.Snapshot) error {
	var a v1alpha1.DataPlaneAgent
	found, err := o.getConfirmed(ctx, client.ObjectKeyFromObject(s.Plane), &a)
	if found {
		s.Agent = &a
	}
	return err
}

// readInstances lists the instances that name the data plane, its provider and its region.
func (o observer) readInstances(ctx context.Context, s *dataplane.Snapshot) error {
	var list v1alpha1.ServiceInstanceList
	name := planeName(s.Plane.Spec.Provider, s.Plane.Spec.Region, s.Plane.Name)
	if err := o.listByIndex(ctx, &list, byPlane, name); err != nil {
		return err
	}
	for i := range list.Items {
		if si := &list.Items[i]; planeName(si.Spec.Provider, si.Spec.Region, si.Status.DataPlaneName) == name {
			s.Instances = append(s.Instances, si)
		}
	}
	return nil
}

// readMovedInstances reads the instances that are listed for the agent and whose status names
// another data plane, or none.
func (o observer) readMovedInstances(ctx context.Context, s *dataplane.Snapshot) error {
	if s.Agent == nil {
		return nil
	}
	for _, listed := range s.Agent.Spec.Instances {
		here := slices.ContainsFunc(s.Instances, func(i *v1alpha1.ServiceInstance) bool { return string(i.UID) == listed.UID })
		if listed.Reserved || here {
			continue
		}
		var si v1alpha1.ServiceInstance
		found, err := getObject(ctx, o.Client, types.NamespacedName{Namespace: listed.Namespace, Name: listed.Name}, &si)
		if err != nil {
			return err
		}
		if found && string(si.UID) == listed.UID && si.Unreadable == "" {
			s.Moved = append(s.Moved, &si)
		}
	}
	return nil
}

// readTypes reads the InstanceTypes of the data plane and of its instances.
func (o observer) readTypes(ctx context.Context, s *dataplane.Snapshot) error {
	names := slices.Clone(s.Plane.Spec.InstanceTypes)
	for _, i := range s.Instances {
		names = append(names, i.Spec.Type)
	}
	s.Types = map[string]*v1alpha1.InstanceType{}
	for _, name := range names {
		if s.Types[name] != nil {
			continue
		}
		var it v1alpha1.InstanceType
		found, err := getObject(ctx, o.Client, types.NamespacedName{Name: name}, &it)
		if err != nil {
			return err
		}
		if found {
			s.Types[name] = &it
		}
	}
	return nil
}

// readPools reads the ClusterPools that the claim is or could be from.
func (o observer) readPools(ctx context.Context, s *dataplane.Snapshot) error {
	var names []string
	if s.Region != nil && s.Region.Spec.ClusterSource.Claim != nil {
		for _, p := range s.Region.Spec.ClusterSource.Claim.Pools {
			names = append(names, p.PoolRef.Name)
		}
	}
	if s.Claim != nil {
		names = append(names, s.Claim.Spec.ClusterPoolName)
	}
	s.Pools = map[string]*hivev1.ClusterPool{}
	for _, name := range names {
		var pool hivev1.ClusterPool
		found, err := getObject(ctx, o.Client, types.NamespacedName{Namespace: s.Plane.Namespace, Name: name}, &pool)
		if err != nil {
			return err
		}
		if found {
			s.Pools[name] = &pool
		}
	}
	return nil
}

// countFailures counts the remembered Failed data planes that have a type in common.
func (o observer) countFailures(ctx context.Context, s *dataplane.Snapshot) error {
	if s.Plane.Spec.ClusterRef != nil && s.Claim != nil {
		return nil // the pool has already been chosen
	}
	var list v1alpha1.DataPlaneList
	if err := o.Client.List(ctx, &list, client.InNamespace(s.Plane.Namespace)); err != nil {
		return fmt.Errorf("listing data planes: %w", err)
	}
	for _, other := range list.Items {
		if other.Status.Phase == v1alpha1.PhaseFailed && placeKey(other.Spec.Provider, other.Spec.Region) == placeKey(s.Plane.Spec.Provider, s.Plane.Spec.Region) &&
			slices.ContainsFunc(other.Spec.InstanceTypes, func(t string) bool { return slices.Contains(s.Plane.Spec.InstanceTypes, t) }) {
			s.Failures++
		}
	}
	return nil
}
