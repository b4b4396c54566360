package clusterpool

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/bootstrap"
	"hotspare.io/hotspare/internal/claimpolicy"
	"hotspare.io/hotspare/internal/claimset"
	"hotspare.io/hotspare/internal/inventory"
	"hotspare.io/hotspare/internal/pool"
	"hotspare.io/hotspare/internal/pool/facts"
	"hotspare.io/hotspare/internal/rbac"
	"hotspare.io/hotspare/internal/sparerequirements"
)

// An observation is everything that a pass has read before it decides. Nothing changes it
// afterwards: its objects are shared with caches and must be copied before they are changed.
type observation struct {
	pool     *hivev1.ClusterPool
	clusters map[string]*hivev1.ClusterDeployment
	claims   map[string]*hivev1.ClusterClaim
	// policies are the ClaimPolicies of the pool's namespace.
	policies []claimpolicy.Policy
	// sets are the ClaimSets of that namespace, if a claim names one.
	sets claimset.Sets
	// remembered names the clusters that the cache does not show yet: this process created them.
	remembered map[string]bool
	// excluded has the clusters that only claim to be the pool's, by UID; see excludeForeignClusters.
	excluded map[types.UID]bool
	// allObserved is set if the pool certainly has no clusters except those in clusters and those
	// recorded in its status.
	allObserved bool
	// missing describes the pool's dependencies that do not exist.
	missing []string
	// sources is the version of the dependencies that exist.
	sources string
	// recipe is the value of status.recipeVersion of the pool.
	recipe string
	// customizations are the existing ones among facts.Objects.CustomizationNames, by name; faults
	// explains, for some of them, why they do not apply to the pool's clusters.
	customizations map[string]*hivev1.ClusterDeploymentCustomization
	faults         map[string]string
	inventoryPlan  inventory.Plan
	// required is what the pool requires of its spares.
	required sparerequirements.Requirements
	// secretsErr is why the Secrets of interrupted creations could not be read. The pass returns it
	// after the steps of its plan: claims do not wait for these Secrets.
	secretsErr error
	snapshot   pool.Snapshot
	cache      *poolCache
}

func (o *observation) poolKey() types.NamespacedName { return client.ObjectKeyFromObject(o.pool) }

// observePool reads everything that a plan depends on. For a pool that could not be read
// completely, it reads only the pool.
func (r *Reconciler) observePool(ctx context.Context, key types.NamespacedName) (*observation, error) {
	var cached hivev1.ClusterPool
	if err := r.Client.Get(ctx, key, &cached); err != nil {
		return nil, err
	}
	s := &observation{pool: r.pools.NewestVersion(&cached)}
	s.cache = r.poolCaches.getOrAddPool(s.pool)
	if s.pool.Unreadable != "" {
		s.snapshot = pool.Snapshot{Unreadable: facts.UnreadableMessage(s.pool), Now: r.Clock.Now()}
		return s, nil
	}
	s.allObserved = s.cache.version == s.pool.ResourceVersion
	var err error
	if err = r.observeClusters(ctx, key, s); err != nil {
		return nil, err
	}
	if err = r.observeQueue(ctx, key, s); err != nil {
		return nil, err
	}
	reader := sparerequirements.Reader{Cached: r.Client, Live: r.Live}
	if s.required, err = reader.ReadRequirements(ctx, key, &s.cache.required, r.Clock.Now()); err != nil {
		return nil, err
	}
	found, err := r.findDependencies(ctx, s)
	if err != nil {
		return nil, err
	}
	s.missing, s.sources, s.recipe = found.missing, found.sources, found.recipe
	if problem := cmp.Or(s.required.Gates.Problem, s.required.Steps.Problem); problem != "" {
		s.missing = append(slices.Clip(s.missing), problem)
	}
	template, err := r.loadTemplateCache(ctx, s)
	if err != nil {
		return nil, err
	}
	if err = r.observeCustomizations(ctx, s); err != nil {
		return nil, err
	}
	if err = s.checkCustomizations(template); err != nil {
		return nil, err
	}
	if err = r.decideInventory(ctx, s); err != nil {
		return nil, err
	}
	if err = r.retainConfirmedDisplaced(ctx, s); err != nil {
		return nil, err
	}
	if s.snapshot, err = r.buildSnapshot(s); err != nil {
		return nil, err
	}
	return s, r.observePendingNames(ctx, s)
}

// observeQueue reads the claims of the pool, and what determines their places in the queue.
func (r *Reconciler) observeQueue(ctx context.Context, key types.NamespacedName, s *observation) error {
	var err error
	if s.claims, err = r.observeClaims(ctx, key); err != nil {
		return err
	}
	if s.policies, err = r.listPolicies(ctx, key.Namespace); err != nil {
		return err
	}
	s.sets, err = r.listSets(ctx, key.Namespace, s.claims)
	return err
}

func (r *Reconciler) observeClusters(ctx context.Context, key types.NamespacedName, s *observation) error {
	var err error
	if s.clusters, err = r.listCachedClusters(ctx, key); err != nil {
		return fmt.Errorf("listing clusters of pool %s: %w", key, err)
	}
	cached := func(cd *hivev1.ClusterDeployment) (*hivev1.ClusterDeployment, bool) {
		other := s.clusters[cd.Name]
		return other, other != nil && other.Namespace == cd.Namespace
	}
	mine := func(cd *hivev1.ClusterDeployment) bool { return poolKeyOf(cd) == key }
	newer, unseen := r.clusters.AheadOfCache(cached, mine, r.Clock.Now())
	for _, cd := range newer {
		s.clusters[cd.Name] = cd
	}
	s.remembered = make(map[string]bool, len(unseen))
	for _, cd := range unseen {
		s.clusters[cd.Name], s.remembered[cd.Name] = cd, true
	}
	return r.excludeForeignClusters(ctx, key, s)
}

// excludeForeignClusters removes the clusters that only claim to be the pool's: those in a
// namespace that hotspare did not create for a cluster of the pool. A ClusterDeployment alone
// proves nothing, since anybody may create one in a namespace of their own: if it were bound to a
// claim, the claim's owner would get an API server of that user.
func (r *Reconciler) excludeForeignClusters(ctx context.Context, key types.NamespacedName, s *observation) error {
	s.excluded = map[types.UID]bool{}
	var unknown []string
	for name, cd := range s.clusters {
		if uid, known := s.cache.namespaceOwners.find(name); !s.remembered[name] && !(known && uid == cd.UID) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	for _, name := range unknown {
		cd := s.clusters[name]
		var ns corev1.Namespace
		err := r.Client.Get(ctx, types.NamespacedName{Name: cd.Namespace}, &ns)
		if apierrors.IsNotFound(err) { // the cache of namespaces may be behind that of clusters
			err = r.Live.Get(ctx, types.NamespacedName{Name: cd.Namespace}, &ns)
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading the namespace of cluster %s of pool %s: %w", name, key, err)
		}
		// Without its namespace the cluster itself is deleted, and the cache is behind.
		if err != nil || !rbac.IsPoolNamespace(&ns, hivev1.ClusterPoolReference{Namespace: key.Namespace, PoolName: key.Name}) {
			delete(s.clusters, name)
			s.excluded[cd.UID] = true
			continue
		}
		s.cache.namespaceOwners.store(name, cd.UID)
	}
	return nil
}

func (r *Reconciler) observeClaims(ctx context.Context, key types.NamespacedName) (map[string]*hivev1.ClusterClaim, error) {
	out, err := r.listCachedClaims(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("listing claims on pool %s: %w", key, err)
	}
	cached := func(c *hivev1.ClusterClaim) (*hivev1.ClusterClaim, bool) {
		known, found := out[c.Name]
		return known, found
	}
	mine := func(c *hivev1.ClusterClaim) bool {
		return c.Namespace == key.Namespace && c.Spec.ClusterPoolName == key.Name
	}
	newer, _ := r.claims.AheadOfCache(cached, mine, r.Clock.Now()) // claims that the cache does not show are deleted: users, not this process, create claims
	for _, c := range newer {
		out[c.Name] = c
	}
	return out, nil
}

// listCachedClusters returns the clusters of a pool in the cache, by name. Do not change them.
func (r *Reconciler) listCachedClusters(ctx context.Context, key types.NamespacedName) (map[string]*hivev1.ClusterDeployment, error) {
	if r.shared != nil {
		return mapByName(r.shared.clusters.ListByKey(key.String()))
	}
	var list hivev1.ClusterDeploymentList
	err := r.Client.List(ctx, &list, client.MatchingFields{byPool: key.String()}, client.UnsafeDisableDeepCopy)
	return mapByName(len(list.Items), pointersTo(list.Items), err)
}

// listCachedClaims returns the claims on a pool in the cache, by name. Do not change them.
func (r *Reconciler) listCachedClaims(ctx context.Context, key types.NamespacedName) (map[string]*hivev1.ClusterClaim, error) {
	if r.shared != nil {
		return mapByName(r.shared.claims.ListByKey(key.String()))
	}
	var list hivev1.ClusterClaimList
	err := r.Client.List(ctx, &list, client.InNamespace(key.Namespace), client.MatchingFields{byClaim: key.Name}, client.UnsafeDisableDeepCopy)
	return mapByName(len(list.Items), pointersTo(list.Items), err)
}

func mapByName[T client.Object](n int, all iter.Seq[T], err error) (map[string]T, error) {
	if err != nil {
		return nil, err
	}
	out := make(map[string]T, n)
	for o := range all {
		out[o.GetName()] = o
	}
	return out, nil
}

func pointersTo[T any](items []T) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for i := range items {
			if !yield(&items[i]) {
				return
			}
		}
	}
}

// listPolicies returns the ClaimPolicies of a namespace.
func (r *Reconciler) listPolicies(ctx context.Context, namespace string) ([]claimpolicy.Policy, error) {
	if r.Policies == nil {
		return nil, nil
	}
	return r.Policies(ctx, namespace)
}

// listSets returns the ClaimSets of a namespace, if one of the claims names one.
func (r *Reconciler) listSets(ctx context.Context, namespace string, claims map[string]*hivev1.ClusterClaim) (claimset.Sets, error) {
	if r.Sets == nil {
		return nil, nil
	}
	for _, c := range claims {
		if claimset.FindOwner(c) != nil {
			return r.Sets(ctx, namespace)
		}
	}
	return nil, nil
}

// poolObjects returns the objects that the facts are computed from.
func (o *observation) poolObjects() facts.Objects {
	return facts.Objects{
		Pool: o.pool, Clusters: o.clusters, Claims: o.claims, Policies: o.policies, Sets: o.sets, Missing: o.missing, Sources: o.sources, Recipe: o.recipe,
		Customizations: o.customizations, Faults: o.faults, Gates: &o.required.Gates, Steps: o.required.Steps,
	}
}

func (r *Reconciler) buildSnapshot(s *observation) (pool.Snapshot, error) {
	o := s.poolObjects()
	o.Roster, o.WatchedSince = &s.cache.roster, r.watchedSince()
	snap, err := o.PoolSnapshot(s.inventoryPlan, r.Clock.Now())
	if err != nil {
		return snap, err
	}
	snap.PositionsSetAt, snap.RecheckAfter, snap.RefusedWrite = s.cache.positionsSetAt, s.recheckDelay(), s.cache.refusedWrite
	s.cache.removeDeletedClusters(s.clusters)
	s.cache.setClaimMissingSince(s, snap.ByAge, r.Clock.Now())
	if room := r.Room[s.pool.Spec.Platform.Name()]; room != nil && !facts.IsFake(s.pool) {
		snap.Settings.Room, snap.Settings.NoRoom = room(s.pool.Spec.Platform)
	}
	return snap, nil
}

// recipeTTL is how long a pool relies on the recipe, the ClusterClass or the template that it has read.
// They are not watched.
const recipeTTL = time.Minute

// stepSourcesTTL is how long a pool relies on the ConfigMaps and Secrets of its bootstrap that it has read while
// nothing else happens. They are not watched.
const stepSourcesTTL = 30 * time.Second

// recheckDelay returns how long the pass may rely on the Secrets, the sources of a bootstrap's steps, and the
// recipe, ClusterClass or template that it has read, which are not watched; 0 if nothing depends on them.
func (o *observation) recheckDelay() time.Duration {
	switch {
	case len(o.missing) > 0:
		return dependenciesTTL
	case len(o.faults) > 0:
		return templateTTL
	case o.required.Steps.Unwatched && o.hasUnfinishedClusters():
		return dependenciesTTL
	case o.required.Steps.Unwatched:
		return stepSourcesTTL
	case o.recipe != "":
		return recipeTTL
	default:
		return 0
	}
}

// hasUnfinishedClusters reports whether a cluster has begun the steps of the bootstrap and not finished them: it
// may have seen a change of a ConfigMap or Secret that this pass has not.
func (o *observation) hasUnfinishedClusters() bool {
	for _, cd := range o.clusters {
		if cd.Status.Bootstrap != nil && !bootstrap.IsFinished(cd) {
			return true
		}
	}
	return false
}

// unobservedPending returns the recorded names whose clusters the cache does not show.
func (o *observation) unobservedPending() []string {
	var out []string
	for _, name := range o.pool.Status.Pending {
		if o.clusters[name] == nil || o.remembered[name] {
			out = append(out, name)
		}
	}
	return out
}
