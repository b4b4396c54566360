package clusterpool

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/bootstrap"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/inventory/lease"
	"hotspare.io/hotspare/internal/pool"
	"hotspare.io/hotspare/internal/pool/facts"
	"hotspare.io/hotspare/internal/rbac"
	"hotspare.io/hotspare/internal/sparerequirements"
)

// These functions read from the API server just before a write that cannot be undone: caches may be
// behind. They are not part of the observation, since they must be as late as possible, and most
// passes need none of them.

// Pool and cluster informers are not synchronized: a pass may observe a pool in which a name is no
// longer recorded, because another pass has seen its cluster, and not observe that cluster. A pass
// that depends on having observed all clusters, to create more or to remove the pool's finalizer,
// must confirm that it has. It has if nobody wrote the pool since this process last wrote it with
// all clusters observed: names leave the record only when this process's cache has the cluster.
// Otherwise the pass asks the API server.

// confirmAllObserved confirms that the pass has observed the current pool, and every cluster that
// is not recorded in it. It returns a Conflict if the pass missed one: the cache will catch up.
func (t *execution) confirmAllObserved(ctx context.Context) error {
	t.confirming <- struct{}{}
	defer func() { <-t.confirming }()
	if t.allObserved {
		return nil
	}
	// The pool is read before the clusters: a name leaves the record only when the cluster exists.
	var p hivev1.ClusterPool
	if err := t.Live.Get(ctx, client.ObjectKeyFromObject(t.pool), &p); err != nil {
		return fmt.Errorf("reading pool %s: %w", t.pool.Name, err)
	}
	if p.ResourceVersion != t.pool.ResourceVersion {
		return fault.New(fault.Conflict, fmt.Errorf("pool %s has changed since it was observed", p.Name))
	}
	var list hivev1.ClusterDeploymentList
	if err := t.Live.List(ctx, &list, client.MatchingLabels{
		hivev1.LabelPoolNamespace: p.Namespace, hivev1.LabelPoolName: p.Name,
	}); err != nil {
		return fmt.Errorf("listing clusters of pool %s: %w", p.Name, err)
	}
	t.poolConfirmed = true
	recorded := map[string]bool{}
	for _, name := range p.Status.Pending {
		recorded[name] = true
	}
	for _, cd := range list.Items {
		// Anybody who may create a ClusterDeployment can give it the labels: they find clusters, and prove nothing.
		if poolKeyOf(&cd) != t.seen.poolKey() || t.seen.excluded[cd.UID] {
			continue
		}
		switch seen := t.seen.clusters[cd.Name]; {
		case seen == nil && !recorded[cd.Name]:
			return fault.New(fault.Conflict, fmt.Errorf("cluster %s of pool %s is not in the cache yet", cd.Name, p.Name))
		case seen != nil && seen.DeletionTimestamp == nil && cd.DeletionTimestamp != nil: // it counts against maxConcurrent
			return fault.New(fault.Conflict, fmt.Errorf("the deletion of cluster %s of pool %s is not in the cache yet", cd.Name, p.Name))
		}
	}
	t.allObserved = true
	return nil
}

// confirmPoolUnchanged confirms that the pool is as the pass observed it. To create what was
// recorded earlier, the memory of this process does not suffice: another process may have been
// leader since, and removed the pool's finalizer.
func (t *execution) confirmPoolUnchanged(ctx context.Context) error {
	if t.poolConfirmed {
		return nil
	}
	var p hivev1.ClusterPool
	if err := t.Live.Get(ctx, client.ObjectKeyFromObject(t.pool), &p); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading pool %s: %w", t.pool.Name, err)
	}
	if p.UID != t.pool.UID || p.ResourceVersion != t.pool.ResourceVersion {
		return fault.New(fault.Conflict, fmt.Errorf("pool %s has changed since it was observed, or was deleted", t.pool.Name))
	}
	return nil
}

// pendingClusterExists reports whether the API server has a cluster under one of the pool's recorded
// names.
func (t *execution) pendingClusterExists(ctx context.Context) (bool, error) {
	for _, name := range t.pool.Status.Pending {
		if exists, err := t.clusterExists(ctx, name); err != nil || exists {
			return true, err
		}
	}
	return false, nil
}

// confirmUnusable confirms that a recorded name may be dropped: nothing was, or will be, created
// under it. A name that leads into another namespace than the pool's own needs no confirmation.
func (t *execution) confirmUnusable(ctx context.Context, st pool.Step) error {
	switch st.Cause {
	case pool.NamespaceForeign:
		return nil
	case pool.CustomizationExhausted:
		if err := t.confirmAllObserved(ctx); err != nil {
			return err
		}
		if err := t.confirmNoLease(ctx, st.Cluster); err != nil {
			return err
		}
	}
	exists, err := t.clusterExists(ctx, st.Cluster)
	if err == nil && exists {
		err = fault.New(fault.Conflict, fmt.Errorf("cluster %s is not in the cache yet", st.Cluster))
	}
	return err
}

// confirmNoLease confirms that a recorded name does not have the lease of the customization that is
// recorded for it. If it has, the cache is behind, or another process is creating the cluster right
// now.
func (t *execution) confirmNoLease(ctx context.Context, name string) error {
	for entry, e := range t.pool.Status.Inventory {
		if e.ClusterDeployment == nil || e.ClusterDeployment.Name != name {
			continue
		}
		var c hivev1.ClusterDeploymentCustomization
		err := t.Live.Get(ctx, types.NamespacedName{Namespace: t.pool.Namespace, Name: entry}, &c)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading customization %s: %w", entry, err)
		}
		if holder, leased := lease.Holder(&c); leased && holder.Name == name {
			return fault.New(fault.Conflict, fmt.Errorf("cluster %s has the lease of customization %s", name, entry))
		}
	}
	return nil
}

// clusterExists reports whether the API server has a cluster of that name.
func (r *Reconciler) clusterExists(ctx context.Context, name string) (bool, error) {
	var cd hivev1.ClusterDeployment
	err := r.Live.Get(ctx, types.NamespacedName{Namespace: name, Name: name}, &cd)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading cluster %s: %w", name, err)
	}
	return err == nil, nil
}

// confirmAssigned confirms with the API server that a cluster that was bound earlier still exists:
// the cache may still show one that was deleted with an older claim of the same name. No conflict
// would prevent writing it into the claim: only the claim is written.
func (t *execution) confirmAssigned(ctx context.Context, seen *hivev1.ClusterDeployment) error {
	var cd hivev1.ClusterDeployment
	if err := t.Live.Get(ctx, client.ObjectKeyFromObject(seen), &cd); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("looking for cluster %s: %w", seen.Name, err)
	}
	if cd.UID != seen.UID || cd.DeletionTimestamp != nil {
		return fault.New(fault.Conflict, fmt.Errorf("cluster %s is being deleted or does not exist", seen.Name))
	}
	return nil
}

// confirmStale confirms that the steps of the pool are still those for which a stale cluster is deleted: what they refer
// to is read once in a while only, and the cluster may have begun the current ones meanwhile.
func (t *execution) confirmStale(ctx context.Context, st pool.Step) error {
	if st.Cause != pool.Stale {
		return nil
	}
	return t.confirmSteps(ctx)
}

// confirmSteps returns a Conflict if the steps of the pool are not those that were read.
func (t *execution) confirmSteps(ctx context.Context) error {
	if !t.seen.required.Steps.Unwatched {
		return nil
	}
	reader := sparerequirements.Reader{Cached: t.Client, Live: t.Live}
	now, err := reader.ReadRequirements(ctx, t.seen.poolKey(), &sparerequirements.Memo{}, t.Clock.Now())
	if err != nil {
		return fmt.Errorf("reading the steps of pool %s: %w", t.pool.Name, err)
	}
	if now.Steps.Version == t.seen.required.Steps.Version {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen.cache.required = sparerequirements.Memo{} // the next pass reads them
	return fault.New(fault.Conflict, fmt.Errorf("the steps of pool %s have changed since they were read", t.pool.Name))
}

// confirmBootstraps confirms with the API server that the steps of the pool's bootstrap are still those that were read, and that no
// other cluster of the pool has begun them since it was observed: a cache may not show yet that another process has let one
// begin them.
func (t *execution) confirmBootstraps(ctx context.Context) error {
	if err := errors.Join(t.confirmPoolUnchanged(ctx), t.confirmSteps(ctx)); err != nil {
		return err
	}
	var list hivev1.ClusterDeploymentList
	if err := t.Live.List(ctx, &list, client.MatchingLabels{
		hivev1.LabelPoolNamespace: t.pool.Namespace, hivev1.LabelPoolName: t.pool.Name,
	}); err != nil {
		return fmt.Errorf("listing clusters of pool %s: %w", t.pool.Name, err)
	}
	for i := range list.Items {
		cd := &list.Items[i]
		if poolKeyOf(cd) != t.seen.poolKey() || t.seen.excluded[cd.UID] {
			continue
		}
		if seen := t.seen.clusters[cd.Name]; bootstrap.HasBegun(cd) && (seen == nil || !bootstrap.HasBegun(seen)) {
			return fault.New(fault.Conflict, fmt.Errorf("cluster %s of pool %s has begun the steps of the bootstrap since it was observed", cd.Name, t.pool.Name))
		}
	}
	return nil
}

// confirmUnused confirms with the API server that a claimed cluster's claim no longer needs it: a
// claim that the cache does not show may be too new for the cache.
func (t *execution) confirmUnused(ctx context.Context, cd *hivev1.ClusterDeployment) error {
	if t.inventoryPlan.Displaced[cd.Name] != "" && !facts.IsMarkedForRemoval(cd) {
		return t.confirmDisplaced(ctx, t.seen, cd)
	}
	ref := cd.Spec.ClusterPoolRef
	if ref == nil || ref.ClaimName == "" || facts.IsMarkedForRemoval(cd) {
		return nil
	}
	var claim hivev1.ClusterClaim
	err := t.Live.Get(ctx, types.NamespacedName{Namespace: t.pool.Namespace, Name: ref.ClaimName}, &claim)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading claim %s: %w", ref.ClaimName, err)
	case claim.DeletionTimestamp != nil, claim.Spec.ClusterPoolName != t.pool.Name,
		claim.Spec.Namespace != "" && claim.Spec.Namespace != cd.Name:
		return nil
	}
	return fault.New(fault.Conflict, fmt.Errorf("claim %s still has cluster %s", claim.Name, cd.Name))
}

// confirmRecorded confirms with the API server that the pool still has a recorded name together
// with the customization that was just acquired for it. Another process that is leader too may have
// dropped the name; then the lease ends as if this process had died.
func (t *execution) confirmRecorded(ctx context.Context, cluster, with string) error {
	var p hivev1.ClusterPool
	if err := t.Live.Get(ctx, t.seen.poolKey(), &p); err != nil {
		return fmt.Errorf("reading pool %s: %w", t.pool.Name, err)
	}
	ref := p.Status.Inventory[with].ClusterDeployment
	if p.UID != t.pool.UID || !slices.Contains(p.Status.Pending, cluster) || ref == nil || ref.Name != cluster {
		return fault.New(fault.Conflict, fmt.Errorf("cluster %s is no longer recorded with customization %s", cluster, with))
	}
	return nil
}

// confirmExisting returns an error unless the object that exists in place of o was created for the
// cluster, and has the content that it would be created with now.
func (t *execution) confirmExisting(ctx context.Context, o client.Object, ref hivev1.ClusterPoolReference) error {
	switch o := o.(type) {
	case *corev1.Namespace:
		return t.confirmNamespace(ctx, o.Name, ref)
	case *corev1.Secret:
		return t.confirmSecret(ctx, o)
	}
	return nil
}

// confirmNamespace returns an error unless the namespace that exists under the name of a new
// cluster was created for it. Otherwise the pool's Secrets would be copied into somebody else's
// namespace. The error is a Conflict: the next pass drops the name.
func (t *execution) confirmNamespace(ctx context.Context, name string, ref hivev1.ClusterPoolReference) error {
	var ns corev1.Namespace
	if err := t.Live.Get(ctx, types.NamespacedName{Name: name}, &ns); err != nil {
		return err
	}
	if rbac.IsPoolNamespace(&ns, ref) {
		return nil
	}
	return fault.New(fault.Conflict, fmt.Errorf("namespace %s was not created for a cluster of pool %s", name, t.pool.Name))
}

// confirmSecret returns a Conflict if the Secret that exists in place of want has other data: the
// next pass then drops the name of its cluster.
func (r *Reconciler) confirmSecret(ctx context.Context, want *corev1.Secret) error {
	outdated, err := r.isSecretOutdated(ctx, want)
	if err == nil && outdated {
		err = fault.New(fault.Conflict, fmt.Errorf("the existing Secret %s has other data", client.ObjectKeyFromObject(want)))
	}
	return err
}
