package clusterclaim

import (
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/kstatus"
)

// grace is how long nothing is said of a released claim whose cluster is not deleted yet, and of a new claim that waits on a pool with
// clusters to give: it is about to be served, and a status that nobody would
// read would only be in the way.
const grace = 5 * time.Second

// facts is what a claim's conditions and its end depend on.
type facts struct {
	created  time.Time
	deleting bool
	// left is when it was deleted; zero while it is not.
	left time.Time
	// cluster names the cluster that the claim was told of; empty while it waits.
	cluster string
	// lifetime is the claim's own; fallback and maximum are the pool's. nil is none.
	lifetime, fallback, maximum *hivev1.Duration
	// pool is whether the pool exists, dissolving whether it is being deleted.
	pool, dissolving bool
	// ready is whether the pool has clusters to give, as far as it says.
	ready bool
	// told is whether the claim has conditions already.
	told bool
	// refused is whether the hub refused the assignment of a cluster that is still
	// reserved for the claim; the condition Pending says so.
	refused bool
	// of is the cluster, as far as it exists.
	of *clusterFacts
	// unreadable says what of the claim or its cluster could not be read; empty when all could.
	unreadable string
}

type clusterFacts struct {
	// pooled is whether it is of a pool that could have given it to the claim.
	pooled   bool
	claim    string
	claimed  time.Time
	deleting bool
	running  bool
	power    string
	// unreadable is set when not all of it could be read: whose it is, for one.
	unreadable bool
}

// verdict is what to do about a claim.
type verdict struct {
	// pending and running are conditions of the claim; the zero value leaves one as it is.
	pending, running condition.Value
	lifetime         *hivev1.Duration
	// fault is what of a claim that has its cluster is invalid.
	fault kstatus.Progress
	// expired is set when the claim's time is up: the claim is deleted.
	expired bool
	// release is set when nothing keeps a deleted claim any longer.
	release bool
	// destroy is set when nobody but us will delete the cluster.
	destroy bool
	// next is when to look again though nothing changed; 0 is never.
	next time.Duration
}

// decide says what to do about the claim called name.
func decide(name string, f facts, now time.Time) verdict {
	mine := f.of != nil && f.of.claim == name
	switch {
	case f.deleting:
		return leave(f, mine, now)
	case f.unreadable != "":
		return park(f)
	case f.cluster == "":
		return wait(f, now)
	case f.of == nil:
		return verdict{
			pending: condition.False(hivev1.ReasonClusterClaimed, "Cluster claimed"),
			running: condition.False(hivev1.ReasonClusterDeleted, "Assigned cluster has been deleted"),
		}
	case f.of.claim == "" && f.of.pooled:
		// The cluster was written first, so we see it late; that it comes wakes us.
		return verdict{}
	case !mine:
		return verdict{pending: condition.True(hivev1.ReasonConflict, "Assigned cluster was claimed by a different ClusterClaim: delete this claim, and claim again")}
	default:
		return hold(f, now)
	}
}

// park tells what of a claim or of its cluster could not be read. The claim keeps
// what it has and gets nothing, and has no end: a lifetime may be what is missing.
func park(f facts) verdict {
	if f.cluster == "" {
		return verdict{pending: condition.True(hivev1.ReasonUnreadable, "The claim cannot be served: "+f.unreadable+": correct it, or delete the claim and make another")}
	}
	v := verdict{pending: condition.False(hivev1.ReasonClusterClaimed, "Cluster claimed; without end until all can be read: "+f.unreadable+": correct it")}
	v.fault = kstatus.Stalled(hivev1.ReasonUnreadable, v.pending.Message)
	if f.of != nil && !f.of.unreadable {
		v.running = running(f.of)
	}
	return v
}

// goes tells that the claim's cluster is being deleted, or is about to be.
var goes = condition.False(hivev1.ReasonClusterDeleting, "Assigned cluster has been marked for deletion")

// leave ends a deleted claim once its cluster is gone. The pool's controller
// deletes the cluster; without a pool it falls to the claim's.
func leave(f facts, mine bool, now time.Time) verdict {
	if f.of != nil && f.of.unreadable {
		return verdict{running: condition.False(hivev1.ReasonUnreadable, "Assigned cluster is not destroyed until it can be read: "+f.unreadable+": correct it")}
	}
	if !mine {
		return verdict{release: true}
	}
	if f.pool && !f.of.deleting && !f.left.IsZero() {
		if soon := f.left.Add(grace).Sub(now); soon > 0 {
			return verdict{running: goes, next: soon}
		}
		return verdict{running: condition.False(hivev1.ReasonClusterDeleting,
			"Assigned cluster waits to be deleted: its ClusterPool deletes no more than maxConcurrent clusters at a time; its status.plan names those that are being deleted")}
	}
	return verdict{
		running: goes,
		destroy: !f.pool && !f.of.deleting,
	}
}

func wait(f facts, now time.Time) verdict {
	switch {
	case !f.pool:
		return verdict{pending: condition.True(hivev1.ReasonPoolNotFound,
			"The ClusterPool that spec.clusterPoolName names does not exist in this namespace: create it, or delete the claim")}
	case f.dissolving:
		return verdict{pending: condition.True(hivev1.ReasonPoolDeleting, "The ClusterPool is being deleted and serves no more claims: claim from another")}
	case f.refused:
		return verdict{} // the condition says what the hub said
	}
	if left := f.created.Add(grace).Sub(now); left > 0 && f.ready && !f.told {
		return verdict{next: left}
	}
	return verdict{pending: condition.True(hivev1.ReasonNoClusters, "No clusters in pool are ready to be claimed")}
}

func hold(f facts, now time.Time) verdict {
	v := verdict{
		pending: condition.False(hivev1.ReasonClusterClaimed, "Cluster claimed"),
		running: running(f.of),
	}
	if f.of.claimed.IsZero() {
		return v // nothing to count from
	}
	span, err := effective(f.lifetime, f.fallback, f.maximum)
	if err != nil {
		v.pending.Message = "Cluster claimed; spec.lifetime is ignored: " + err.Error()
		v.fault = kstatus.Stalled(hivev1.ReasonInvalidLifetime, v.pending.Message+": correct it")
		return v
	}
	if span == 0 {
		return v
	}
	d := hivev1.DurationOf(span)
	v.lifetime = &d
	v.next = f.of.claimed.Add(span).Sub(now)
	v.expired = v.next <= 0
	return v
}

func running(c *clusterFacts) condition.Value {
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

// effective is the lifetime in force: the claim's, else the pool's default, never
// more than the pool's maximum; 0 is for ever.
func effective(own, fallback, maximum *hivev1.Duration) (time.Duration, error) {
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
