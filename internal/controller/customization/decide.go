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

// snapshot is what a lease depends on.
type snapshot struct {
	// exists is whether there is the customization. Without, there may still be clusters
	// that name it.
	exists bool
	// unreadable is set when not all of it could be read: who has it, for one.
	unreadable bool
	deleting   bool
	// hasFinalizer is whether our finalizer is on it.
	hasFinalizer bool
	// holder has the lease, if leased, and took it for pool.
	leased       bool
	holder, pool types.NamespacedName
	// available is what it says: True, False, or nothing.
	available string
	// applyReason is the reason of ApplySucceeded.
	applyReason string
	// statusCurrent is whether the generation and the conditions Reconciling and Stalled are as
	// they should be.
	statusCurrent bool
	// holderRecorded is whether the pool means to make the holder, obscure whether it may, for
	// it cannot be read. Both are known only when the API server was asked.
	holderRecorded, poolUnreadable bool
	// clusters are those that name the customization, and the holder, if they exist.
	clusters []cluster
}

// cluster is what matters of a cluster. It is comparable.
type cluster struct {
	key     types.NamespacedName
	uid     types.UID
	created time.Time
	// customization is what it names, of its pool's namespace. Without a name it names none.
	customization types.NamespacedName
	pool          types.NamespacedName
	deleting      bool
	// hasDeprovisionFinalizer is whether it is still to be destroyed. A new cluster is not marked so yet.
	hasDeprovisionFinalizer bool
	// hasLeaseFinalizer is whether it waits for us to let it go.
	hasLeaseFinalizer bool
	// installed and stopped tell how its installation ended, if it did.
	installed, stopped bool
	// unreadable is set when not all of it could be read: what it names, for one.
	unreadable bool
}

// isDestroyed is whether nothing is left of a cluster that is being deleted. One that was
// deleted before it was marked as standing has never been installed.
func (c cluster) isDestroyed() bool { return c.deleting && !c.hasDeprovisionFinalizer }

// verb is what a step does.
type verb string

const (
	addFinalizer           verb = "hold"    // our finalizer onto the customization
	acquireLease           verb = "take"    // the lease for a cluster
	reportHolder           verb = "tell"    // how its cluster does
	releaseLease           verb = "release" // the lease
	reportFree             verb = "free"    // says that nobody has the lease of a new customization
	reportStatus           verb = "report"  // the generation, and Reconciling or Stalled
	removeClusterFinalizer verb = "let go"  // our finalizer off a cluster
	removeFinalizer        verb = "drop"    // our finalizer off the customization
)

// step is one write.
type step struct {
	verb    verb
	cluster cluster
	// reason is why a lease ends, or what ApplySucceeded will say.
	reason string
}

// String says what the step does, for people.
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

// decide says what to do about the customization called key. At most one step writes
// its status.
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

// planFinalizerRemovals removes the finalizers of clusters that are over and do not have the customization
// called key any more, once the steps of plan are taken.
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

// planHeldLease looks after a lease that somebody has.
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

// leaseEndReason is why nobody has a use for the lease any longer; empty while somebody has, or may
// have. While the holder's name is recorded its pool makes it, even again if it is gone: so
// a cluster that is gone waits until its pool has seen that it was there.
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

// applySucceededReason is the reason that ApplySucceeded should have: as the holder does, while it
// can be seen to do anything.
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

// applySucceededMessages are those of the reasons that outcome gives.
var applySucceededMessages = map[string]string{
	hivev1.ReasonApplySucceeded:      lease.MessageInstalled,
	hivev1.ReasonInstallationPending: lease.MessageInstalling,
	hivev1.ReasonBrokenByCloud:       lease.MessageInstallFailed,
}

// planFreeLease gives a lease that nobody has to a cluster that should have it.
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

// nextHolder is the cluster that takes a free lease: the oldest of those that live, else of
// those that are not destroyed yet, for they still use what the customization gave them.
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

// findCluster is the cluster with that key, or nil if it does not exist.
func (f snapshot) findCluster(key types.NamespacedName) *cluster {
	for i := range f.clusters {
		if f.clusters[i].key == key {
			return &f.clusters[i]
		}
	}
	return nil
}
