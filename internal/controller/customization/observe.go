package customization

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/inventory/lease"
	"hotspare.io/hotspare/internal/kstatus"
)

// An observation is everything that a pass has read. The clusters are shared with the cache and
// must be copied before they are changed.
type observation struct {
	lease.Snapshot
	customization *hivev1.ClusterDeploymentCustomization
	clusters      map[types.NamespacedName]*hivev1.ClusterDeployment
}

// observeCustomization reads the customization, the clusters that name it, and its holder.
func (r *Reconciler) observeCustomization(ctx context.Context, key types.NamespacedName) (*observation, error) {
	s := &observation{customization: &hivev1.ClusterDeploymentCustomization{}, clusters: map[types.NamespacedName]*hivev1.ClusterDeployment{}}
	exists, err := getCustomization(ctx, r.Client, key, s.customization)
	if err != nil {
		return nil, err
	}
	s.Snapshot = readCustomization(s.customization)
	s.Key, s.Exists = key, exists
	var list hivev1.ClusterDeploymentList
	if err := r.Client.List(ctx, &list, client.MatchingFields{byCustomization: key.String()}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the clusters of customization %s: %w", key, err)
	}
	for i := range list.Items {
		s.addCluster(&list.Items[i])
	}
	if !s.Leased || s.FindCluster(s.Holder) != nil {
		return s, nil
	}
	var cd hivev1.ClusterDeployment
	if err = r.Client.Get(ctx, s.Holder, &cd); err == nil {
		s.addCluster(&cd)
	}
	return s, client.IgnoreNotFound(err)
}

func (o *observation) addCluster(cd *hivev1.ClusterDeployment) {
	c := readCluster(cd)
	o.Snapshot.Clusters = append(o.Snapshot.Clusters, c)
	o.clusters[c.Key] = cd
}

// getCustomization reads a customization, and reports whether it exists. A customization without a
// name does not.
func getCustomization(ctx context.Context, from client.Reader, key types.NamespacedName, into *hivev1.ClusterDeploymentCustomization) (bool, error) {
	if key.Name == "" {
		return false, nil
	}
	err := from.Get(ctx, key, into)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading customization %s: %w", key, err)
	}
	return err == nil, nil
}

// observeLive returns the snapshot with everything that the release of the lease depends on read
// from the API server. It reads the pool first: a name leaves the pool's record only when the
// cluster exists.
func (r *Reconciler) observeLive(ctx context.Context, f lease.Snapshot) (lease.Snapshot, error) {
	var p hivev1.ClusterPool
	if f.Pool.Name != "" {
		if err := r.Live.Get(ctx, f.Pool, &p); client.IgnoreNotFound(err) != nil {
			return f, fmt.Errorf("reading pool %s: %w", f.Pool, err)
		}
	}
	f.HolderRecorded, f.PoolUnreadable = slices.Contains(p.Status.Pending, f.Holder.Name), p.Unreadable != ""
	var cd hivev1.ClusterDeployment
	f.Clusters = nil
	err := r.Live.Get(ctx, f.Holder, &cd)
	if err == nil {
		f.Clusters = []lease.Cluster{readCluster(&cd)}
	}
	if client.IgnoreNotFound(err) != nil {
		return f, fmt.Errorf("looking for cluster %s: %w", f.Holder, err)
	}
	return f, nil
}

// isStatusCurrent reports whether kstatus would change nothing in a customization's status.
func isStatusCurrent(c *hivev1.ClusterDeploymentCustomization) bool {
	now := c.DeepCopy()
	kstatus.ReportCustomization(now, time.Time{})
	return equality.Semantic.DeepEqual(now.Status, c.Status)
}

// readCustomization returns the snapshot of a customization without its clusters.
func readCustomization(c *hivev1.ClusterDeploymentCustomization) lease.Snapshot {
	f := lease.Snapshot{
		Unreadable:    c.Unreadable != "",
		Deleting:      c.DeletionTimestamp != nil,
		HasFinalizer:  controllerutil.ContainsFinalizer(c, hivev1.FinalizerLease),
		Pool:          lease.HolderPool(c),
		StatusCurrent: isStatusCurrent(c),
	}
	f.Holder, f.Leased = lease.Holder(c)
	if have := lease.FindCondition(c, hivev1.CustomizationAvailable); have != nil {
		f.Available = have.Status
	}
	if have := lease.FindCondition(c, hivev1.CustomizationApplySucceeded); have != nil {
		f.ApplyReason = have.Reason
	}
	return f
}

func readCluster(cd *hivev1.ClusterDeployment) lease.Cluster {
	c := lease.Cluster{
		Key:                     client.ObjectKeyFromObject(cd),
		UID:                     cd.UID,
		Created:                 cd.CreationTimestamp.Time,
		Customization:           customizationOf(cd),
		Deleting:                cd.DeletionTimestamp != nil,
		HasDeprovisionFinalizer: controllerutil.ContainsFinalizer(cd, hivev1.FinalizerDeprovision),
		HasLeaseFinalizer:       controllerutil.ContainsFinalizer(cd, hivev1.FinalizerLease),
		Installed:               cd.Spec.Installed,
		Stopped:                 condition.IsTrue(cd.Status.Conditions, hivev1.ClusterProvisionStopped),
		Unreadable:              cd.Unreadable != "",
	}
	if ref := cd.Spec.ClusterPoolRef; ref != nil {
		c.Pool = types.NamespacedName{Namespace: ref.Namespace, Name: ref.PoolName}
	}
	return c
}

// customizationOf returns the customization that a cluster names. A cluster that names none is
// assigned to a customization without a name, so that its finalizer can be removed too.
func customizationOf(cd *hivev1.ClusterDeployment) types.NamespacedName {
	key := types.NamespacedName{Namespace: cd.Namespace}
	if ref := cd.Spec.ClusterPoolRef; ref != nil {
		key.Namespace = ref.Namespace
		if ref.CustomizationRef != nil {
			key.Name = ref.CustomizationRef.Name
		}
	}
	return key
}

// isRelevantCluster reports whether a cluster names a customization or has hotspare's lease
// finalizer.
func isRelevantCluster(cd *hivev1.ClusterDeployment) bool {
	return customizationOf(cd).Name != "" || controllerutil.ContainsFinalizer(cd, hivev1.FinalizerLease)
}
