package base

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/explain/clusterstate"
)

// HubSnapshot is the pools, claims and clusters of one namespace or of all namespaces, sorted by
// namespace and name.
type HubSnapshot struct {
	Pools    hivev1.ClusterPoolList
	Claims   hivev1.ClusterClaimList
	Clusters hivev1.ClusterDeploymentList
}

// ReadSnapshot reads a snapshot; an empty namespace stands for all namespaces.
func (h *Hub) ReadSnapshot(ctx context.Context, namespace string) (*HubSnapshot, error) {
	s := &HubSnapshot{}
	if err := h.List(ctx, &s.Pools, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing pools: %w", err)
	}
	if err := h.List(ctx, &s.Claims, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing claims: %w", err)
	}
	clusters, err := h.ListClusters(ctx, namespace)
	if err != nil {
		return nil, err
	}
	s.Clusters = *clusters
	return s, nil
}

// ListClusters lists the clusters whose home is a namespace: for a cluster of a pool, the pool's
// namespace. Each such cluster is stored in its own namespace, so ListClusters reads all.
func (h *Hub) ListClusters(ctx context.Context, namespace string) (*hivev1.ClusterDeploymentList, error) {
	var list hivev1.ClusterDeploymentList
	if err := h.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing clusters: %w", err)
	}
	list.Items = slices.DeleteFunc(list.Items, func(cd hivev1.ClusterDeployment) bool {
		return namespace != "" && clusterstate.HomeNamespace(&cd) != namespace
	})
	return &list, nil
}

// SelectPool returns the part of a snapshot that belongs to a pool.
func (s *HubSnapshot) SelectPool(p *hivev1.ClusterPool) *HubSnapshot {
	part := &HubSnapshot{}
	for _, c := range s.Claims.Items {
		if c.Namespace == p.Namespace && c.Spec.ClusterPoolName == p.Name {
			part.Claims.Items = append(part.Claims.Items, c)
		}
	}
	for _, cd := range s.Clusters.Items {
		if ref := clusterstate.PoolReference(&cd); ref.Namespace == p.Namespace && ref.PoolName == p.Name {
			part.Clusters.Items = append(part.Clusters.Items, cd)
		}
	}
	return part
}

// CountMembers counts the clusters and claims in a pool's part of a snapshot.
func (s *HubSnapshot) CountMembers(p *hivev1.ClusterPool, now time.Time) clusterstate.Tally {
	return clusterstate.CountPool(p, s.Clusters.Items, s.Claims.Items, now)
}
