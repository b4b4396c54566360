// Package lookup reads the steps that a pool's spare clusters must take. The controller of pools and that of steps
// use it, so that both require the same.
package lookup

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/bootstrap"
	"hotspare.io/hotspare/internal/gate"
	gatelookup "hotspare.io/hotspare/internal/gate/lookup"
)

// A Reader reads steps. Cached reads from caches, Live from the API server: the ConfigMaps and Secrets of a hub
// are not cached.
type Reader struct{ Cached, Live client.Reader }

// ReadRequirement reads what a pool requires of its spares: the steps of the ClusterBootstrap that its PoolPolicy
// names, with the objects that they refer to. Whatever does not exist is a Problem of the Requirement, not an
// error.
func (r Reader) ReadRequirement(ctx context.Context, pool types.NamespacedName) (bootstrap.Requirement, error) {
	p, b, err := gatelookup.ReadBootstrap(ctx, r.Cached, pool)
	if err != nil {
		return bootstrap.Requirement{}, err
	}
	return r.ResolveSteps(ctx, p, b)
}

// ResolveSteps returns what a pool with policy p requires. b is the ClusterBootstrap that the policy names; both
// are nil if they do not exist.
func (r Reader) ResolveSteps(ctx context.Context, p *v1alpha1.PoolPolicy, b *v1alpha1.ClusterBootstrap) (bootstrap.Requirement, error) {
	if problem := gate.NewRequirement(p, b).Problem; problem != "" {
		return bootstrap.NewUnresolved(problem), nil
	}
	if b == nil {
		return bootstrap.Requirement{}, nil
	}
	sources := map[bootstrap.Reference]bootstrap.Source{}
	for _, ref := range bootstrap.ListReferences(b.Spec.Steps) {
		s, err := r.readSource(ctx, types.NamespacedName{Namespace: b.Namespace, Name: ref.Name}, ref.Secret)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return bootstrap.Requirement{}, fmt.Errorf("reading %s of ClusterBootstrap %s: %w", ref, b.Name, err)
		}
		sources[ref] = s
	}
	return bootstrap.NewRequirement(b, sources), nil
}

func (r Reader) readSource(ctx context.Context, key types.NamespacedName, secret bool) (bootstrap.Source, error) {
	if !secret {
		var c corev1.ConfigMap
		if err := r.Live.Get(ctx, key, &c); err != nil {
			return bootstrap.Source{}, err
		}
		return bootstrap.Source{UID: string(c.UID), Data: c.Data}, nil
	}
	var s corev1.Secret
	if err := r.Live.Get(ctx, key, &s); err != nil {
		return bootstrap.Source{}, err
	}
	data := make(map[string]string, len(s.Data))
	for k, v := range s.Data {
		data[k] = string(v)
	}
	return bootstrap.Source{UID: string(s.UID), Data: data}, nil
}
