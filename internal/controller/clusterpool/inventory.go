package clusterpool

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/inventory/lease"
	"hotspare.io/hotspare/internal/kstatus"
	"hotspare.io/hotspare/internal/patch"
	"hotspare.io/hotspare/internal/pool/facts"
	"hotspare.io/hotspare/internal/rbac"
)

// observeCustomizations reads the customizations that a pool lists, has recorded, or has clusters
// of.
func (r *Reconciler) observeCustomizations(ctx context.Context, s *observation) error {
	var err error
	if s.customizations, err = getCustomizations(ctx, r.Client, s.poolObjects()); err != nil {
		return err
	}
	for name, c := range s.customizations {
		s.customizations[name] = r.customizations.NewestVersion(c)
	}
	return nil
}

// getCustomizations returns, by name, the existing ones among the customizations that a pool lists,
// has recorded, or has clusters of.
func getCustomizations(ctx context.Context, c client.Reader, o facts.Objects) (map[string]*hivev1.ClusterDeploymentCustomization, error) {
	out := map[string]*hivev1.ClusterDeploymentCustomization{}
	for _, name := range o.CustomizationNames() {
		var found hivev1.ClusterDeploymentCustomization
		err := c.Get(ctx, types.NamespacedName{Namespace: o.Pool.Namespace, Name: name}, &found)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading customization %s: %w", name, err)
		}
		out[name] = &found
	}
	return out, nil
}

// reportInvalidCustomizations sets ApplySucceeded=False on unused customizations that do not apply
// to this pool, with the reason. It must run before a name gets another customization: a process
// that has not seen this customization's error, and is about to acquire it, then gets a conflict.
func (r *Reconciler) reportInvalidCustomizations(ctx context.Context, s *observation) error {
	for _, name := range slices.Sorted(maps.Keys(s.inventoryPlan.Entries)) {
		c, e := s.customizations[name], s.inventoryPlan.Entries[name]
		if e.Status != hivev1.InventoryBrokenByConfiguration || c == nil || c.Unreadable != "" {
			continue
		}
		by := "pool " + s.pool.Name + ": "
		if lease.IsReportedInvalid(c) && !s.isReservedForPending(name) {
			told := lease.FindCondition(c, hivev1.CustomizationApplySucceeded).Message
			if told != by+e.Message && told != by+s.pool.Status.Inventory[name].Message {
				continue // another pool has reported it; two pools with different messages would overwrite each other forever
			}
		}
		before := c.DeepCopy()
		c = c.DeepCopy()
		lease.ReportInvalid(c, by+e.Message, r.Clock.Now())
		kstatus.ReportCustomization(c, r.Clock.Now())
		wrote, err := patch.Status(ctx, r.Client, before, c)
		if err != nil {
			return fmt.Errorf("telling that customization %s does not apply: %w", name, err)
		}
		if wrote {
			r.recordCustomizationWrite(s, c)
		}
	}
	return nil
}

// isReservedForPending reports whether a customization is recorded for a cluster name that is
// itself recorded. It may have been removed from the inventory since.
func (s *observation) isReservedForPending(name string) bool {
	ref := s.pool.Status.Inventory[name].ClusterDeployment
	return ref != nil && slices.Contains(s.pool.Status.Pending, ref.Name)
}

func (r *Reconciler) recordCustomizationWrite(s *observation, c *hivev1.ClusterDeploymentCustomization) {
	r.customizations.RecordWrite(c, r.Clock.Now())
	s.customizations[c.Name] = c
}

// dropUnassignedPending drops the recorded names for which no customization is left, if nothing was
// created under them. It keeps a name that has a customization's lease by now: the cache is behind,
// or another process is creating the cluster right now.
func (r *Reconciler) dropUnassignedPending(ctx context.Context, s *observation) error {
	if len(s.inventoryPlan.Homeless) == 0 {
		return nil
	}
	if err := r.confirmAllObserved(ctx, s); err != nil {
		return err
	}
	for _, name := range s.inventoryPlan.Homeless {
		for entry, e := range s.pool.Status.Inventory {
			if e.ClusterDeployment == nil || e.ClusterDeployment.Name != name {
				continue
			}
			var c hivev1.ClusterDeploymentCustomization
			err := r.Live.Get(ctx, types.NamespacedName{Namespace: s.pool.Namespace, Name: entry}, &c)
			if client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("reading customization %s: %w", entry, err)
			}
			if holder, held := lease.Holder(&c); held && holder.Name == name {
				return fault.New(fault.Conflict, fmt.Errorf("customization %s is held for cluster %s", entry, name))
			}
		}
		var cd hivev1.ClusterDeployment
		err := r.Live.Get(ctx, types.NamespacedName{Namespace: name, Name: name}, &cd)
		if err == nil {
			return fault.New(fault.Conflict, fmt.Errorf("cluster %s has not been seen yet", name))
		}
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("looking for cluster %s: %w", name, err)
		}
		s.droppedNames = append(s.droppedNames, name)
	}
	return nil
}

// dropForeignPending drops the recorded names for which there is a namespace that was not created
// for a cluster of the pool. Others may also write the status of the pool, which has the record: a
// name there must not lead into somebody else's namespace.
func (r *Reconciler) dropForeignPending(ctx context.Context, s *observation) error {
	ref := hivev1.ClusterPoolReference{Namespace: s.pool.Namespace, PoolName: s.pool.Name}
	for _, name := range s.snapshot.Pending {
		var ns corev1.Namespace
		err := r.Client.Get(ctx, types.NamespacedName{Name: name}, &ns)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading namespace %s: %w", name, err)
		}
		if !rbac.IsPoolNamespace(&ns, ref) {
			ctrl.LoggerFrom(ctx).Info("dropped a recorded name: its namespace was not made for this pool", "namespace", name)
			s.droppedNames = append(s.droppedNames, name)
		}
	}
	return nil
}

// acquireLease acquires the lease of a customization for a cluster that is about to be created, and
// returns the customization as written. Losing a race for it is a Conflict.
func (r *Reconciler) acquireLease(ctx context.Context, s *observation, cluster string) (*hivev1.ClusterDeploymentCustomization, error) {
	name := s.inventoryPlan.Homes[cluster]
	c := s.customizations[name]
	if c == nil {
		return nil, fault.New(fault.Conflict, fmt.Errorf("customization %s for cluster %s is gone", name, cluster))
	}
	if holder, held := lease.Holder(c); held && holder.Name == cluster {
		return c, nil
	}
	before := c.DeepCopy()
	c = c.DeepCopy()
	controllerutil.AddFinalizer(c, hivev1.FinalizerLease)
	if _, err := patch.Object(ctx, r.Client, before, c); err != nil {
		return nil, fmt.Errorf("holding customization %s for cluster %s: %w", name, cluster, err)
	}
	applied, err := json.Marshal(c.Spec)
	if err != nil {
		return nil, fmt.Errorf("encoding customization %s: %w", name, err)
	}
	before = c.DeepCopy()
	lease.Acquire(c, types.NamespacedName{Namespace: cluster, Name: cluster}, s.poolKey(), r.Clock.Now(), string(applied))
	kstatus.ReportCustomization(c, r.Clock.Now())
	if _, err := patch.Status(ctx, r.Client, before, c); err != nil {
		return nil, fmt.Errorf("taking customization %s for cluster %s: %w", name, cluster, err)
	}
	r.customizations.RecordWrite(c, r.Clock.Now())
	return c, nil
}

// confirmRecorded confirms with the API server that the pool still has a recorded name together
// with the customization that was just acquired for it. Another process that is leader too may have
// dropped the name; then the lease ends as if this process had died.
func (r *Reconciler) confirmRecorded(ctx context.Context, s *observation, cluster, with string) error {
	var p hivev1.ClusterPool
	if err := r.Live.Get(ctx, s.poolKey(), &p); err != nil {
		return fmt.Errorf("reading pool %s: %w", s.pool.Name, err)
	}
	ref := p.Status.Inventory[with].ClusterDeployment
	if p.UID != s.pool.UID || !slices.Contains(p.Status.Pending, cluster) || ref == nil || ref.Name != cluster {
		return fault.New(fault.Conflict, fmt.Errorf("cluster %s is no longer recorded with customization %s", cluster, with))
	}
	return nil
}

// decideInventory computes the inventory plan. It confirms with the API server that a cluster
// exists before it counts the cluster's failure or success for a customization: a stale cache may
// show an earlier cluster, which was counted then. It ignores clusters that no longer exist.
func (r *Reconciler) decideInventory(ctx context.Context, s *observation) error {
	for sure := map[string]bool{}; ; {
		var err error
		if s.inventoryPlan, err = s.poolObjects().DecideInventory(); err != nil {
			return err
		}
		cd := s.newlyCountedCluster(sure)
		if cd == nil {
			return nil
		}
		var live hivev1.ClusterDeployment
		if err := r.Live.Get(ctx, client.ObjectKeyFromObject(cd), &live); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("looking for cluster %s: %w", cd.Name, err)
		}
		if live.UID == cd.UID {
			sure[cd.Name] = true
			continue
		}
		r.clusters.ForgetWrite(cd)
		delete(s.clusters, cd.Name)
		delete(s.remembered, cd.Name)
	}
}

// newlyCountedCluster returns a cluster whose failure or success the inventory plan counts and the
// pool's status does not yet; nil if there is none except confirmed ones.
func (s *observation) newlyCountedCluster(sure map[string]bool) *hivev1.ClusterDeployment {
	for _, name := range slices.Sorted(maps.Keys(s.inventoryPlan.Entries)) {
		e, was := s.inventoryPlan.Entries[name], s.pool.Status.Inventory[name]
		if e.Failed == was.Failed && (int32(e.Attempts) == was.Attempts || e.Failed == "" && was.Attempts == 0) || sure[e.Cluster] {
			continue
		}
		if cd := s.clusters[e.Cluster]; cd != nil {
			return cd
		}
	}
	return nil
}

// retainConfirmedDisplaced keeps only confirmed clusters among the displaced ones. A stale cache of
// customizations shows the customization of a new cluster as leased to the previous cluster;
// without confirmation, the pool would replace the new cluster.
func (r *Reconciler) retainConfirmedDisplaced(ctx context.Context, s *observation) error {
	for _, name := range slices.Sorted(maps.Keys(s.inventoryPlan.Displaced)) {
		cd := s.clusters[name]
		if cd.DeletionTimestamp != nil {
			continue // nothing depends on it
		}
		err := r.confirmDisplaced(ctx, s, cd)
		if kind := fault.KindOf(err); err != nil && kind != fault.Conflict && kind != fault.Gone {
			return err
		}
		if err != nil {
			delete(s.inventoryPlan.Displaced, name)
		}
	}
	return nil
}

// confirmDisplaced confirms with the API server that another existing cluster has a cluster's
// customization.
func (r *Reconciler) confirmDisplaced(ctx context.Context, s *observation, cd *hivev1.ClusterDeployment) error {
	var c hivev1.ClusterDeploymentCustomization
	name := facts.CustomizationOf(cd)
	if err := r.Live.Get(ctx, types.NamespacedName{Namespace: s.pool.Namespace, Name: name}, &c); err != nil {
		return fmt.Errorf("reading customization %s: %w", name, err)
	}
	holder, held := lease.Holder(&c)
	if !held || holder.Name == cd.Name {
		return fault.New(fault.Conflict, fmt.Errorf("cluster %s may have customization %s", cd.Name, name))
	}
	var other hivev1.ClusterDeployment
	if err := r.Live.Get(ctx, holder, &other); err != nil {
		return fmt.Errorf("looking for cluster %s, which has customization %s: %w", holder.Name, name, err)
	}
	return nil
}

// poolsOfCustomization returns the pools that list, have recorded, or have clusters of a
// customization.
func (r *Reconciler) poolsOfCustomization(ctx context.Context, o client.Object) []reconcile.Request {
	var list hivev1.ClusterPoolList
	if err := r.Client.List(ctx, &list, client.InNamespace(o.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing pools of a customization")
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		p := &list.Items[i]
		_, recorded := p.Status.Inventory[o.GetName()]
		ref := p.Spec.CustomizationRef
		if ref != nil && ref.Name == o.GetName() {
			r.poolCaches.expireDependencies(p)
		} else if !recorded && !slices.Contains(p.Spec.Inventory.Names(), o.GetName()) {
			continue
		}
		out = append(out, poolRequest(p.Namespace, p.Name)...)
	}
	return out
}

// customizationChanged selects the updates of a customization that matter to a pool: of its
// patches, its holder, and its deletion.
func customizationChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*hivev1.ClusterDeploymentCustomization), e.ObjectNew.(*hivev1.ClusterDeploymentCustomization)
		was, held := lease.Holder(before)
		is, holds := lease.Holder(after)
		return before.Generation != after.Generation || was != is || held != holds ||
			before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero()
	}}
}
