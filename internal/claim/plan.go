package claim

import (
	"fmt"
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
)

// A Verb is what a step does.
type Verb string

// The verbs. A plan has at most one step.
const (
	// RemoveFinalizer removes the finalizer from a deleted claim.
	RemoveFinalizer Verb = "remove finalizer"
	// DeleteClaim deletes the claim.
	DeleteClaim Verb = "delete ClusterClaim"
	// DeleteCluster deletes the claim's cluster.
	DeleteCluster Verb = "delete ClusterDeployment"
)

// A Reason is why a step is taken, from a closed list.
type Reason string

// The reasons of steps.
const (
	// NoCluster: a deleted claim has no cluster, or only one that is bound to another claim.
	NoCluster Reason = "NoCluster"
	// LifetimeElapsed: the claim has had its cluster for as long as its lifetime.
	LifetimeElapsed Reason = "LifetimeElapsed"
	// HeartbeatMissing: the claim's heartbeat has been missing for its timeout.
	HeartbeatMissing Reason = "HeartbeatMissing"
	// PoolNotFound: the pool, whose controller would delete the cluster, does not exist.
	PoolNotFound Reason = "PoolNotFound"
)

// A Step is one action.
type Step struct {
	Verb   Verb
	Reason Reason
}

// String returns the step as text, such as "delete ClusterClaim: LifetimeElapsed".
func (s Step) String() string { return fmt.Sprintf("%s: %s", s.Verb, s.Reason) }

// EndsClaim reports whether the claim's status need not be written after the step.
func (s Step) EndsClaim() bool { return s.Verb == RemoveFinalizer || s.Verb == DeleteClaim }

// A Plan is what to do about a claim.
type Plan struct {
	// Steps are executed in order, before the status is written.
	Steps []Step
	// Pending, ClusterRunning and HeartbeatMissing are conditions of the claim; the zero value leaves
	// a condition unchanged.
	Pending, ClusterRunning, HeartbeatMissing condition.Value
	// Priority is the priority in effect of a claim that waits; nil if it has none.
	Priority *int32
	// Lifetime is the effective lifetime of a claim that has a cluster; nil means no limit.
	Lifetime *hivev1.Duration
	// Stalled reports an invalid field of a claim that has its cluster; the zero value means that
	// there is none.
	Stalled condition.Value
	// Next is the time until the claim must be reconciled again even if nothing changes; 0 means
	// never.
	Next time.Duration
}
