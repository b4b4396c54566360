package claim

import (
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/heartbeat"
)

// A Snapshot is everything that a plan for a claim depends on.
type Snapshot struct {
	Now time.Time
	// Name is the name of the claim.
	Name     string
	Created  time.Time
	Deleting bool
	// DeletedAt is when the claim was deleted; zero if it was not.
	DeletedAt time.Time
	// ClusterName names the cluster in the claim's spec; empty while the claim waits.
	ClusterName string
	// Lifetime is the claim's own; DefaultLifetime and MaximumLifetime are the pool's. nil means
	// none.
	Lifetime, DefaultLifetime, MaximumLifetime *hivev1.Duration
	// PoolExists is set if the pool exists, PoolDeleting if it is being deleted.
	PoolExists, PoolDeleting bool
	// PoolHasReady is set if the pool's status reports assignable clusters.
	PoolHasReady bool
	// Held is the condition Admitted of a claim that the ClaimPolicies of its namespace do not admit; the
	// zero value if they do, or if there are none.
	Held condition.Value
	// Set is the ClaimSet with which the claim is served; empty if it belongs to none. SetMissing explains why the
	// claim gets no cluster although it names a set; empty if it may get one.
	Set, SetMissing string
	// Priority is the priority in effect while the claim waits; nil if nobody has set one.
	Priority *int32
	// PriorityProblem explains why that is not the value of the claim's annotation; empty if it is.
	PriorityProblem string
	// Heartbeat is nil if the claim has none.
	Heartbeat *heartbeat.Observation
	// HasConditions is set if the claim already has conditions.
	HasConditions bool
	// AssignmentRefused is set if the hub refused the assignment of a cluster that is still
	// reserved for the claim, as the condition Pending records.
	AssignmentRefused bool
	// Cluster is the claim's cluster; nil if it does not exist.
	Cluster *Cluster
	// Unreadable describes the field of the claim or its cluster that could not be read; empty if
	// all could.
	Unreadable string
}

// ownsCluster reports whether the cluster is bound to the claim.
func (s Snapshot) ownsCluster() bool { return s.Cluster != nil && s.Cluster.Claim == s.Name }

// A Cluster has the fields of a cluster that matter to its claim. It is comparable.
type Cluster struct {
	// InPool is set if the cluster belongs to a pool that could have bound it to the claim.
	InPool bool
	// Claim is the name of the claim that the cluster is bound to; empty if there is none.
	Claim string
	// ClaimedAt is when the cluster was bound to the claim; zero if that is unknown.
	ClaimedAt time.Time
	Deleting  bool
	// Protected is set if the hub refuses its deletion, because of the annotation protected-delete.
	Protected bool
	// AwaitsBundle is set while its destruction waits for a bundle of diagnostics.
	AwaitsBundle bool
	// Running is set if the cluster runs and is not about to hibernate.
	Running bool
	// Hibernates is set if the cluster should hibernate, and can.
	Hibernates bool
	// PowerState is the power state in the cluster's status.
	PowerState string
	// Unreadable is set if some of it could not be read, such as the claim that it is bound to.
	Unreadable bool
}
