package claimset

import (
	"fmt"
	"time"

	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/heartbeat"
)

// A Snapshot is everything that the plan for a set depends on. Its lists are in any order.
type Snapshot struct {
	Now     time.Time
	Name    string
	Created time.Time
	Size    int
	// Unreadable describes what of the set could not be read; empty if all could.
	Unreadable string
	Deleting   bool
	// FinalizerMissing is set if the set does not have hotspare's finalizer.
	FinalizerMissing bool
	// Served is set if its status says that it had all its clusters.
	Served bool
	// PoolName is the pool that its spec names; empty if it has Preferences.
	PoolName string
	// LastPool is the pool that its status names: while the set has no claims, the one to which they were to move. It
	// is a preference only.
	LastPool string
	// Preferences are its preferences, the first one first. SelectorProblem explains which of them is not valid;
	// empty if all are.
	Preferences     []Preference
	SelectorProblem string
	// Pools are the pools of its namespace.
	Pools []Pool
	// Claims are the claims that belong to it.
	Claims []Claim
	// Taken are the names of its claims that claims of others have.
	Taken []string
	// Heartbeat is nil if the set has none.
	Heartbeat *heartbeat.Observation
	// Refusal is the answer of the hub that has just refused to create or delete its claims; empty if it did not.
	Refusal string
}

// A Preference is a preference of a set.
type Preference struct {
	// Pools are the names of the pools that it selects.
	Pools []string
	// FallbackAfter is how long the set waits for them before it considers those of the next preference.
	FallbackAfter time.Duration
}

// A Pool is a pool in the namespace of the set.
type Pool struct {
	Name     string
	Deleting bool
	// Most is the number of clusters that its spec allows, and MostReason explains it as text; nil if it has no
	// limit.
	Most       *int
	MostReason string
	// Free are its free clusters, and Kept is how many of them stay so if no claim waits.
	Free, Kept FreeClusters
	// Occupied is how many clusters claims of others have. What the pool creates for the set does not count: the set would
	// leave a pool because that creates clusters for it.
	Occupied int
	// NotPermitted is set if the ClaimPolicies of the namespace can never admit the set on it.
	NotPermitted bool
	// Blocked explains why it creates no cluster until a person acts, and NoRoom why it has no room for another one now;
	// empty if that is not so.
	Blocked, NoRoom string
}

// FreeClusters are numbers of clusters that neither a claim has nor a claim of others waits for: those that run, and those that
// are installed, which includes the former. A number is negative if claims wait for more than there are.
type FreeClusters struct {
	Running, Installed int
}

// limitTo returns the clusters that are left when a pool has hibernated and deleted those that it does not keep.
func (f FreeClusters) limitTo(kept FreeClusters) FreeClusters {
	return FreeClusters{min(f.Running, kept.Running), min(f.Installed, kept.Installed)}
}

// A Claim is a claim that belongs to the set.
type Claim struct {
	Name string
	// Pool is the pool that its spec names.
	Pool string
	// Cluster is its cluster; empty while it waits. Running is set while the cluster is running, and Lost if it
	// was deleted.
	Cluster       string
	Running, Lost bool
	Deleting      bool
	// Held is why ClaimPolicies do not admit it; the zero value if they do.
	Held condition.Value
	// Refused is set while the hub refuses to let hotspare assign its cluster.
	Refused string
	// Position and Ready are as in its status; zero if unknown.
	Position int
	Ready    time.Time
}

// A Verb is what a step does.
type Verb string

// The verbs, in the order of the steps in a plan.
const (
	// AddFinalizer adds hotspare's finalizer to the set, RemoveFinalizer removes it.
	AddFinalizer    Verb = "add finalizer"
	RemoveFinalizer Verb = "remove finalizer"
	// DeleteClaim deletes a claim of the set; CreateClaim creates one.
	DeleteClaim Verb = "delete ClusterClaim"
	CreateClaim Verb = "create ClusterClaim"
	// DeleteSet deletes the set, after its last claim. ReleaseSet deletes a set whose heartbeat is missing, and so
	// its claims.
	DeleteSet  Verb = "delete ClaimSet"
	ReleaseSet Verb = "release ClaimSet"
)

// A Step is one action.
type Step struct {
	Verb Verb
	// Claim is set for CreateClaim and DeleteClaim, Pool for CreateClaim.
	Claim, Pool string
	// Waiting is set for the deletion of a claim that must not have a cluster.
	Waiting bool
	// Reason explains the step to people.
	Reason string
}

// String returns the step as text, such as "create ClusterClaim x-0 on pool dev: the set needs 2 claims".
func (s Step) String() string {
	switch s.Verb {
	case CreateClaim:
		return fmt.Sprintf("%s %s on pool %s: %s", s.Verb, s.Claim, s.Pool, s.Reason)
	case DeleteClaim:
		return fmt.Sprintf("%s %s: %s", s.Verb, s.Claim, s.Reason)
	default:
		return fmt.Sprintf("%s: %s", s.Verb, s.Reason)
	}
}

// A Plan is what to do next, and what to report.
type Plan struct {
	Steps []Step
	// Pool is the pool that serves the set; empty if none can.
	Pool string
	// Pending, ClustersRunning and HeartbeatMissing are conditions of the set; the zero value leaves a condition
	// unchanged. Stalled is set if a person must act before it can get its clusters.
	Pending, ClustersRunning, HeartbeatMissing condition.Value
	Stalled                                    bool
	// InvalidHeartbeat reports that the timeout of its heartbeat is not valid; the zero value means that it is.
	InvalidHeartbeat condition.Value
	// Served is set once the set has all its clusters.
	Served bool
	// Position and Ready are those of the set in the queue of its pool; zero if unknown.
	Position int
	Ready    time.Time
	// Next is the time until the set must be reconciled again even if nothing changes; 0 means never.
	Next time.Duration
}

// CountSteps returns the number of steps with any of the verbs.
func (p Plan) CountSteps(verbs ...Verb) int {
	n := 0
	for _, s := range p.Steps {
		for _, v := range verbs {
			if s.Verb == v {
				n++
			}
		}
	}
	return n
}

// String returns one line per step.
func (p Plan) String() string {
	text := ""
	for i, s := range p.Steps {
		if i > 0 {
			text += "\n"
		}
		text += s.String()
	}
	return text
}
