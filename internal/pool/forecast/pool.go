// Package forecast tells why a pool does what it does: what is decided about it, what each
// of its clusters and claims is to it and what becomes of them, and what a person can do.
// It decides anew, with the decider that the controller runs. It is pure.
package forecast

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/pool"
	"hotspare.io/hotspare/internal/pool/facts"
	"hotspare.io/hotspare/internal/prose"
)

// Preview is what the controller would do with a pool, and would report of it.
type Preview struct {
	facts.Objects
	// Full says why the platform has no room for another cluster; "" when it has some, or
	// nobody knows. Decide reads it; it writes what follows.
	Full  string
	Facts pool.Snapshot
	Plan  pool.Plan
	// members are the members of Facts, with the claims that name them.
	members []pool.Member
	// Told is the status that goes with the plan.
	Told hivev1.ClusterPoolStatus
}

// Decide makes the plan of what there is, and the status that goes with it.
func (f *Preview) Decide(now time.Time) error {
	books, err := f.DecideInventory()
	if err != nil {
		return err
	}
	if f.Facts, err = f.PoolSnapshot(books, now); err != nil {
		return err
	}
	if f.Full != "" {
		f.Facts.Settings.Room, f.Facts.Settings.NoRoom = new(int), f.Full
	}
	f.Plan, f.members = pool.Decide(f.Facts), f.Facts.ResolvedMembers()
	f.Told = f.PoolStatus(f.Plan.Report, books, f.Facts.Pending, now)
	return nil
}

// phases are in the order in which people want to know of them.
var phases = []pool.Phase{
	pool.Assignable, pool.Standby, pool.Installing, pool.Broken, pool.Unreadable, pool.Claimed, pool.Removed, pool.Deleting,
}

// Counts that are no phase's.
const (
	countPending = "pending"
	countWaiting = "waiting"
)

// Census counts what there is before any step: clusters by phase, names that are
// recorded for clusters to come, and claims that wait.
type Census map[string]int

// CountMembersAndClaims counts what there is of the pool.
func (f Preview) CountMembersAndClaims() Census {
	out := Census{countPending: len(f.Facts.Pending), countWaiting: f.Plan.Report.Waiting}
	for _, p := range phases {
		out[string(p)] = 0
	}
	given := map[string]bool{}
	for _, m := range f.members {
		out[string(m.Phase(f.Facts.Settings, f.Facts.Now))]++
		given[m.Claim] = true
	}
	for _, st := range f.Plan.StepsOf(pool.Bind) {
		if !given[st.Claim] {
			out[countWaiting]++ // the report foresees bindings
		}
	}
	return out
}

// InWords is "2 standby, 1 claimed, 1 claim waiting".
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
		parts = append(parts, prose.Count(n, "claim")+" waiting")
	}
	return strings.Join(parts, ", ")
}

// SummarizePlan is the plan in a sentence, as the pool's status will have it, without
// what the conditions below it say.
func (f Preview) SummarizePlan() string {
	words := f.Told.Plan
	if blocked := f.Facts.Settings.Blocked; blocked != "" {
		words = strings.Replace(words, blocked, "see "+hivev1.PoolMissingDependencies, 1)
	}
	if f.Plan.Report.Progress == pool.Settled && words == string(pool.Settled) {
		words += ": nothing to do"
	}
	return words
}

// UnhealthyConditions are the conditions that are not as people like them. Progressing is not among
// them: it says what the plan says.
func (f Preview) UnhealthyConditions() []hivev1.Condition {
	return slices.DeleteFunc(slices.Clone(f.Told.Conditions), func(c hivev1.Condition) bool {
		good := corev1.ConditionTrue
		if c.Type == hivev1.PoolMissingDependencies {
			good = corev1.ConditionFalse
		}
		return c.Status == good || c.Reason == hivev1.ReasonInitialized || c.Type == hivev1.PoolProgressing
	})
}

// PlannedCluster is a cluster as the plan has it.
type PlannedCluster struct {
	Name        string     `json:"name"`
	Phase       pool.Phase `json:"phase"`
	Claim       string     `json:"claim,omitempty"`
	Stale       bool       `json:"stale"`
	Power       pool.Power `json:"power"`
	TargetPower pool.Power `json:"targetPower"`
}

// PlannedClusters are the pool's clusters by name: what each is, is told to be, and will
// be told to be.
func (f Preview) PlannedClusters() []PlannedCluster {
	target := map[string]pool.Power{}
	for _, st := range f.Plan.Steps {
		switch st.Verb {
		case pool.Bind, pool.Start:
			target[st.Cluster] = pool.Running
		case pool.Sleep:
			target[st.Cluster] = pool.Hibernating
		}
	}
	var out []PlannedCluster
	for _, m := range f.members {
		c := PlannedCluster{
			Name: m.Name, Phase: m.Phase(f.Facts.Settings, f.Facts.Now), Claim: m.Claim,
			Stale: m.Version != f.Facts.Settings.Version, Power: m.Wanted, TargetPower: m.Wanted,
		}
		if want, told := target[m.Name]; told {
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
