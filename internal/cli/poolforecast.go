package cli

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/explain/poolforecast"
)

// previewPool computes the plan for a pool of the hub as its controller does.
func previewPool(ctx context.Context, h *base.Hub, p *hivev1.ClusterPool, now time.Time) (poolforecast.Forecast, error) {
	s, err := h.ReadSnapshot(ctx, p.Namespace)
	if err != nil {
		return poolforecast.Forecast{}, err
	}
	var customizations hivev1.ClusterDeploymentCustomizationList
	if len(p.Spec.Inventory) > 0 || len(p.Status.Inventory) > 0 {
		if err := h.List(ctx, &customizations, client.InNamespace(p.Namespace)); err != nil {
			return poolforecast.Forecast{}, fmt.Errorf("listing customizations: %w", err)
		}
	}
	part := s.SelectPool(p)
	f := poolforecast.New(p, part.Claims.Items, part.Clusters.Items, customizations.Items)
	if p.Unreadable != "" {
		return f, nil // the controller makes no plan either
	}
	if err := f.Decide(now); err != nil {
		return f, fmt.Errorf("planning pool %s: %w", p.Name, err)
	}
	return f, nil
}
