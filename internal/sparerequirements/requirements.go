// Package sparerequirements reads what a pool requires of its spare clusters, the steps of its ClusterBootstrap and the gates, and
// watches what changes it. The controllers of pools, steps and gates use it, so that all of them require the same.
package sparerequirements

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/bootstrap"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/gate"
	"hotspare.io/hotspare/internal/rbac"
)

// A Reader reads requirements. Cached reads from caches, Live from the API server: the ConfigMaps and Secrets of a
// hub are not cached. Live may be nil if only gates are read.
type Reader struct{ Cached, Live client.Reader }

// Requirements are what a pool requires of its spares. The zero value requires nothing.
type Requirements struct {
	Gates gate.Requirement
	Steps bootstrap.Requirement
}

// A Memo has the steps that were read last. Its zero value is empty.
type Memo struct {
	at      time.Time
	version string
	steps   bootstrap.Requirement
}

// memoTTL is how long the content of the ConfigMaps and Secrets of a bootstrap is used. They are not watched.
const memoTTL = 5 * time.Second

// ReadRequirements reads what a pool requires of its spares: the steps of the ClusterBootstrap that its PoolPolicy
// names, with the objects that they refer to, and its gates. Whatever does not exist is a Problem of a Requirement,
// not an error.
//
// Steps that the memo has are not read again while the ClusterBootstrap is the same, for five seconds if they refer
// to other objects.
func (r Reader) ReadRequirements(ctx context.Context, pool types.NamespacedName, known *Memo, now time.Time) (Requirements, error) {
	p, b, err := r.ReadBootstrap(ctx, pool)
	if err != nil {
		return Requirements{}, err
	}
	if known.isOutdated(b, now) {
		if *known, err = r.readSteps(ctx, b, now); err != nil {
			return Requirements{}, err
		}
	}
	out := Requirements{Gates: gate.NewRequirement(p, b), Steps: known.steps}
	if problem := out.Gates.Problem; problem != "" {
		out.Steps = bootstrap.NewUnresolved(problem)
	}
	return out, nil
}

// ReadGates reads the gates that a pool requires, without its steps.
func (r Reader) ReadGates(ctx context.Context, pool types.NamespacedName) (gate.Requirement, error) {
	p, b, err := r.ReadBootstrap(ctx, pool)
	if err != nil {
		return gate.Requirement{}, err
	}
	return gate.NewRequirement(p, b), nil
}

// ReadStepsSince returns since when a pool has had steps, as its status records it; zero if it has none, or if that is not
// recorded yet.
func (r Reader) ReadStepsSince(ctx context.Context, pool types.NamespacedName) (time.Time, error) {
	var p hivev1.ClusterPool
	if err := r.Cached.Get(ctx, pool, &p); client.IgnoreNotFound(err) != nil {
		return time.Time{}, fmt.Errorf("reading pool %s: %w", pool, err)
	}
	if p.Status.StepsSince == nil {
		return time.Time{}, nil
	}
	return p.Status.StepsSince.Time, nil
}

// ReadBootstrap reads the PoolPolicy of a pool, and the ClusterBootstrap that it names; nil if they do not exist.
func (r Reader) ReadBootstrap(ctx context.Context, pool types.NamespacedName) (*v1alpha1.PoolPolicy, *v1alpha1.ClusterBootstrap, error) {
	var p v1alpha1.PoolPolicy
	err := r.Cached.Get(ctx, pool, &p)
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
	err = r.Cached.Get(ctx, types.NamespacedName{Namespace: pool.Namespace, Name: name}, &b)
	switch {
	case apierrors.IsNotFound(err):
		return &p, nil, nil
	case err != nil:
		return nil, nil, fmt.Errorf("reading ClusterBootstrap %s: %w", name, err)
	}
	return &p, &b, nil
}

// isOutdated reports whether the steps of b must be read. b is nil if there is no bootstrap.
func (m *Memo) isOutdated(b *v1alpha1.ClusterBootstrap, now time.Time) bool {
	return m.version != versionOf(b) || m.steps.Unwatched && now.Sub(m.at) >= memoTTL
}

// versionOf identifies a version of b; empty if it has no steps that can be read.
func versionOf(b *v1alpha1.ClusterBootstrap) string {
	if b == nil || b.Unreadable != "" || len(b.Spec.Steps) == 0 {
		return ""
	}
	return fmt.Sprintf("%s/%d", b.UID, b.Generation)
}

// readSteps reads the steps of b and what they refer to.
func (r Reader) readSteps(ctx context.Context, b *v1alpha1.ClusterBootstrap, now time.Time) (Memo, error) {
	version := versionOf(b)
	if version == "" {
		return Memo{}, nil
	}
	sources := map[bootstrap.Reference]bootstrap.Source{}
	for _, ref := range bootstrap.ListReferences(b.Spec.Steps) {
		s, err := r.readSource(ctx, types.NamespacedName{Namespace: b.Namespace, Name: ref.Name}, ref.Secret)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return Memo{}, fmt.Errorf("reading %s of ClusterBootstrap %s: %w", ref, b.Name, err)
		}
		sources[ref] = s
	}
	return Memo{at: now, version: version, steps: bootstrap.NewRequirement(b, sources)}, nil
}

func (r Reader) readSource(ctx context.Context, key types.NamespacedName, secret bool) (bootstrap.Source, error) {
	if !secret {
		var c corev1.ConfigMap
		if err := r.Live.Get(ctx, key, &c); err != nil {
			return bootstrap.Source{}, err
		}
		return bootstrap.Source{UID: string(c.UID), Data: c.Data, Binary: toStrings(c.BinaryData)}, nil
	}
	var s corev1.Secret
	if err := r.Live.Get(ctx, key, &s); err != nil {
		return bootstrap.Source{}, err
	}
	return bootstrap.Source{UID: string(s.UID), Data: toStrings(s.Data)}, nil
}

func toStrings(data map[string][]byte) map[string]string {
	out := make(map[string]string, len(data))
	for k, v := range data {
		out[k] = string(v)
	}
	return out
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

// ConfirmPoolNamespace returns an error if a cluster only claims to be one of a pool. The pods of gates run in clusters of
// pools only, and the admin of another cluster would get what is in the Secrets of the pool's namespace.
func ConfirmPoolNamespace(ctx context.Context, c client.Reader, cd *hivev1.ClusterDeployment) error {
	var ns corev1.Namespace
	if err := c.Get(ctx, types.NamespacedName{Name: cd.Namespace}, &ns); err != nil {
		return fmt.Errorf("reading namespace %s: %w", cd.Namespace, err)
	}
	if !rbac.IsPoolNamespace(&ns, *cd.Spec.ClusterPoolRef) {
		return fault.NewDenied("namespace %s was not created for a cluster of pool %s", ns.Name, cd.Spec.ClusterPoolRef.PoolName)
	}
	return nil
}
