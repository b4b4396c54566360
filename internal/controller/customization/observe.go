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
	snapshot
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
	s.snapshot = readCustomization(s.customization)
	s.exists = exists
	var list hivev1.ClusterDeploymentList
	if err := r.Client.List(ctx, &list, client.MatchingFields{byCustomization: key.String()}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the clusters of customization %s: %w", key, err)
	}
	for i := range list.Items {
		s.addCluster(&list.Items[i])
	}
	if !s.leased || s.findCluster(s.holder) != nil {
		return s, nil
	}
	var cd hivev1.ClusterDeployment
	if err = r.Client.Get(ctx, s.holder, &cd); err == nil {
		s.addCluster(&cd)
	}
	return s, client.IgnoreNotFound(err)
}

func (s *observation) addCluster(cd *hivev1.ClusterDeployment) {
	c := readCluster(cd)
	s.snapshot.clusters = append(s.snapshot.clusters, c)
	s.clusters[c.key] = cd
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
func (r *Reconciler) observeLive(ctx context.Context, f snapshot) (snapshot, error) {
	var p hivev1.ClusterPool
	if f.pool.Name != "" {
		if err := r.Live.Get(ctx, f.pool, &p); client.IgnoreNotFound(err) != nil {
			return f, fmt.Errorf("reading pool %s: %w", f.pool, err)
		}
	}
	f.holderRecorded, f.poolUnreadable = slices.Contains(p.Status.Pending, f.holder.Name), p.Unreadable != ""
	var cd hivev1.ClusterDeployment
	f.clusters = nil
	err := r.Live.Get(ctx, f.holder, &cd)
	if err == nil {
		f.clusters = []cluster{readCluster(&cd)}
	}
	if client.IgnoreNotFound(err) != nil {
		return f, fmt.Errorf("looking for cluster %s: %w", f.holder, err)
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
func readCustomization(c *hivev1.ClusterDeploymentCustomization) snapshot {
	f := snapshot{
		unreadable:    c.Unreadable != "",
		deleting:      c.DeletionTimestamp != nil,
		hasFinalizer:  controllerutil.ContainsFinalizer(c, hivev1.FinalizerLease),
		pool:          lease.HolderPool(c),
		statusCurrent: isStatusCurrent(c),
	}
	f.holder, f.leased = lease.Holder(c)
	if have := lease.FindCondition(c, hivev1.CustomizationAvailable); have != nil {
		f.available = string(have.Status)
	}
	if have := lease.FindCondition(c, hivev1.CustomizationApplySucceeded); have != nil {
		f.applyReason = have.Reason
	}
	return f
}

func readCluster(cd *hivev1.ClusterDeployment) cluster {
	c := cluster{
		key:                     client.ObjectKeyFromObject(cd),
		uid:                     cd.UID,
		created:                 cd.CreationTimestamp.Time,
		customization:           customizationOf(cd),
		deleting:                cd.DeletionTimestamp != nil,
		hasDeprovisionFinalizer: controllerutil.ContainsFinalizer(cd, hivev1.FinalizerDeprovision),
		hasLeaseFinalizer:       controllerutil.ContainsFinalizer(cd, hivev1.FinalizerLease),
		installed:               cd.Spec.Installed,
		stopped:                 condition.IsTrue(cd.Status.Conditions, hivev1.ClusterProvisionStopped),
		unreadable:              cd.Unreadable != "",
	}
	if ref := cd.Spec.ClusterPoolRef; ref != nil {
		c.pool = types.NamespacedName{Namespace: ref.Namespace, Name: ref.PoolName}
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
