package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/explain/clusterstate"
)

// hubSnapshot is what there is in a namespace, or in all of them, sorted by namespace and name.
type hubSnapshot struct {
	pools    hivev1.ClusterPoolList
	claims   hivev1.ClusterClaimList
	clusters hivev1.ClusterDeploymentList
}

// readSnapshot reads a scene; an empty namespace stands for all.
func (h *hub) readSnapshot(ctx context.Context, namespace string) (*hubSnapshot, error) {
	s := &hubSnapshot{}
	if err := h.List(ctx, &s.pools, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing pools: %w", err)
	}
	if err := h.List(ctx, &s.claims, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing claims: %w", err)
	}
	clusters, err := h.listClusters(ctx, namespace)
	if err != nil {
		return nil, err
	}
	s.clusters = *clusters
	return s, nil
}

// listClusters lists the clusters at home in a namespace. Each lives in a namespace
// of its own, so all are read.
func (h *hub) listClusters(ctx context.Context, namespace string) (*hivev1.ClusterDeploymentList, error) {
	var list hivev1.ClusterDeploymentList
	if err := h.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing clusters: %w", err)
	}
	list.Items = slices.DeleteFunc(list.Items, func(cd hivev1.ClusterDeployment) bool {
		return namespace != "" && clusterstate.HomeNamespace(&cd) != namespace
	})
	return &list, nil
}

// selectPool is the part of a scene that belongs to a pool.
func (s *hubSnapshot) selectPool(p *hivev1.ClusterPool) *hubSnapshot {
	part := &hubSnapshot{}
	for _, c := range s.claims.Items {
		if c.Namespace == p.Namespace && c.Spec.ClusterPoolName == p.Name {
			part.claims.Items = append(part.claims.Items, c)
		}
	}
	for _, cd := range s.clusters.Items {
		if ref := clusterstate.PoolReference(&cd); ref.Namespace == p.Namespace && ref.PoolName == p.Name {
			part.clusters.Items = append(part.clusters.Items, cd)
		}
	}
	return part
}

// countMembers counts what is in a pool's part of a scene.
func (s *hubSnapshot) countMembers(p *hivev1.ClusterPool, now time.Time) clusterstate.Tally {
	return clusterstate.CountPool(p, s.clusters.Items, s.claims.Items, now)
}
