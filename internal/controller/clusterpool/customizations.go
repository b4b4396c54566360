package clusterpool

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/inventory"
	"hotspare.io/hotspare/internal/inventory/lease"
	"hotspare.io/hotspare/internal/pool/facts"
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

// A templateCache caches which customizations apply to the template of a pool.
type templateCache struct {
	at         time.Time
	generation int64
	template   []byte
	// faults has the error of each customization and version.
	faults map[types.NamespacedName]string
}

// customizationError explains why a customization does not apply to the pool's template; "" if it
// does.
func (t *templateCache) customizationError(p *hivev1.ClusterPool, c *hivev1.ClusterDeploymentCustomization) (string, error) {
	version, err := inventory.CustomizationVersion(c.Spec)
	if err != nil {
		return "", err
	}
	key := types.NamespacedName{Namespace: c.Name, Name: version}
	words, known := t.faults[key]
	if !known {
		words = facts.CustomizationError(t.template, p, c)
		t.faults[key] = words
	}
	return words, nil
}

// checkCustomizations finds the customizations that a cluster could be made with but that do not
// apply to the pool's install-config, and records the errors as text. t is nil if there is nothing to
// try them on.
func (o *observation) checkCustomizations(t *templateCache) error {
	if t == nil {
		return nil
	}
	o.faults = map[string]string{}
	for name, c := range o.customizations {
		if !slices.Contains(o.pool.Spec.Inventory.Names(), name) && !o.poolObjects().IsReservedForName(name) {
			continue
		}
		words, err := t.customizationError(o.pool, c)
		if err != nil {
			return err
		}
		if words != "" {
			o.faults[name] = words
		}
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
			return fmt.Errorf("reading cluster %s: %w", cd.Name, err)
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
func (o *observation) newlyCountedCluster(sure map[string]bool) *hivev1.ClusterDeployment {
	for _, name := range slices.Sorted(maps.Keys(o.inventoryPlan.Entries)) {
		e, was := o.inventoryPlan.Entries[name], o.pool.Status.Inventory[name]
		if e.Failed == was.Failed && (int32(e.Attempts) == was.Attempts || e.Failed == "" && was.Attempts == 0) || sure[e.Cluster] {
			continue
		}
		if cd := o.clusters[e.Cluster]; cd != nil {
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
		return fault.New(fault.Conflict, fmt.Errorf("cluster %s may have the lease of customization %s", cd.Name, name))
	}
	var other hivev1.ClusterDeployment
	if err := r.Live.Get(ctx, holder, &other); err != nil {
		return fmt.Errorf("looking for cluster %s, which has customization %s: %w", holder.Name, name, err)
	}
	return nil
}
