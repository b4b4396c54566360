package base

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/explain/humanize"
)

// FindCluster finds a cluster by its claim's name, in the namespace, or else by its own.
func (a *App) FindCluster(ctx context.Context, h *Hub, name string) (*hivev1.ClusterDeployment, error) {
	cd, err := a.FindClaimedCluster(ctx, h, name)
	if !errors.Is(err, errNoClaim) {
		return cd, err
	}
	cd = &hivev1.ClusterDeployment{}
	for _, namespace := range []string{name, h.Namespace} { // a pool's cluster, then one without a pool
		err := h.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, cd)
		if !apierrors.IsNotFound(err) {
			return cd, err
		}
	}
	return nil, WithRemedy(fmt.Errorf("namespace %s has no claim, and there is no cluster, called %q", h.Namespace, name),
		"see: "+a.FormatCommand("claim list")+"\n  and: "+a.FormatCommand("cluster list"))
}

var errNoClaim = errors.New("no such claim")

// FindClaimedCluster is the cluster of a claim by its name; errNoClaim if there is no such claim.
func (a *App) FindClaimedCluster(ctx context.Context, h *Hub, name string) (*hivev1.ClusterDeployment, error) {
	var c hivev1.ClusterClaim
	err := h.Get(ctx, h.ObjectKey(name), &c)
	if err != nil {
		return nil, a.ClaimReadError(h, name, err)
	}
	return a.GetClaimCluster(ctx, h, &c)
}

// ClaimReadError says why a claim could not be read: mostly there is none.
func (a *App) ClaimReadError(h *Hub, name string, err error) error {
	if apierrors.IsNotFound(err) && !IsAPIMissing(err) {
		return WithRemedy(fmt.Errorf("%w in namespace %s: %s", errNoClaim, h.Namespace, name), "see: "+a.FormatCommand("claim list"))
	}
	return fmt.Errorf("reading claim %s: %w", name, err)
}

// GetClaimCluster is the cluster that a claim has.
func (a *App) GetClaimCluster(ctx context.Context, h *Hub, c *hivev1.ClusterClaim) (*hivev1.ClusterDeployment, error) {
	if c.Spec.Namespace == "" {
		return nil, fmt.Errorf("claim %s has no cluster yet: %s", c.Name, DescribeClaimProgress(c, a.Clock.Now()))
	}
	var cd hivev1.ClusterDeployment
	err := h.Get(ctx, client.ObjectKey{Namespace: c.Spec.Namespace, Name: c.Spec.Namespace}, &cd)
	if apierrors.IsNotFound(err) && !IsAPIMissing(err) {
		return nil, fmt.Errorf("the cluster of claim %s, %s, is gone; release the claim and make another", c.Name, c.Spec.Namespace)
	}
	return &cd, err
}

// GetPool reads a pool; the error for one that does not exist names those that do.
func (a *App) GetPool(ctx context.Context, h *Hub, name string) (*hivev1.ClusterPool, error) {
	var p hivev1.ClusterPool
	err := h.Get(ctx, h.ObjectKey(name), &p)
	switch {
	case err == nil:
		return &p, nil
	case !apierrors.IsNotFound(err) || IsAPIMissing(err):
		return nil, fmt.Errorf("reading pool %s: %w", name, err)
	}
	var others hivev1.ClusterPoolList
	if err := h.List(ctx, &others, client.InNamespace(h.Namespace)); err != nil {
		return nil, fmt.Errorf("listing pools: %w", err)
	}
	return nil, WithRemedy(fmt.Errorf("namespace %s has no pool %q", h.Namespace, name),
		describeOtherPools(others.Items)+"; look into the others with: "+a.FormatCommand("pool list -A"))
}

func describeOtherPools(pools []hivev1.ClusterPool) string {
	if len(pools) == 0 {
		return "it has no pools"
	}
	var names []string
	for _, p := range pools {
		names = append(names, p.Name)
	}
	return "it has " + humanize.JoinWords(names)
}
