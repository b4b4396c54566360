package clusterclaim

import (
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/kstatus"
)

// grace is how long the status of a claim is not written in two cases: a released claim whose
// cluster is not deleted yet, and a new claim that waits on a pool with assignable clusters. Such a
// claim is about to be served, and a status that nobody reads would only delay that.
const grace = 5 * time.Second

// A snapshot is everything that a plan for a claim depends on.
type snapshot struct {
	created  time.Time
	deleting bool
	// deletedAt is when it was deleted; zero if it was not.
	deletedAt time.Time
	// cluster names the cluster in the claim's spec; empty while it waits.
	cluster string
	// lifetime is the claim's own; fallback and maximum are the pool's. nil means none.
	lifetime, fallback, maximum *hivev1.Duration
	// poolExists is set if the pool exists, poolDeleting if it is being deleted.
	poolExists, poolDeleting bool
	// poolHasReady is set if the pool's status reports assignable clusters.
	poolHasReady bool
	// hasConditions is set if the claim already has conditions.
	hasConditions bool
	// assignmentRefused is set if the hub refused the assignment of a cluster that is still
	// reserved for the claim, as the condition Pending records.
	assignmentRefused bool
	// assigned is the claim's cluster; nil if it does not exist.
	assigned *clusterSnapshot
	// unreadable describes the field of the claim or its cluster that could not be read; empty if
	// all could.
	unreadable string
}

type clusterSnapshot struct {
	// pooled is set if it belongs to a pool that could have bound it to the claim.
	pooled   bool
	claim    string
	claimed  time.Time
	deleting bool
	running  bool
	power    string
	// unreadable is set if some of it could not be read, such as the claim that it is bound to.
	unreadable bool
}

// A plan is what to do about a claim.
type plan struct {
	// pending and running are conditions of the claim; the zero value leaves a condition unchanged.
	pending, running condition.Value
	lifetime         *hivev1.Duration
	// stalled reports an invalid field of a claim that has its cluster.
	stalled kstatus.Progress
	// expired is set if the claim's lifetime has elapsed: the claim is deleted.
	expired bool
	// removeFinalizer is set if nothing keeps a deleted claim any longer.
	removeFinalizer bool
	// deleteCluster is set if no other controller deletes the cluster.
	deleteCluster bool
	// next is the time until the claim must be reconciled again even if nothing changes; 0 means
	// never.
	next time.Duration
}

// decide returns the plan for the claim called name.
func decide(name string, f snapshot, now time.Time) plan {
	mine := f.assigned != nil && f.assigned.claim == name
	switch {
	case f.deleting:
		return planDeleted(f, mine, now)
	case f.unreadable != "":
		return planUnreadable(f)
	case f.cluster == "":
		return planWaiting(f, now)
	case f.assigned == nil:
		return plan{
			pending: condition.False(hivev1.ReasonClusterClaimed, "Cluster claimed"),
			running: condition.False(hivev1.ReasonClusterDeleted, "Assigned cluster has been deleted"),
		}
	case f.assigned.claim == "" && f.assigned.pooled:
		// The cluster was written first, so the cache is behind; the event of that write starts a
		// pass.
		return plan{}
	case !mine:
		return plan{pending: condition.True(hivev1.ReasonConflict, "Assigned cluster was claimed by a different ClusterClaim: delete this claim, and claim again")}
	default:
		return planAssigned(f, now)
	}
}

// planUnreadable reports which part of a claim or its cluster could not be read. The claim keeps
// its cluster, gets none, and does not expire: the unreadable part may be a lifetime.
func planUnreadable(f snapshot) plan {
	if f.cluster == "" {
		return plan{pending: condition.True(hivev1.ReasonUnreadable, "The claim cannot be served: "+f.unreadable+": correct it, or delete the claim and make another")}
	}
	v := plan{pending: condition.False(hivev1.ReasonClusterClaimed, "Cluster claimed; without end until all can be read: "+f.unreadable+": correct it")}
	v.stalled = kstatus.Stalled(hivev1.ReasonUnreadable, v.pending.Message)
	if f.assigned != nil && !f.assigned.unreadable {
		v.running = runningCondition(f.assigned)
	}
	return v
}

// clusterDeletingCondition reports that the claim's cluster is being deleted, or is about to be.
var clusterDeletingCondition = condition.False(hivev1.ReasonClusterDeleting, "Assigned cluster has been marked for deletion")

// planDeleted removes the finalizer of a deleted claim once its cluster is deleted. The pool
// controller deletes the cluster; without a pool, the claim controller does.
func planDeleted(f snapshot, mine bool, now time.Time) plan {
	if f.assigned != nil && f.assigned.unreadable {
		return plan{running: condition.False(hivev1.ReasonUnreadable, "Assigned cluster is not destroyed until it can be read: "+f.unreadable+": correct it")}
	}
	if !mine {
		return plan{removeFinalizer: true}
	}
	if f.poolExists && !f.assigned.deleting && !f.deletedAt.IsZero() {
		if soon := f.deletedAt.Add(grace).Sub(now); soon > 0 {
			return plan{running: clusterDeletingCondition, next: soon}
		}
		return plan{running: condition.False(hivev1.ReasonClusterDeleting,
			"Assigned cluster waits to be deleted: its ClusterPool deletes no more than maxConcurrent clusters at a time; its status.plan names those that are being deleted")}
	}
	return plan{
		running:       clusterDeletingCondition,
		deleteCluster: !f.poolExists && !f.assigned.deleting,
	}
}

func planWaiting(f snapshot, now time.Time) plan {
	switch {
	case !f.poolExists:
		return plan{pending: condition.True(hivev1.ReasonPoolNotFound,
			"The ClusterPool that spec.clusterPoolName names does not exist in this namespace: create it, or delete the claim")}
	case f.poolDeleting:
		return plan{pending: condition.True(hivev1.ReasonPoolDeleting, "The ClusterPool is being deleted and serves no more claims: claim from another")}
	case f.assignmentRefused:
		return plan{} // the condition has the hub's message
	}
	if left := f.created.Add(grace).Sub(now); left > 0 && f.poolHasReady && !f.hasConditions {
		return plan{next: left}
	}
	return plan{pending: condition.True(hivev1.ReasonNoClusters, "No clusters in pool are ready to be claimed")}
}

func planAssigned(f snapshot, now time.Time) plan {
	v := plan{
		pending: condition.False(hivev1.ReasonClusterClaimed, "Cluster claimed"),
		running: runningCondition(f.assigned),
	}
	if f.assigned.claimed.IsZero() {
		return v // without the time of assignment no lifetime can be computed
	}
	span, err := effectiveLifetime(f.lifetime, f.fallback, f.maximum)
	if err != nil {
		v.pending.Message = "Cluster claimed; spec.lifetime is ignored: " + err.Error()
		v.stalled = kstatus.Stalled(hivev1.ReasonInvalidLifetime, v.pending.Message+": correct it")
		return v
	}
	if span == 0 {
		return v
	}
	d := hivev1.DurationOf(span)
	v.lifetime = &d
	v.next = f.assigned.claimed.Add(span).Sub(now)
	v.expired = v.next <= 0
	return v
}

func runningCondition(c *clusterSnapshot) condition.Value {
	switch {
	case c.deleting:
		return condition.False(hivev1.ReasonClusterDeleting, "Assigned cluster has been marked for deletion")
	case c.running:
		return condition.True(hivev1.ReasonRunning, "Cluster is running")
	case c.power == hivev1.StatusHibernating:
		return condition.False(hivev1.ReasonHibernating, "Cluster is hibernating: set its spec.powerState to Running to use it")
	default:
		return condition.False(hivev1.ReasonResuming, "Waiting for cluster to be running")
	}
}

// effectiveLifetime returns the claim's lifetime, or else the pool's default, capped at the pool's
// maximum; 0 means no limit.
func effectiveLifetime(own, fallback, maximum *hivev1.Duration) (time.Duration, error) {
	if own == nil {
		own = fallback
	}
	var span, most time.Duration
	var err error
	if own != nil {
		if span, err = own.Parse(); err != nil {
			return 0, err
		}
	}
	if maximum != nil {
		if most, err = maximum.Parse(); err != nil {
			return span, nil //nolint:nilerr // the pool's own mistake does not end or free its claims
		}
	}
	if most > 0 && (span == 0 || span > most) {
		span = most
	}
	return span, nil
}
