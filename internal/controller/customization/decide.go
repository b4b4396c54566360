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

// facts is what a lease depends on.
type facts struct {
	// exists is whether there is the customization. Without, there may still be clusters
	// that name it.
	exists bool
	// unreadable is set when not all of it could be read: who has it, for one.
	unreadable bool
	deleting   bool
	// held is whether our finalizer is on it.
	held bool
	// holder has the lease, if leased, and took it for pool.
	leased       bool
	holder, pool types.NamespacedName
	// available is what it says: True, False, or nothing.
	available string
	// applied is the reason of ApplySucceeded.
	applied string
	// reported is whether the generation and the conditions Reconciling and Stalled are as
	// they should be.
	reported bool
	// recorded is whether the pool means to make the holder, obscure whether it may, for
	// it cannot be read. Both are known only when the API server was asked.
	recorded, obscure bool
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
	// standing is whether it is still to be destroyed. A new cluster is not marked so yet.
	standing bool
	// bound is whether it waits for us to let it go.
	bound bool
	// installed and stopped tell how its installation ended, if it did.
	installed, stopped bool
	// unreadable is set when not all of it could be read: what it names, for one.
	unreadable bool
}

// over is whether nothing is left of a cluster that is being deleted. One that was
// deleted before it was marked as standing has never been installed.
func (c cluster) over() bool { return c.deleting && !c.standing }

// verb is what a step does.
type verb string

const (
	hold    verb = "hold"    // our finalizer onto the customization
	take    verb = "take"    // the lease for a cluster
	tell    verb = "tell"    // how its cluster does
	release verb = "release" // the lease
	free    verb = "free"    // says that nobody has the lease of a new customization
	report  verb = "report"  // the generation, and Reconciling or Stalled
	letGo   verb = "let go"  // our finalizer off a cluster
	drop    verb = "drop"    // our finalizer off the customization
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
	case take, letGo:
		return fmt.Sprintf("%s %s", s.verb, s.cluster.key.Name)
	case release, tell:
		return fmt.Sprintf("%s: %s", s.verb, s.reason)
	default:
		return string(s.verb)
	}
}

// writesStatus reports whether the step writes the customization's status.
func (s step) writesStatus() bool {
	return slices.Contains([]verb{take, tell, release, free, report}, s.verb)
}

// decide says what to do about the customization called key. At most one step writes
// its status.
func decide(key types.NamespacedName, f facts) []step {
	var plan []step
	switch {
	case !f.exists, f.unreadable:
	case f.leased:
		plan = keep(key, f)
	default:
		plan = repair(key, f)
	}
	if f.exists && !f.reported && !f.deleting && !slices.ContainsFunc(plan, step.writesStatus) {
		plan = append(plan, step{verb: report})
	}
	return append(plan, unbind(key, f, plan)...)
}

// unbind removes the finalizers of clusters that are over and do not have the customization
// called key any more, once the steps of plan are taken.
func unbind(key types.NamespacedName, f facts, plan []step) []step {
	released := slices.ContainsFunc(plan, func(s step) bool { return s.verb == release })
	var out []step
	for _, c := range f.clusters {
		has := f.leased && !f.unreadable && f.holder == c.key && !released
		if c.over() && c.bound && c.customization == key && !c.unreadable && !has {
			out = append(out, step{verb: letGo, cluster: c})
		}
	}
	return out
}

// keep looks after a lease that somebody has.
func keep(key types.NamespacedName, f facts) []step {
	if why := ended(key, f); why != "" {
		return []step{{verb: release, reason: why}}
	}
	var plan []step
	if !f.held && !f.deleting {
		plan = append(plan, step{verb: hold})
	}
	if reason := outcome(f); f.available != no || reason != f.applied {
		plan = append(plan, step{verb: tell, reason: reason})
	}
	return plan
}

// no is the status of Available while a cluster uses the customization.
const no = "False"

// ended is why nobody has a use for the lease any longer; empty while somebody has, or may
// have. While the holder's name is recorded its pool makes it, even again if it is gone: so
// a cluster that is gone waits until its pool has seen that it was there.
func ended(key types.NamespacedName, f facts) string {
	c := f.named(f.holder)
	switch {
	case c == nil && (f.recorded || f.obscure):
		return ""
	case c == nil:
		return fmt.Sprintf("cluster %s does not exist", f.holder.Name)
	case c.unreadable:
		return ""
	case c.customization != key:
		return fmt.Sprintf("cluster %s does not name this customization", c.key.Name)
	case c.over() && !f.recorded:
		return fmt.Sprintf("cluster %s is gone", c.key.Name)
	}
	return ""
}

// outcome is the reason that ApplySucceeded should have: as the holder does, while it
// can be seen to do anything.
func outcome(f facts) string {
	c := f.named(f.holder)
	switch {
	case c == nil, c.unreadable, c.deleting:
		return f.applied
	case c.installed:
		return hivev1.ReasonApplySucceeded
	case c.stopped:
		return hivev1.ReasonBrokenByCloud
	}
	return hivev1.ReasonInstallationPending
}

// messages are those of the reasons that outcome gives.
var messages = map[string]string{
	hivev1.ReasonApplySucceeded:      lease.Installed,
	hivev1.ReasonInstallationPending: lease.Installing,
	hivev1.ReasonBrokenByCloud:       lease.Broken,
}

// repair gives a lease that nobody has to a cluster that should have it.
func repair(key types.NamespacedName, f facts) []step {
	var plan []step
	switch next := heir(key, f.clusters); {
	case next != nil:
		if !f.held && !f.deleting {
			plan = append(plan, step{verb: hold})
		}
		return append(plan, step{verb: take, cluster: *next})
	case f.available == no:
		plan = append(plan, step{verb: release, reason: "it names no cluster"})
	case f.available == "" && !f.deleting:
		plan = append(plan, step{verb: free})
	}
	if f.deleting && f.held && !slices.ContainsFunc(f.clusters, func(c cluster) bool { return c.unreadable }) {
		plan = append(plan, step{verb: drop})
	}
	return plan
}

// heir is the cluster that takes a free lease: the oldest of those that live, else of
// those that are not destroyed yet, for they still use what the customization gave them.
func heir(key types.NamespacedName, clusters []cluster) *cluster {
	var may []cluster
	for _, c := range clusters {
		if c.customization == key && !c.over() && !c.unreadable {
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

// named is the cluster with that key, or nil if it does not exist.
func (f facts) named(key types.NamespacedName) *cluster {
	for i := range f.clusters {
		if f.clusters[i].key == key {
			return &f.clusters[i]
		}
	}
	return nil
}
