package clusterpool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/claimset"
	"hotspare.io/hotspare/internal/metrics"
	"hotspare.io/hotspare/internal/pool"
	"hotspare.io/hotspare/internal/pool/facts"
)

// ListSnapshots reads every pool as a pass does, except what costs a request: the pool's
// dependencies, and the room of its platform. Use it for counting, not for deciding. c reads from
// caches that AddIndexes has been called on. If it returns an error, it also returns the pools that
// could be read.
func ListSnapshots(ctx context.Context, c client.Reader, now time.Time) (map[types.NamespacedName]pool.Snapshot, error) {
	var pools hivev1.ClusterPoolList
	if err := c.List(ctx, &pools, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing pools: %w", err)
	}
	out := make(map[types.NamespacedName]pool.Snapshot, len(pools.Items))
	var errs []error
	for i := range pools.Items {
		key := client.ObjectKeyFromObject(&pools.Items[i])
		s, err := readSnapshot(ctx, c, &pools.Items[i], now)
		if err != nil {
			errs = append(errs, fmt.Errorf("reading pool %s: %w", key, err))
			continue
		}
		out[key] = s
	}
	return out, errors.Join(errs...)
}

func readSnapshot(ctx context.Context, c client.Reader, p *hivev1.ClusterPool, now time.Time) (pool.Snapshot, error) {
	var clusters hivev1.ClusterDeploymentList
	if err := c.List(ctx, &clusters, client.MatchingFields{byPool: client.ObjectKeyFromObject(p).String()}, client.UnsafeDisableDeepCopy); err != nil {
		return pool.Snapshot{}, fmt.Errorf("listing its clusters: %w", err)
	}
	var claims hivev1.ClusterClaimList
	if err := c.List(ctx, &claims, client.InNamespace(p.Namespace), client.MatchingFields{byClaim: p.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return pool.Snapshot{}, fmt.Errorf("listing its claims: %w", err)
	}
	var sets v1alpha1.ClaimSetList
	if err := c.List(ctx, &sets, client.InNamespace(p.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return pool.Snapshot{}, fmt.Errorf("listing its ClaimSets: %w", err)
	}
	o := facts.Objects{
		Pool: p, Recipe: p.Status.RecipeVersion, Sets: claimset.ByUID(sets.Items),
		Clusters: make(map[string]*hivev1.ClusterDeployment, len(clusters.Items)),
		Claims:   make(map[string]*hivev1.ClusterClaim, len(claims.Items)),
	}
	o.Gates, o.Steps = facts.RecordedRequirements(p)
	for i := range clusters.Items {
		o.Clusters[clusters.Items[i].Name] = &clusters.Items[i]
	}
	for i := range claims.Items {
		o.Claims[claims.Items[i].Name] = &claims.Items[i]
	}
	var err error
	if o.Customizations, err = getCustomizations(ctx, c, o); err != nil {
		return pool.Snapshot{}, err
	}
	inventoryPlan, err := o.DecideInventory()
	if err != nil {
		return pool.Snapshot{}, err
	}
	return o.PoolSnapshot(inventoryPlan, now)
}

// CountInventories counts the entries of the inventory of every pool that has one, from the pool's
// status.
func CountInventories(ctx context.Context, c client.Reader) (map[types.NamespacedName]metrics.Inventory, error) {
	var pools hivev1.ClusterPoolList
	if err := c.List(ctx, &pools, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing pools: %w", err)
	}
	out := map[types.NamespacedName]metrics.Inventory{}
	for i := range pools.Items {
		p := &pools.Items[i]
		if len(p.Status.Inventory) == 0 {
			continue
		}
		inventory := metrics.Inventory{}
		for _, entry := range p.Status.Inventory {
			inventory[entry.Status]++
		}
		out[client.ObjectKeyFromObject(p)] = inventory
	}
	return out, nil
}
