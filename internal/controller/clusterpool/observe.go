package clusterpool

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/pool"
)

// seen is what a pass has read. Clusters and claims are shared with the cache:
// they are copied before they are changed.
type seen struct {
	pool     *hivev1.ClusterPool
	clusters map[string]*hivev1.ClusterDeployment
	claims   map[string]*hivev1.ClusterClaim
	// missing are the pool's dependencies that do not exist, in words.
	missing  []string
	snapshot pool.Snapshot
}

func (r *Reconciler) observe(ctx context.Context, key types.NamespacedName) (*seen, error) {
	var cached hivev1.ClusterPool
	if err := r.Client.Get(ctx, key, &cached); err != nil {
		return nil, err
	}
	s := &seen{pool: r.pools.Newest(&cached).DeepCopy()}
	var err error
	if s.clusters, err = r.clustersOf(ctx, key); err != nil {
		return nil, err
	}
	if s.claims, err = r.claimsOf(ctx, key); err != nil {
		return nil, err
	}
	if s.missing, err = r.missing(ctx, s.pool); err != nil {
		return nil, err
	}
	s.snapshot, err = r.snapshot(s)
	return s, err
}

func (r *Reconciler) clustersOf(ctx context.Context, key types.NamespacedName) (map[string]*hivev1.ClusterDeployment, error) {
	var list hivev1.ClusterDeploymentList
	if err := r.Client.List(ctx, &list, client.MatchingFields{byPool: key.String()}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing clusters of pool %s: %w", key, err)
	}
	out := make(map[string]*hivev1.ClusterDeployment, len(list.Items))
	known := make(map[types.NamespacedName]bool, len(list.Items))
	for i := range list.Items {
		cd := r.clusters.Newest(&list.Items[i])
		out[cd.Name] = cd
		known[client.ObjectKeyFromObject(cd)] = true
	}
	mine := func(cd *hivev1.ClusterDeployment) bool {
		ref := cd.Spec.ClusterPoolRef
		return ref != nil && ref.Namespace == key.Namespace && ref.PoolName == key.Name
	}
	for _, cd := range r.clusters.Unseen(known, mine, r.Clock.Now()) {
		out[cd.Name] = cd
	}
	return out, nil
}

func (r *Reconciler) claimsOf(ctx context.Context, key types.NamespacedName) (map[string]*hivev1.ClusterClaim, error) {
	var list hivev1.ClusterClaimList
	if err := r.Client.List(ctx, &list, client.InNamespace(key.Namespace),
		client.MatchingFields{byClaim: key.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing claims on pool %s: %w", key, err)
	}
	out := make(map[string]*hivev1.ClusterClaim, len(list.Items))
	for i := range list.Items {
		c := r.claims.Newest(&list.Items[i])
		out[c.Name] = c
	}
	return out, nil
}

func (r *Reconciler) snapshot(s *seen) (pool.Snapshot, error) {
	now := r.Clock.Now()
	set, err := Settings(s.pool, s.missing)
	if err != nil {
		return pool.Snapshot{}, err
	}
	if room := r.Room[s.pool.Spec.Platform.Name()]; room != nil && !fake(s.pool) {
		set.Room, set.NoRoom = room(s.pool.Spec.Platform)
	}
	snap := pool.Snapshot{Settings: set, Now: now}
	for _, cd := range s.clusters {
		snap.Members = append(snap.Members, facts(cd, now))
	}
	for _, name := range s.pool.Status.Pending {
		if s.clusters[name] == nil {
			snap.Pending = append(snap.Pending, name)
		}
	}
	for _, c := range s.claims {
		snap.Claims = append(snap.Claims, pool.Claim{
			Name: c.Name, Created: c.CreationTimestamp.Time, Cluster: c.Spec.Namespace, Deleting: c.DeletionTimestamp != nil,
		})
	}
	return snap, nil
}

// Settings reads a pool's spec. missing are the dependencies that do not exist;
// fake clusters are made without them.
func Settings(p *hivev1.ClusterPool, missing []string) (pool.Settings, error) {
	version, err := pool.Version(p.Spec)
	if err != nil {
		return pool.Settings{}, err
	}
	set := pool.Settings{
		Size:          int(p.Spec.Size),
		RunningCount:  int(p.Spec.RunningCount),
		MaxSize:       number(p.Spec.MaxSize),
		MaxConcurrent: number(p.Spec.MaxConcurrent),
		Version:       version,
		Deleting:      p.DeletionTimestamp != nil,
	}
	if len(missing) > 0 && !fake(p) {
		set.Blocked = inWords(missing)
	}
	if d := resumeTimeout(p); d != nil {
		set.ResumeTimeout, _ = d.Parse() // a stored value that cannot be parsed is no timeout; the schema refuses new ones
	}
	return set, nil
}

func number(n *int32) *int {
	if n == nil {
		return nil
	}
	i := int(*n)
	return &i
}

// resumeTimeout is the enhancement's field or, failing that, Hive's; nil is for ever.
func resumeTimeout(p *hivev1.ClusterPool) *hivev1.Duration {
	switch hc := p.Spec.HibernationConfig; {
	case p.Spec.PowerstateTransitionToRunningTimeout != nil:
		return p.Spec.PowerstateTransitionToRunningTimeout
	case hc != nil && hc.ResumeTimeout != "":
		return &hc.ResumeTimeout
	}
	return nil
}

func fake(p *hivev1.ClusterPool) bool { return isTrue(p.Spec.Annotations[hivev1.AnnotationFake]) }

func isTrue(s string) bool {
	b, err := strconv.ParseBool(s)
	return err == nil && b
}

// facts reads what a plan depends on from a cluster. They are comparable.
func facts(cd *hivev1.ClusterDeployment, now time.Time) pool.Member {
	m := pool.Member{
		Name:      cd.Name,
		Created:   cd.CreationTimestamp.Time,
		Version:   cd.Annotations[hivev1.AnnotationPoolVersion],
		Deleting:  cd.DeletionTimestamp != nil,
		Marked:    isTrue(cd.Annotations[hivev1.AnnotationRemove]) || isTrue(cd.Annotations[hivev1.AnnotationRemoveLegacy]),
		Installed: cd.Spec.Installed,
		GaveUp:    condition.True(cd.Status.Conditions, hivev1.ClusterProvisionStopped),
		Failing:   !cd.Spec.Installed && condition.True(cd.Status.Conditions, hivev1.ClusterProvisionFailed),
		Wanted:    pool.Power(cd.Spec.PowerState),
	}
	m.Running = cd.Status.PowerState == hivev1.StatusRunning && m.Wanted != pool.Hibernating
	if cd.Spec.ClusterPoolRef != nil {
		m.Claim = cd.Spec.ClusterPoolRef.ClaimName
	}
	if at := cd.Status.InstalledTimestamp; at != nil {
		m.InstallTook = atLeastASecond(at.Sub(cd.CreationTimestamp.Time))
	}
	powerFacts(&m, cd, now)
	return m
}

// atLeastASecond is a duration between two times that the API keeps in seconds:
// what takes less is known to have taken no longer than one.
func atLeastASecond(d time.Duration) time.Duration { return max(time.Second, d) }

func powerFacts(m *pool.Member, cd *hivev1.ClusterDeployment, now time.Time) {
	if c := condition.Find(cd.Status.Conditions, hivev1.ClusterHibernating); c != nil && c.Status != corev1.ConditionTrue {
		m.PowerFailed = slices.Contains([]string{hivev1.ReasonFailedToStart, hivev1.ReasonFailedToStop}, c.Reason)
	}
	wantsRun := m.Wanted == pool.Running && m.Installed && !m.Running
	if t := cd.Status.PowerTransition; t != nil {
		transitionFacts(m, *t, wantsRun, now)
	}
	if c := condition.Find(cd.Status.Conditions, hivev1.ClusterUnreachable); wantsRun && c != nil &&
		c.Status == corev1.ConditionTrue && c.Reason != hivev1.ReasonHibernating {
		m.UnreachableSince = c.LastTransitionTime.Time
	}
}

func transitionFacts(m *pool.Member, t hivev1.PowerTransition, wantsRun bool, now time.Time) {
	up := t.Target == hivev1.PowerRunning
	switch {
	case t.FinishedAt != nil && up:
		m.ResumeTook = atLeastASecond(t.FinishedAt.Sub(t.StartedAt.Time))
	case t.FinishedAt == nil:
		if wantsRun && up {
			m.ResumingSince = t.StartedAt.Time
		}
		m.MachinesFailed = wantsRun && t.MachinesFailed
		m.PowerTimedOut = m.PowerFailed && t.Deadline != nil && !now.Before(t.Deadline.Time)
	}
}
