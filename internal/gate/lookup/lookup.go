// Package lookup reads what a pool requires of its spare clusters. The controller of pools and that of gates
// use it, so that both require the same.
package lookup

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/gate"
)

// ReadRequirement reads what a pool requires of its spares: the gates of the ClusterBootstrap that its PoolPolicy
// names. A ClusterBootstrap that does not exist is a Problem of the Requirement, not an error.
func ReadRequirement(ctx context.Context, c client.Reader, pool types.NamespacedName) (gate.Requirement, error) {
	p, b, err := ReadBootstrap(ctx, c, pool)
	if err != nil {
		return gate.Requirement{}, err
	}
	return gate.NewRequirement(p, b), nil
}

// ReadBootstrap reads the PoolPolicy of a pool, and the ClusterBootstrap that it names; nil if they do not exist.
func ReadBootstrap(ctx context.Context, c client.Reader, pool types.NamespacedName) (*v1alpha1.PoolPolicy, *v1alpha1.ClusterBootstrap, error) {
	var p v1alpha1.PoolPolicy
	err := c.Get(ctx, pool, &p)
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading the policy of pool %s: %w", pool, err)
	}
	name := gate.BootstrapName(&p)
	if name == "" {
		return &p, nil, nil
	}
	var b v1alpha1.ClusterBootstrap
	err = c.Get(ctx, types.NamespacedName{Namespace: pool.Namespace, Name: name}, &b)
	switch {
	case apierrors.IsNotFound(err):
		return &p, nil, nil
	case err != nil:
		return nil, nil, fmt.Errorf("reading ClusterBootstrap %s: %w", name, err)
	}
	return &p, &b, nil
}

// PoolsOf returns the pools that use a ClusterBootstrap.
func PoolsOf(ctx context.Context, c client.Reader, bootstrap types.NamespacedName) ([]types.NamespacedName, error) {
	var list v1alpha1.PoolPolicyList
	if err := c.List(ctx, &list, client.InNamespace(bootstrap.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the policies of pools: %w", err)
	}
	var out []types.NamespacedName
	for i := range list.Items {
		if gate.BootstrapName(&list.Items[i]) == bootstrap.Name {
			out = append(out, client.ObjectKeyFromObject(&list.Items[i]))
		}
	}
	return out, nil
}
