package customization

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/inventory/lease"
)

// A snapshot is everything that a lease depends on.
type snapshot struct {
	// exists is set if the customization exists. If it does not, there may still be clusters that
	// name it.
	exists bool
	// unreadable is set if some of it could not be read, such as its holder.
	unreadable bool
	deleting   bool
	// hasFinalizer is set if it has hotspare's finalizer.
	hasFinalizer bool
	// If leased is set, holder has the lease, which was acquired for pool.
	leased       bool
	holder, pool types.NamespacedName
	// available is the status of its condition Available; empty if it has none.
	available string
	// applyReason is the reason of ApplySucceeded.
	applyReason string
	// statusCurrent is set if observedGeneration and the conditions Reconciling and Stalled are up
	// to date.
	statusCurrent bool
	// holderRecorded is set if the pool has recorded the holder for creation, poolUnreadable if the
	// pool cannot be read, so that this is unknown. Both are known only after a read from the API
	// server.
	holderRecorded, poolUnreadable bool
	// clusters are the existing ones among the clusters that name the customization, and the
	// holder.
	clusters []cluster
}

// cluster has the fields of a cluster that matter to a lease. It is comparable.
type cluster struct {
	key     types.NamespacedName
	uid     types.UID
	created time.Time
	// customization is the one that it names, in its pool's namespace. An empty name means none.
	customization types.NamespacedName
	pool          types.NamespacedName
	deleting      bool
	// hasDeprovisionFinalizer is set while it remains to be destroyed. A new cluster does not have
	// that finalizer yet.
	hasDeprovisionFinalizer bool
	// hasLeaseFinalizer is set while it has the finalizer that this package removes.
	hasLeaseFinalizer bool
	// installed and stopped are set if its installation succeeded or failed permanently.
	installed, stopped bool
	// unreadable is set if some of it could not be read, such as the customization that it names.
	unreadable bool
}

// isDestroyed reports whether nothing is left of a cluster that is being deleted. A cluster that
// was deleted before it got the deprovision finalizer has never been installed.
func (c cluster) isDestroyed() bool { return c.deleting && !c.hasDeprovisionFinalizer }

// A verb is what a step does.
type verb string

const (
	addFinalizer           verb = "hold"    // adds hotspare's finalizer to the customization
	acquireLease           verb = "take"    // acquires the lease for a cluster
	reportHolder           verb = "tell"    // sets the conditions to the state of the holder
	releaseLease           verb = "release" // releases the lease
	reportFree             verb = "free"    // reports that no cluster has the lease of a new customization
	reportStatus           verb = "report"  // sets observedGeneration, and Reconciling or Stalled
	removeClusterFinalizer verb = "let go"  // removes hotspare's finalizer from a cluster
	removeFinalizer        verb = "drop"    // removes hotspare's finalizer from the customization
)

// A step is one write.
type step struct {
	verb    verb
	cluster cluster
	// reason is why a lease ends, or the reason of ApplySucceeded.
	reason string
}

// String describes the step for people.
func (s step) String() string {
	switch s.verb {
	case acquireLease, removeClusterFinalizer:
		return fmt.Sprintf("%s %s", s.verb, s.cluster.key.Name)
	case releaseLease, reportHolder:
		return fmt.Sprintf("%s: %s", s.verb, s.reason)
	default:
		return string(s.verb)
	}
}

// writesStatus reports whether the step writes the customization's status.
func (s step) writesStatus() bool {
	return slices.Contains([]verb{acquireLease, reportHolder, releaseLease, reportFree, reportStatus}, s.verb)
}

// decide returns the steps for the customization called key. At most one of them writes its status.
func decide(key types.NamespacedName, f snapshot) []step {
	var plan []step
	switch {
	case !f.exists, f.unreadable:
	case f.leased:
		plan = planHeldLease(key, f)
	default:
		plan = planFreeLease(key, f)
	}
	if f.exists && !f.statusCurrent && !f.deleting && !slices.ContainsFunc(plan, step.writesStatus) {
		plan = append(plan, step{verb: reportStatus})
	}
	return append(plan, planFinalizerRemovals(key, f, plan)...)
}

// planFinalizerRemovals removes the finalizers of destroyed clusters that no longer have the
// customization called key once the steps of plan are executed.
func planFinalizerRemovals(key types.NamespacedName, f snapshot, plan []step) []step {
	released := slices.ContainsFunc(plan, func(s step) bool { return s.verb == releaseLease })
	var out []step
	for _, c := range f.clusters {
		has := f.leased && !f.unreadable && f.holder == c.key && !released
		if c.isDestroyed() && c.hasLeaseFinalizer && c.customization == key && !c.unreadable && !has {
			out = append(out, step{verb: removeClusterFinalizer, cluster: c})
		}
	}
	return out
}

// planHeldLease plans the steps for a customization whose lease a cluster has.
func planHeldLease(key types.NamespacedName, f snapshot) []step {
	if why := leaseEndReason(key, f); why != "" {
		return []step{{verb: releaseLease, reason: why}}
	}
	var plan []step
	if !f.hasFinalizer && !f.deleting {
		plan = append(plan, step{verb: addFinalizer})
	}
	if reason := applySucceededReason(f); f.available != availableFalse || reason != f.applyReason {
		plan = append(plan, step{verb: reportHolder, reason: reason})
	}
	return plan
}

// availableFalse is the status of Available while a cluster uses the customization.
const availableFalse = "False"

// leaseEndReason returns why no cluster needs the lease any longer; empty while one does, or may.
// While the holder's name is recorded, its pool creates it, even again after it was deleted: so the
// lease of a deleted cluster stays until its pool has seen that the cluster existed.
func leaseEndReason(key types.NamespacedName, f snapshot) string {
	c := f.findCluster(f.holder)
	switch {
	case c == nil && (f.holderRecorded || f.poolUnreadable):
		return ""
	case c == nil:
		return fmt.Sprintf("cluster %s does not exist", f.holder.Name)
	case c.unreadable:
		return ""
	case c.customization != key:
		return fmt.Sprintf("cluster %s does not name this customization", c.key.Name)
	case c.isDestroyed() && !f.holderRecorded:
		return fmt.Sprintf("cluster %s is gone", c.key.Name)
	}
	return ""
}

// applySucceededReason returns the reason that ApplySucceeded should have: it follows the holder's
// install while the holder is readable and not being deleted.
func applySucceededReason(f snapshot) string {
	c := f.findCluster(f.holder)
	switch {
	case c == nil, c.unreadable, c.deleting:
		return f.applyReason
	case c.installed:
		return hivev1.ReasonApplySucceeded
	case c.stopped:
		return hivev1.ReasonBrokenByCloud
	}
	return hivev1.ReasonInstallationPending
}

// applySucceededMessages maps the reasons of applySucceededReason to their messages.
var applySucceededMessages = map[string]string{
	hivev1.ReasonApplySucceeded:      lease.MessageInstalled,
	hivev1.ReasonInstallationPending: lease.MessageInstalling,
	hivev1.ReasonBrokenByCloud:       lease.MessageInstallFailed,
}

// planFreeLease acquires a free lease for a cluster that should have it.
func planFreeLease(key types.NamespacedName, f snapshot) []step {
	var plan []step
	switch next := nextHolder(key, f.clusters); {
	case next != nil:
		if !f.hasFinalizer && !f.deleting {
			plan = append(plan, step{verb: addFinalizer})
		}
		return append(plan, step{verb: acquireLease, cluster: *next})
	case f.available == availableFalse:
		plan = append(plan, step{verb: releaseLease, reason: "it names no cluster"})
	case f.available == "" && !f.deleting:
		plan = append(plan, step{verb: reportFree})
	}
	if f.deleting && f.hasFinalizer && !slices.ContainsFunc(f.clusters, func(c cluster) bool { return c.unreadable }) {
		plan = append(plan, step{verb: removeFinalizer})
	}
	return plan
}

// nextHolder returns the cluster that should acquire a free lease: the oldest that is not being
// deleted, or else the oldest that is not destroyed yet, since it still uses what the customization
// gave it.
func nextHolder(key types.NamespacedName, clusters []cluster) *cluster {
	var may []cluster
	for _, c := range clusters {
		if c.customization == key && !c.isDestroyed() && !c.unreadable {
			may = append(may, c)
		}
	}
	if len(may) == 0 {
		return nil
	}
	first := slices.MinFunc(may, func(a, b cluster) int {
		if a.deleting != b.deleting {
			if b.deleting {
				return -1
			}
			return 1
		}
		return cmp.Or(a.created.Compare(b.created), strings.Compare(a.key.String(), b.key.String()))
	})
	return &first
}

// findCluster returns the cluster with that key; nil if it does not exist.
func (f snapshot) findCluster(key types.NamespacedName) *cluster {
	for i := range f.clusters {
		if f.clusters[i].key == key {
			return &f.clusters[i]
		}
	}
	return nil
}
