// Package poolplan explains why a pool does what it does: what the controller decides about it, the
// state and the next change of each of its clusters and claims, and what a user can do. It runs the
// same decider as the controller. It is pure.
package poolplan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/explain/humanize"
	"hotspare.io/hotspare/internal/pool"
	"hotspare.io/hotspare/internal/pool/facts"
)

// A Evaluation is what the controller would do with a pool, and would report about it.
type Evaluation struct {
	facts.Objects
	// Full explains why the platform has no room for another cluster; "" if it has room, or if that
	// is unknown. Decide reads Full and sets the fields below.
	Full string
	// Policy is the PoolPolicy of the pool; nil if it has none, or if that is unknown.
	Policy *v1alpha1.PoolPolicy
	Facts  pool.Snapshot
	Plan   pool.Plan
	// members are the members of Facts, with the claims that name them.
	members []pool.Member
	// The status that belongs to the plan.
	Told hivev1.ClusterPoolStatus
}

// Decide computes the plan for the objects, and the status that belongs to it.
func (e *Evaluation) Decide(now time.Time) error {
	inventoryPlan, err := e.DecideInventory()
	if err != nil {
		return err
	}
	if e.Facts, err = e.PoolSnapshot(inventoryPlan, now); err != nil {
		return err
	}
	if len(e.Pool.Finalizers) == 0 {
		e.Facts.Settings.FinalizerMissing = false // manifests have no finalizers; on a hub, the first pass adds it
	}
	if e.Full != "" {
		e.Facts.Settings.Room, e.Facts.Settings.NoRoom = new(int), e.Full
	}
	e.Plan, e.members = pool.Decide(e.Facts), e.Facts.ResolvedMembers()
	e.Told = e.PoolStatus(e.Plan.Report, inventoryPlan, e.Facts.Pending, now)
	return nil
}

// phases lists the phases by their importance to users.
var phases = []pool.Phase{
	pool.Assignable, pool.Standby, pool.Installing, pool.Broken, pool.Unreadable, pool.Claimed, pool.Removed, pool.Deleting,
}

// Counts that do not belong to a phase.
const (
	countPending = "pending"
	countWaiting = "waiting"
)

// A Census counts what exists before any step: clusters by phase, names recorded for clusters to be
// created, and waiting claims.
type Census map[string]int

// CountMembersAndClaims counts the pool's clusters, recorded names and waiting claims.
func (e Evaluation) CountMembersAndClaims() Census {
	out := Census{countPending: len(e.Facts.Pending), countWaiting: e.Plan.Report.Waiting}
	for _, p := range phases {
		out[string(p)] = 0
	}
	given := map[string]bool{}
	for _, m := range e.members {
		out[string(m.Phase(&e.Facts.Settings, e.Facts.Now))]++
		given[m.Claim] = true
	}
	for _, st := range e.Plan.StepsOf(pool.Bind) {
		if !given[st.Claim] {
			out[countWaiting]++ // the report counts planned bindings as done
		}
	}
	return out
}

// InWords returns the counts as text, such as "2 standby, 1 claimed, 1 claim waiting".
func (c Census) InWords() string {
	var parts []string
	for _, p := range phases {
		if n := c[string(p)]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, p))
		}
	}
	if n := c[countPending]; n > 0 {
		parts = append(parts, fmt.Sprintf("%d about to be created", n))
	}
	if len(parts) == 0 {
		parts = []string{"no clusters"}
	}
	if n := c[countWaiting]; n > 0 {
		parts = append(parts, humanize.FormatCount(n, "claim")+" waiting")
	}
	return strings.Join(parts, ", ")
}

// SummarizePlan returns the plan as one sentence, as in the pool's status, without what the
// conditions printed below it say.
func (e Evaluation) SummarizePlan() string {
	words := e.Told.Plan
	if blocked := e.Facts.Settings.Blocked; blocked != "" {
		words = strings.Replace(words, blocked, "see "+hivev1.PoolMissingDependencies, 1)
	}
	if e.Plan.Report.Progress == pool.Settled && words == string(pool.Settled) {
		words += ": nothing to do"
	}
	return words
}

// UnhealthyConditions returns the conditions that do not have their healthy status. It leaves out
// Progressing, which repeats the plan.
func (e Evaluation) UnhealthyConditions() []hivev1.Condition {
	return slices.DeleteFunc(slices.Clone(e.Told.Conditions), func(c hivev1.Condition) bool {
		good := corev1.ConditionTrue
		if c.Type == hivev1.PoolMissingDependencies {
			good = corev1.ConditionFalse
		}
		return c.Status == good || c.Reason == hivev1.ReasonInitialized || c.Type == hivev1.PoolProgressing
	})
}

// A PlannedCluster is a cluster as the plan sees it.
type PlannedCluster struct {
	Name        string     `json:"name"`
	Phase       pool.Phase `json:"phase"`
	Claim       string     `json:"claim,omitempty"`
	Stale       bool       `json:"stale"`
	Power       pool.Power `json:"power"`
	TargetPower pool.Power `json:"targetPower"`
}

// PlannedClusters returns the pool's clusters by name: the phase, the current spec.powerState and
// the planned one of each.
func (e Evaluation) PlannedClusters() []PlannedCluster {
	target := map[string]pool.Power{}
	for _, st := range e.Plan.Steps {
		switch st.Verb {
		case pool.Bind, pool.Start:
			target[st.Cluster] = pool.Running
		case pool.Hibernate:
			target[st.Cluster] = pool.Hibernating
		}
	}
	var out []PlannedCluster
	for _, m := range e.members {
		c := PlannedCluster{
			Name: m.Name, Phase: m.Phase(&e.Facts.Settings, e.Facts.Now), Claim: m.Claim,
			Stale: m.Version != e.Facts.Settings.Version, Power: m.Wanted, TargetPower: m.Wanted,
		}
		if want, planned := target[m.Name]; planned {
			c.TargetPower = want
		}
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b PlannedCluster) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func emptyIfNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
