// Package claim decides what to do about a ClusterClaim: its conditions, the end of its lifetime,
// and when its finalizer is removed. It is pure.
//
// Package pool decides which cluster a claim gets.
package claim

import (
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/heartbeat"
)

// GracePeriod is how long the status of a claim is not written in two cases: a released claim whose
// cluster still exists, and a new claim that waits on a pool with assignable clusters. Such a
// claim is about to be gone, or served, and a status that nobody reads would only delay that. If something else than
// the pool's work delays the release, such as a bundle of diagnostics, the status says so at once.
const GracePeriod = 5 * time.Second

// Decide returns the plan for a claim.
func Decide(s Snapshot) Plan {
	p := planPhase(s)
	if s.Heartbeat != nil && !s.Deleting && s.Unreadable == "" && len(p.Steps) == 0 {
		p.addHeartbeat(heartbeat.Decide(heartbeat.Snapshot{Now: s.Now, Object: "claim", Observation: *s.Heartbeat}))
	}
	return p
}

// addHeartbeat adds the plan for the heartbeat of a claim that does not end for another reason.
func (p *Plan) addHeartbeat(h heartbeat.Plan) {
	p.HeartbeatMissing = h.Missing
	p.Next = fault.SoonerDelay(p.Next, h.Next)
	if !p.Stalled.IsTrue() {
		p.Stalled = h.Invalid
	}
	if h.End {
		p.Steps = []Step{{DeleteClaim, HeartbeatMissing}}
	}
}

// planPhase returns the plan for a claim without regard to its heartbeat.
func planPhase(s Snapshot) Plan {
	switch {
	case s.Deleting:
		return planDeleted(s)
	case s.Unreadable != "":
		return planUnreadable(s)
	case s.ClusterName == "":
		return planWaiting(s)
	case s.Cluster == nil:
		return Plan{
			Pending:        condition.False(hivev1.ReasonClusterClaimed, "Cluster claimed"),
			ClusterRunning: condition.False(hivev1.ReasonClusterDeleted, "Assigned cluster has been deleted"),
		}
	case s.Cluster.Claim == "" && s.Cluster.InPool:
		// The cluster was written first, so the cache is behind; the event of that write starts a
		// pass.
		return Plan{}
	case !s.ownsCluster():
		return Plan{Pending: condition.True(hivev1.ReasonConflict, "Assigned cluster was claimed by a different ClusterClaim: delete this claim, and claim again")}
	default:
		return planAssigned(s)
	}
}

// planUnreadable reports which part of a claim or its cluster could not be read. The claim keeps
// its cluster, gets none, and does not expire: the unreadable part may be a lifetime.
func planUnreadable(s Snapshot) Plan {
	if s.ClusterName == "" {
		return Plan{Pending: condition.True(hivev1.ReasonUnreadable, "The claim cannot be served: "+s.Unreadable+": correct it, or delete the claim and create another")}
	}
	v := Plan{Pending: condition.False(hivev1.ReasonClusterClaimed, "Cluster claimed; the claim does not expire until all fields can be read: "+s.Unreadable+": correct it")}
	v.Stalled = condition.True(hivev1.ReasonUnreadable, v.Pending.Message)
	if s.Cluster != nil && !s.Cluster.Unreadable {
		v.ClusterRunning = runningCondition(s.Cluster)
	}
	return v
}

// clusterDeletingCondition reports that the claim's cluster is being deleted, or is about to be.
var clusterDeletingCondition = condition.False(hivev1.ReasonClusterDeleting, "Assigned cluster has been marked for deletion")

// planDeleted removes the finalizer of a deleted claim once its cluster is deleted. The pool
// controller deletes the cluster; without a pool, the claim controller does.
func planDeleted(s Snapshot) Plan {
	if s.Cluster != nil && s.Cluster.Unreadable {
		return Plan{ClusterRunning: condition.False(hivev1.ReasonUnreadable, "Assigned cluster is not destroyed until it can be read: "+s.Unreadable+": correct it")}
	}
	if !s.ownsCluster() {
		return Plan{Steps: []Step{{RemoveFinalizer, NoCluster}}}
	}
	if s.Cluster.Protected && !s.Cluster.Deleting {
		return Plan{ClusterRunning: condition.False(hivev1.ReasonClusterDeleting,
			"Assigned cluster is protected from deletion: remove its annotation "+hivev1.AnnotationProtectedDelete+" to have it deleted")}
	}
	if left := s.releaseGraceLeft(); left > 0 {
		return Plan{Next: left}
	}
	if s.PoolExists && !s.Cluster.Deleting && !s.DeletedAt.IsZero() {
		return Plan{ClusterRunning: condition.False(hivev1.ReasonClusterDeleting,
			"Assigned cluster waits to be deleted: its ClusterPool deletes at most maxConcurrent clusters at a time; its status.plan lists the clusters that are being deleted")}
	}
	v := Plan{ClusterRunning: clusterDeletingCondition}
	if s.Cluster.AwaitsBundle {
		v.ClusterRunning.Message = "Assigned cluster has been marked for deletion, and is destroyed when a bundle of diagnostics is stored, or two minutes after its deletion: " +
			"remove annotation " + hivev1.AnnotationDiagnoseAtRelease + " to have no bundle"
	}
	if !s.PoolExists && !s.Cluster.Deleting {
		v.Steps = []Step{{DeleteCluster, PoolNotFound}}
	}
	return v
}

// releaseGraceLeft returns how long the status of a released claim need not be written; 0 if it must be.
func (s Snapshot) releaseGraceLeft() time.Duration {
	left := s.DeletedAt.Add(GracePeriod).Sub(s.Now)
	if !s.PoolExists || s.Cluster.AwaitsBundle || left > GracePeriod { // the clock was set back
		return 0
	}
	return max(0, left)
}

func planWaiting(s Snapshot) Plan {
	switch {
	case !s.PoolExists:
		return Plan{Pending: condition.True(hivev1.ReasonPoolNotFound,
			"The ClusterPool that spec.clusterPoolName names does not exist in this namespace: create it, or delete the claim")}
	case s.PoolDeleting:
		return Plan{Pending: condition.True(hivev1.ReasonPoolDeleting, "The ClusterPool is being deleted and serves no more claims: claim from another")}
	case s.SetMissing != "":
		return Plan{Pending: condition.True(hivev1.ReasonSetMissing, s.SetMissing)}
	case s.Held != (condition.Value{}):
		return s.planInQueue(condition.True(s.Held.Reason, s.Held.Message))
	case s.AssignmentRefused:
		return Plan{} // the condition has the hub's message
	}
	if left := s.Created.Add(GracePeriod).Sub(s.Now); left > 0 && s.PoolHasReady && !s.HasConditions {
		return Plan{Next: left}
	}
	if s.Set != "" {
		return s.planInQueue(condition.True(hivev1.ReasonNoClusters, "ClaimSet "+s.Set+" gets its clusters together, and the pool does not have enough that are ready to be claimed"))
	}
	return s.planInQueue(condition.True(hivev1.ReasonNoClusters, "No clusters in pool are ready to be claimed"))
}

// planInQueue returns the plan for a claim that waits in a queue, with its priority.
func (s Snapshot) planInQueue(pending condition.Value) Plan {
	if s.PriorityProblem != "" {
		pending.Message += "; " + s.PriorityProblem
	}
	return Plan{Pending: pending, Priority: s.Priority}
}

func planAssigned(s Snapshot) Plan {
	v := Plan{
		Pending:        condition.False(hivev1.ReasonClusterClaimed, "Cluster claimed"),
		ClusterRunning: runningCondition(s.Cluster),
	}
	if s.Cluster.ClaimedAt.IsZero() {
		return v // without the time of assignment no lifetime can be computed
	}
	span, err := EffectiveLifetime(s.Lifetime, s.DefaultLifetime, s.MaximumLifetime)
	if err != nil {
		v.Pending.Message = "Cluster claimed; spec.lifetime is ignored: " + err.Error()
		v.Stalled = condition.True(hivev1.ReasonInvalidLifetime, v.Pending.Message+": correct it")
		return v
	}
	if span == 0 {
		return v
	}
	d := hivev1.DurationOf(span)
	v.Lifetime = &d
	v.Next = s.Cluster.ClaimedAt.Add(span).Sub(s.Now)
	if v.Next <= 0 {
		v.Steps = []Step{{DeleteClaim, LifetimeElapsed}}
	}
	return v
}

func runningCondition(c *Cluster) condition.Value {
	switch {
	case c.Deleting:
		return condition.False(hivev1.ReasonClusterDeleting, "Assigned cluster has been marked for deletion")
	case c.Running:
		return condition.True(hivev1.ReasonRunning, "Cluster is running")
	case c.PowerState == hivev1.StatusHibernating:
		return condition.False(hivev1.ReasonHibernating, "Cluster is hibernating: set its spec.powerState to Running to use it")
	case c.Hibernates && c.PowerState == hivev1.ReasonFailedToStop:
		return condition.False(hivev1.ReasonFailedToStop, "Cluster cannot be stopped, and hotspare tries again: "+
			"see the condition Hibernating of the ClusterDeployment, or set its spec.powerState to Running to use it")
	case c.Hibernates:
		return condition.False(hivev1.ReasonStopping, "Cluster is stopping: set its spec.powerState to Running to use it")
	case c.PowerState == hivev1.ReasonFailedToStart:
		return condition.False(hivev1.ReasonResuming, "Waiting for cluster to be running: it cannot be started, and hotspare tries again: "+
			"see the condition Hibernating of the ClusterDeployment")
	default:
		return condition.False(hivev1.ReasonResuming, "Waiting for cluster to be running")
	}
}

// EffectiveLifetime returns the claim's lifetime, or else the pool's default, capped at the pool's
// maximum; 0 means no limit. It returns an error if the claim's lifetime, or else the default, is not
// valid. A maximum that is not valid limits nothing.
func EffectiveLifetime(own, fallback, maximum *hivev1.Duration) (time.Duration, error) {
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
