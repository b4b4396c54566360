package clusterclaim

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
	"hotspare.io/hotspare/internal/claim"
	"hotspare.io/hotspare/internal/claimpolicy"
	"hotspare.io/hotspare/internal/claimset"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/explain/clusterstate"
	"hotspare.io/hotspare/internal/rbac"
)

// An observation is everything that a pass has read.
type observation struct {
	claim.Snapshot
	claim *hivev1.ClusterClaim
	// cluster is the claim's cluster; nil if it does not exist.
	cluster *hivev1.ClusterDeployment
}

// observeClaim reads the claim, its pool and its cluster. It returns nil if the claim does not
// exist.
func (r *Reconciler) observeClaim(ctx context.Context, key types.NamespacedName) (*observation, error) {
	var cached hivev1.ClusterClaim
	if err := r.Client.Get(ctx, key, &cached); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	s := &observation{claim: r.claims.NewestVersion(&cached).DeepCopy()}
	s.Snapshot = r.readClaim(s.claim)
	if err := r.observePool(ctx, s); err != nil {
		return nil, err
	}
	var err error
	if s.AssignmentRefused, err = r.isAssignmentRefused(ctx, s.claim); err != nil {
		return nil, err
	}
	if s.cluster, err = r.findCluster(ctx, s.claim); err != nil {
		return nil, err
	}
	s.readOwnCluster()
	return s, nil
}

// readClaim returns the snapshot of a claim without its pool and its cluster.
func (r *Reconciler) readClaim(c *hivev1.ClusterClaim) claim.Snapshot {
	f := claim.Snapshot{
		Now:           r.Clock.Now(),
		Name:          c.Name,
		Created:       c.CreationTimestamp.Time,
		Deleting:      c.DeletionTimestamp != nil,
		ClusterName:   c.Spec.Namespace,
		Lifetime:      c.Spec.Lifetime,
		HasConditions: len(c.Status.Conditions) > 0,
		Unreadable:    c.Unreadable,
	}
	if at := c.DeletionTimestamp; at != nil {
		f.DeletedAt = at.Time
	}
	var missingSince time.Time
	if missing := condition.Find(c.Status.Conditions, hivev1.ClaimHeartbeatMissing); missing != nil && missing.Status == corev1.ConditionTrue {
		missingSince = missing.LastTransitionTime.Time
	}
	f.Heartbeat = r.heartbeats.Observe(c, missingSince, f.Now)
	return f
}

// observePool reads the claim's pool into the snapshot.
func (r *Reconciler) observePool(ctx context.Context, s *observation) error {
	pool, err := r.getPool(ctx, s.claim)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading pool %s: %w", s.claim.Spec.ClusterPoolName, err)
	}
	s.PoolExists, s.PoolDeleting, s.PoolHasReady = err == nil, pool.DeletionTimestamp != nil, pool.Status.Ready > 0
	if limits := pool.Spec.ClaimLifetime; limits != nil {
		s.DefaultLifetime, s.MaximumLifetime = limits.Default, limits.Maximum
	}
	return r.observePolicies(ctx, s)
}

// observePolicies reads what the ClaimPolicies of the claim's namespace say about it into the snapshot.
func (r *Reconciler) observePolicies(ctx context.Context, s *observation) error {
	var policies []claimpolicy.Policy
	if r.Policies != nil {
		var err error
		if policies, err = r.Policies(ctx, s.claim.Namespace); err != nil {
			return err
		}
	}
	set, err := r.findSet(ctx, s)
	if err != nil {
		return err
	}
	c := claimpolicy.ReadClaim(s.claim).InSet(set)
	s.readPriority(c, policies)
	if len(policies) > 0 && c.Admitted.Status == corev1.ConditionFalse {
		s.Held = c.Admitted
	}
	s.DefaultLifetime, s.MaximumLifetime = claimpolicy.NarrowLifetimeBounds(policies, c.Creator, c.Pool, s.DefaultLifetime, s.MaximumLifetime)
	return nil
}

// findSet returns the set of the claim; nil if it belongs to none.
func (r *Reconciler) findSet(ctx context.Context, s *observation) (*v1alpha1.ClaimSet, error) {
	if r.Sets == nil || claimset.FindOwner(s.claim) == nil {
		return nil, nil
	}
	sets, err := r.Sets(ctx, s.claim.Namespace)
	if err != nil {
		return nil, err
	}
	set, orphaned := sets.FindSet(s.claim)
	switch {
	case orphaned:
		s.SetMissing = "The claim names as its owner a ClaimSet that does not exist or does not contain the claim: delete the claim"
	case set != nil && set.DeletionTimestamp != nil:
		s.SetMissing = "ClaimSet " + set.Name + " is being deleted, and its claims get no more clusters"
	case set != nil:
		s.Set = set.Name
	}
	return set, nil
}

// readPriority reads the priority in effect into the snapshot. That of a claim of a set is the one of the set.
func (o *observation) readPriority(c claimpolicy.Claim, policies []claimpolicy.Policy) {
	text := o.claim.Annotations[hivev1.AnnotationPriority]
	if c.Set.Name != "" {
		text = ""
	}
	n := claimpolicy.LimitPriority(policies, c)
	if text != "" || n != 0 {
		o.Priority = new(int32(n)) //nolint:gosec // ParsePriority and the API limit it
	}
	if _, err := hivev1.ParsePriority(text); err != nil {
		o.PriorityProblem = "annotation " + hivev1.AnnotationPriority + " is ignored: " + err.Error() + ": correct it"
		return
	}
	if limit := claimpolicy.FindPriorityLimit(policies, c); n != c.Priority {
		o.PriorityProblem = fmt.Sprintf("its priority %d counts as %d: %s", c.Priority, n, limit.Explain(c))
	}
}

// readOwnCluster adds the observed cluster to the snapshot.
func (o *observation) readOwnCluster() {
	if o.cluster == nil {
		return
	}
	o.Cluster = readCluster(o.cluster)
	if o.Unreadable == "" && o.Cluster.Unreadable {
		o.Unreadable = "ClusterDeployment " + o.cluster.Name + ": " + o.cluster.Unreadable
	}
	if o.Cluster.Claim == o.claim.Name && !rbac.HasCluster(o.claim, o.cluster) {
		o.Cluster.Claim, o.Cluster.InPool = "", false // the cluster is bound to a claim of the same name in another namespace
	}
}

// getPool reads the claim's pool. It confirms a NotFound from the cache with the API server: the
// claim may be observed before a pool that was created just before it.
func (r *Reconciler) getPool(ctx context.Context, c *hivev1.ClusterClaim) (hivev1.ClusterPool, error) {
	var pool hivev1.ClusterPool
	key := types.NamespacedName{Namespace: c.Namespace, Name: c.Spec.ClusterPoolName}
	err := r.Client.Get(ctx, key, &pool)
	if apierrors.IsNotFound(err) {
		err = r.Live.Get(ctx, key, &pool)
	}
	return pool, err
}

// findCluster returns the claim's cluster: the one in its spec.namespace or, for a deleted claim
// without one, the cluster that names this claim; nil if there is none.
func (r *Reconciler) findCluster(ctx context.Context, c *hivev1.ClusterClaim) (*hivev1.ClusterDeployment, error) {
	if name := c.Spec.Namespace; name != "" {
		var cd hivev1.ClusterDeployment
		err := r.Client.Get(ctx, types.NamespacedName{Namespace: name, Name: name}, &cd)
		if err != nil {
			return nil, client.IgnoreNotFound(err)
		}
		return &cd, nil
	}
	if c.DeletionTimestamp == nil {
		return nil, nil
	}
	return r.findReservedCluster(ctx, c)
}

// isAssignmentRefused reports whether the hub refused to let hotspare assign the cluster that is
// reserved for a waiting claim.
func (r *Reconciler) isAssignmentRefused(ctx context.Context, c *hivev1.ClusterClaim) (bool, error) {
	pending := condition.Find(c.Status.Conditions, hivev1.ClaimPending)
	if c.Spec.Namespace != "" || pending == nil || pending.Reason != hivev1.ReasonAssignmentRefused {
		return false, nil
	}
	cd, err := r.findReservedCluster(ctx, c)
	return cd != nil, err
}

// findReservedCluster returns the cluster that names the claim; nil if there is none.
func (r *Reconciler) findReservedCluster(ctx context.Context, c *hivev1.ClusterClaim) (*hivev1.ClusterDeployment, error) {
	var given hivev1.ClusterDeploymentList
	if err := r.Client.List(ctx, &given, client.MatchingFields{byClaim: c.Namespace + "/" + c.Name}); err != nil {
		return nil, fmt.Errorf("looking for the cluster of claim %s: %w", c.Name, err)
	}
	if len(given.Items) == 0 {
		return nil, nil
	}
	return &given.Items[0], nil
}

func readCluster(cd *hivev1.ClusterDeployment) *claim.Cluster {
	hibernates := cd.Spec.PowerState == hivev1.PowerHibernating && !clusterstate.IsHibernationUnsupported(cd)
	f := &claim.Cluster{
		Deleting:   cd.DeletionTimestamp != nil,
		Protected:  hivev1.IsTrue(cd.Annotations, hivev1.AnnotationProtectedDelete),
		Running:    cd.Status.PowerState == hivev1.StatusRunning && !hibernates,
		Hibernates: hibernates,
		PowerState: cd.Status.PowerState,

		Unreadable: cd.Unreadable != "",
	}
	if c := condition.Find(cd.Status.Conditions, hivev1.ClusterProvisioned); c != nil && f.Deleting {
		f.AwaitsBundle = c.Reason == hivev1.ReasonAwaitingBundle
	}
	if ref := cd.Spec.ClusterPoolRef; ref != nil {
		f.InPool, f.Claim = true, ref.ClaimName
		if ref.ClaimedTimestamp != nil {
			f.ClaimedAt = ref.ClaimedTimestamp.Time
		}
	}
	return f
}
