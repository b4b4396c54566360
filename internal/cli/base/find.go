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

// FindCluster finds a cluster by the name of its claim in the command's namespace or, failing
// that, by its own name.
func (a *App) FindCluster(ctx context.Context, h *Hub, name string) (*hivev1.ClusterDeployment, error) {
	cd, err := a.FindClaimedCluster(ctx, h, name)
	if !errors.Is(err, errNoClaim) {
		return cd, err
	}
	cd = &hivev1.ClusterDeployment{}
	for _, namespace := range []string{name, h.Namespace} { // first a cluster of a pool, then one without a pool
		err := h.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, cd)
		if !apierrors.IsNotFound(err) {
			return cd, err
		}
	}
	return nil, WithRemedy(fmt.Errorf("there is no claim %[2]q in namespace %[1]s and no cluster %[2]q", h.Namespace, name),
		"see: "+a.FormatCommand("claim list")+"\n  and: "+a.FormatCommand("cluster list"))
}

var errNoClaim = errors.New("no such claim")

// FindClaimedCluster returns the cluster of a claim; errNoClaim if the claim does not exist.
func (a *App) FindClaimedCluster(ctx context.Context, h *Hub, name string) (*hivev1.ClusterDeployment, error) {
	var c hivev1.ClusterClaim
	err := h.Get(ctx, h.ObjectKey(name), &c)
	if err != nil {
		return nil, a.ClaimReadError(h, name, err)
	}
	return a.GetClaimCluster(ctx, h, &c)
}

// ClaimReadError explains why reading a claim failed, usually because it does not exist.
func (a *App) ClaimReadError(h *Hub, name string, err error) error {
	if apierrors.IsNotFound(err) && !IsAPIMissing(err) {
		return WithRemedy(fmt.Errorf("%w in namespace %s: %s", errNoClaim, h.Namespace, name), "see: "+a.FormatCommand("claim list"))
	}
	return fmt.Errorf("reading claim %s: %w", name, err)
}

// GetClaimCluster returns the cluster that is assigned to a claim.
func (a *App) GetClaimCluster(ctx context.Context, h *Hub, c *hivev1.ClusterClaim) (*hivev1.ClusterDeployment, error) {
	if c.Spec.Namespace == "" {
		return nil, fmt.Errorf("claim %s has no cluster yet: %s", c.Name, DescribeClaimProgress(c, a.Clock.Now()))
	}
	var cd hivev1.ClusterDeployment
	err := h.Get(ctx, client.ObjectKey{Namespace: c.Spec.Namespace, Name: c.Spec.Namespace}, &cd)
	if apierrors.IsNotFound(err) && !IsAPIMissing(err) {
		return nil, fmt.Errorf("cluster %[2]s of claim %[1]s was deleted; release the claim and create another", c.Name, c.Spec.Namespace)
	}
	return &cd, err
}

// GetPool reads a pool. If it does not exist, the error lists the pools of the namespace.
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
		describeOtherPools(others.Items)+"; list the pools of all namespaces with: "+a.FormatCommand("pool list -A"))
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
