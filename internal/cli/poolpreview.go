package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/claimset"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/explain/poolplan"
)

// previewPool computes the plan for a pool of the hub as its controller does.
func previewPool(ctx context.Context, h *base.Hub, p *hivev1.ClusterPool, now time.Time) (poolplan.Evaluation, error) {
	s, err := h.ReadSnapshot(ctx, p.Namespace)
	if err != nil {
		return poolplan.Evaluation{}, err
	}
	var customizations hivev1.ClusterDeploymentCustomizationList
	if len(p.Spec.Inventory) > 0 || len(p.Status.Inventory) > 0 {
		if err := h.List(ctx, &customizations, client.InNamespace(p.Namespace)); err != nil {
			return poolplan.Evaluation{}, fmt.Errorf("listing customizations: %w", err)
		}
	}
	part := s.SelectPool(p)
	f := poolplan.New(p, part.Claims.Items, part.Clusters.Items, customizations.Items)
	if slices.ContainsFunc(part.Claims.Items, func(c hivev1.ClusterClaim) bool { return claimset.FindOwner(&c) != nil }) {
		sets, known, err := readSets(ctx, h, p.Namespace)
		if err != nil {
			return f, err
		}
		f.Sets, f.SetsUnknown = sets, !known
	}
	if f.Policy, err = readPolicy(ctx, h, p); err != nil {
		return f, err
	}
	if p.Unreadable != "" {
		return f, nil // the controller makes no plan either
	}
	if err := f.Decide(now); err != nil {
		return f, fmt.Errorf("planning pool %s: %w", p.Name, err)
	}
	return f, nil
}

// readPolicy returns the PoolPolicy of a pool; nil if it has none, if the hub is older than this kind, or
// if the user may not read it.
func readPolicy(ctx context.Context, h *base.Hub, p *hivev1.ClusterPool) (*v1alpha1.PoolPolicy, error) {
	var policy v1alpha1.PoolPolicy
	err := h.Get(ctx, client.ObjectKeyFromObject(p), &policy)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return nil, nil //nolint:nilnil // documented above
	case err != nil:
		return nil, fmt.Errorf("reading the PoolPolicy of pool %s: %w", p.Name, err)
	}
	return &policy, nil
}
