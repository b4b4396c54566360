package claimset

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/claimpolicy"
	"hotspare.io/hotspare/internal/claimset"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/heartbeat"
)

// An observation is everything that a pass has read.
type observation struct {
	claimset.Snapshot
	set    *v1alpha1.ClaimSet
	claims map[string]*hivev1.ClusterClaim
}

// observeSet reads the set, its claims, and the pools and ClaimPolicies of its namespace. It returns nil if the set does not exist.
func (r *Reconciler) observeSet(ctx context.Context, c client.Reader, key types.NamespacedName) (*observation, error) {
	s := &observation{set: &v1alpha1.ClaimSet{}, claims: map[string]*hivev1.ClusterClaim{}}
	if err := c.Get(ctx, key, s.set); err != nil {
		if apierrors.IsNotFound(err) {
			r.heartbeats.Forget(key)
		}
		return nil, client.IgnoreNotFound(err)
	}
	s.Snapshot = readSet(s.set)
	s.Now = r.Clock.Now()
	s.Heartbeat = r.observeHeartbeat(s.set, s.Now)
	var claims hivev1.ClusterClaimList
	var pools hivev1.ClusterPoolList
	var policies v1alpha1.ClaimPolicyList
	for _, list := range []client.ObjectList{&claims, &pools, &policies} {
		if err := c.List(ctx, list, client.InNamespace(key.Namespace)); err != nil {
			return nil, fmt.Errorf("listing claims, pools and ClaimPolicies of namespace %s: %w", key.Namespace, err)
		}
	}
	s.readClaims(claims.Items)
	creator, readable := claimpolicy.Claim{}.InSet(s.set).Creator, claimpolicy.ReadPolicies(policies.Items)
	for i := range pools.Items {
		p := readPool(&pools.Items[i], countWaiting(claims.Items, pools.Items[i].Name, s.claims))
		p.Occupied = countAssigned(claims.Items, p.Name, s.claims)
		p.NotPermitted = !claimpolicy.CanAdmitSet(readable, creator, p.Name, s.Size)
		s.Pools = append(s.Pools, p)
	}
	s.readPreferences(pools.Items)
	return s, nil
}

// observeHeartbeat returns the heartbeat of a set; nil if it has none.
func (r *Reconciler) observeHeartbeat(set *v1alpha1.ClaimSet, now time.Time) *heartbeat.Observation {
	var missingSince time.Time
	if missing := meta.FindStatusCondition(set.Status.Conditions, v1alpha1.ClaimSetHeartbeatMissing); missing != nil && missing.Status == metav1.ConditionTrue {
		missingSince = missing.LastTransitionTime.Time
	}
	return r.heartbeats.Observe(set, missingSince, now)
}

func readSet(set *v1alpha1.ClaimSet) claimset.Snapshot {
	return claimset.Snapshot{
		Name: set.Name, Created: set.CreationTimestamp.Time, Size: int(set.Spec.Size), Unreadable: set.Unreadable,
		Deleting: set.DeletionTimestamp != nil, FinalizerMissing: !slices.Contains(set.Finalizers, v1alpha1.FinalizerClaimSet),
		Served: set.Status.ServedTime != nil, PoolName: set.Spec.ClusterPoolName, LastPool: set.Status.ClusterPoolName,
	}
}

// readClaims reads the claims that belong to the set, and finds those that only have the name of one.
func (o *observation) readClaims(claims []hivev1.ClusterClaim) {
	names := map[string]bool{}
	for i := range o.Size {
		names[claimset.ClaimName(o.Name, i)] = true
	}
	for i := range claims {
		c := &claims[i]
		switch {
		case claimset.Contains(o.set, c):
			o.claims[c.Name] = c
			o.Claims = append(o.Claims, readClaim(c))
		case names[c.Name]:
			o.Taken = append(o.Taken, c.Name)
		}
	}
}

func readClaim(c *hivev1.ClusterClaim) claimset.Claim {
	out := claimset.Claim{
		Name: c.Name, Pool: c.Spec.ClusterPoolName, Cluster: c.Spec.Namespace, Deleting: c.DeletionTimestamp != nil,
		Running: condition.IsTrue(c.Status.Conditions, hivev1.ClaimClusterRunning),
	}
	if running := condition.Find(c.Status.Conditions, hivev1.ClaimClusterRunning); running != nil {
		out.Lost = running.Reason == hivev1.ReasonClusterDeleted
	}
	if admitted := condition.Find(c.Status.Conditions, hivev1.ClaimAdmitted); admitted != nil && admitted.Status == corev1.ConditionFalse {
		out.Held = condition.Value{Status: admitted.Status, Reason: admitted.Reason, Message: admitted.Message}
	}
	if pending := condition.Find(c.Status.Conditions, hivev1.ClaimPending); pending != nil && pending.Reason == hivev1.ReasonAssignmentRefused {
		out.Refused = pending.Message
	}
	if p := c.Status.Position; p != nil {
		out.Position = int(*p)
	}
	if at := c.Status.EstimatedReadyTime; at != nil {
		out.Ready = at.Time
	}
	return out
}

// countWaiting returns the number of claims that wait on a pool, without those of the set.
func countWaiting(claims []hivev1.ClusterClaim, pool string, own map[string]*hivev1.ClusterClaim) int {
	n := 0
	for i := range claims {
		c := &claims[i]
		admitted := condition.Find(c.Status.Conditions, hivev1.ClaimAdmitted)
		held := admitted != nil && admitted.Status != corev1.ConditionTrue
		if c.Spec.ClusterPoolName == pool && c.Spec.Namespace == "" && c.DeletionTimestamp == nil && !held && own[c.Name] == nil {
			n++
		}
	}
	return n
}

// countAssigned returns the number of claims that have clusters of a pool, without those of the set. A claim that is being
// deleted gives its cluster back.
func countAssigned(claims []hivev1.ClusterClaim, pool string, own map[string]*hivev1.ClusterClaim) int {
	n := 0
	for i := range claims {
		c := &claims[i]
		if c.Spec.ClusterPoolName == pool && c.Spec.Namespace != "" && c.DeletionTimestamp == nil && own[c.Name] == nil {
			n++
		}
	}
	return n
}

// readPool reads a pool on which that many claims of others wait.
func readPool(p *hivev1.ClusterPool, waiting int) claimset.Pool {
	ready, standby, size := int(p.Status.Ready), int(p.Status.Standby), int(p.Spec.Size)
	out := claimset.Pool{
		Name: p.Name, Deleting: p.DeletionTimestamp != nil,
		Free: claimset.FreeClusters{Running: ready - waiting, Installed: ready + standby - waiting},
		Kept: claimset.FreeClusters{Running: min(int(p.Spec.RunningCount), size), Installed: size},
	}
	if p.Unreadable != "" { // its controller does nothing, and its counts are old
		out.Free, out.Blocked = claimset.FreeClusters{}, p.Unreadable
	}
	if most := p.Spec.MaxSize; most != nil {
		out.Most, out.MostReason = new(int(*most)), fmt.Sprintf("its maxSize is %d", *most)
	}
	if n := len(p.Spec.Inventory); n > 0 && (out.Most == nil || n < *out.Most) {
		out.Most, out.MostReason = new(n), fmt.Sprintf("its inventory has %d entries", n)
	}
	if c := condition.Find(p.Status.Conditions, hivev1.PoolMissingDependencies); c != nil && c.Status == corev1.ConditionTrue {
		out.Blocked = cmp.Or(out.Blocked, c.Message)
	}
	if most := p.Spec.MaxConcurrent; most != nil && *most <= 0 {
		out.Blocked = cmp.Or(out.Blocked, "its maxConcurrent is 0")
	}
	if c := condition.Find(p.Status.Conditions, hivev1.PoolCapacityAvailable); c != nil && c.Status == corev1.ConditionFalse {
		out.NoRoom = c.Message
	}
	return out
}

// readPreferences finds the pools that each preference selects.
func (o *observation) readPreferences(pools []hivev1.ClusterPool) {
	if o.set.Spec.PoolSelector == nil {
		return
	}
	for i, p := range o.set.Spec.PoolSelector.Preferences {
		field := fmt.Sprintf("spec.poolSelector.preferences[%d]", i)
		selector, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchLabels: p.MatchLabels, MatchExpressions: p.MatchExpressions})
		if err != nil {
			o.SelectorProblem = fmt.Sprintf("%s is not a label selector (%v): use matchLabels, such as {size: large}: delete the set and create another", field, err)
			return
		}
		fallback, err := claimset.FallbackOf(p)
		if err != nil {
			o.SelectorProblem = fmt.Sprintf("%s.fallbackAfter: %v: delete the set and create another", field, err)
			return
		}
		preference := claimset.Preference{FallbackAfter: fallback}
		for j := range pools {
			if selector.Matches(labels.Set(pools[j].Labels)) {
				preference.Pools = append(preference.Pools, pools[j].Name)
			}
		}
		o.Preferences = append(o.Preferences, preference)
	}
}
