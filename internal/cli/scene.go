package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/standing"
)

// scene is what there is in a namespace, or in all of them, sorted by namespace and name.
type scene struct {
	pools    hivev1.ClusterPoolList
	claims   hivev1.ClusterClaimList
	clusters hivev1.ClusterDeploymentList
}

// see reads a scene; an empty namespace stands for all.
func (h *hub) see(ctx context.Context, namespace string) (*scene, error) {
	s := &scene{}
	if err := h.List(ctx, &s.pools, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing pools: %w", err)
	}
	if err := h.List(ctx, &s.claims, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing claims: %w", err)
	}
	clusters, err := h.seeClusters(ctx, namespace)
	if err != nil {
		return nil, err
	}
	s.clusters = *clusters
	return s, nil
}

// seeClusters lists the clusters at home in a namespace. Each lives in a namespace
// of its own, so all are read.
func (h *hub) seeClusters(ctx context.Context, namespace string) (*hivev1.ClusterDeploymentList, error) {
	var list hivev1.ClusterDeploymentList
	if err := h.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing clusters: %w", err)
	}
	list.Items = slices.DeleteFunc(list.Items, func(cd hivev1.ClusterDeployment) bool {
		return namespace != "" && standing.Home(&cd) != namespace
	})
	return &list, nil
}

// of is the part of a scene that belongs to a pool.
func (s *scene) of(p *hivev1.ClusterPool) *scene {
	part := &scene{}
	for _, c := range s.claims.Items {
		if c.Namespace == p.Namespace && c.Spec.ClusterPoolName == p.Name {
			part.claims.Items = append(part.claims.Items, c)
		}
	}
	for _, cd := range s.clusters.Items {
		if ref := standing.PoolOf(&cd); ref.Namespace == p.Namespace && ref.PoolName == p.Name {
			part.clusters.Items = append(part.clusters.Items, cd)
		}
	}
	return part
}

// tally counts what is in a pool's part of a scene.
func (s *scene) tally(p *hivev1.ClusterPool, now time.Time) standing.Tally {
	return standing.Count(p, s.clusters.Items, s.claims.Items, now)
}
