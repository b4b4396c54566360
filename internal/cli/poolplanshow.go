package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/manifest"
	"hotspare.io/hotspare/internal/pool"
)

// phases are in the order in which people want to know of them.
var phases = []pool.Phase{
	pool.Assignable, pool.Standby, pool.Installing, pool.Broken, pool.Claimed, pool.Removed, pool.Deleting,
}

// Counts that are no phase's.
const (
	countPending = "pending"
	countWaiting = "waiting"
)

// census counts what there is before any step: clusters by phase, names that are
// recorded for clusters to come, and claims that wait.
type census map[string]int

func (f forecast) census() census {
	out := census{countPending: len(f.snapshot.Pending), countWaiting: f.plan.Report.Waiting}
	for _, p := range phases {
		out[string(p)] = 0
	}
	given := map[string]bool{}
	for _, m := range f.snapshot.Members {
		out[string(m.Phase(f.snapshot.Settings, f.snapshot.Now))]++
		given[m.Claim] = true
	}
	for _, st := range f.plan.Of(pool.Bind) {
		if !given[st.Claim] {
			out[countWaiting]++ // the report foresees bindings
		}
	}
	return out
}

func (c census) inWords() string {
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
		parts = append(parts, count(n, "claim")+" waiting")
	}
	return strings.Join(parts, ", ")
}

// summary is the plan in a sentence, as the pool's status will have it, without
// what the conditions below it say.
func (f forecast) summary() string {
	words := f.status.Plan
	if blocked := f.snapshot.Settings.Blocked; blocked != "" {
		words = strings.Replace(words, blocked, "see "+hivev1.PoolMissingDependencies, 1)
	}
	if words == "settled" {
		words += ": nothing to do"
	}
	return words
}

// stepTable has a line for each step; clusters that are created for the same
// reason share one.
func (f forecast) stepTable() *table {
	t := newTable("STEPS")
	creates := map[string]int{}
	for _, st := range f.plan.Of(pool.Create) {
		creates[st.Reason]++
	}
	for _, st := range f.plan.Steps {
		switch n := creates[st.Reason]; {
		case st.Verb != pool.Create || n == 1:
			t.add(st.String())
		case n > 1:
			t.add(fmt.Sprintf("create %d clusters: %s", n, st.Reason))
			creates[st.Reason] = 0
		}
	}
	return t
}

// powerTable has the clusters that are told something new.
func (f forecast) powerTable() *table {
	t := newTable("CLUSTER", "PHASE", "POWER", "TARGET")
	for _, c := range f.members() {
		if c.Power != c.TargetPower {
			t.add(c.Name, string(c.Phase), orNone(string(c.Power)), string(c.TargetPower))
		}
	}
	return t
}

// conditionTable has the conditions that are not as people like them, and a line
// for each thing that is missing.
func (f forecast) conditionTable() *table {
	t := newTable("CONDITION", "STATUS", "REASON", "MESSAGE")
	for _, c := range f.status.Conditions {
		good := corev1.ConditionTrue
		if c.Type == hivev1.PoolMissingDependencies {
			good = corev1.ConditionFalse
		}
		switch {
		case c.Status == good || c.Reason == hivev1.ReasonInitialized:
		case c.Type == hivev1.PoolMissingDependencies && len(f.Missing) > 0:
			t.add(c.Type, string(c.Status), c.Reason, f.Missing[0])
			for _, words := range f.Missing[1:] {
				t.add("", "", "", words)
			}
		default:
			t.add(c.Type, string(c.Status), c.Reason, c.Message)
		}
	}
	return t
}

// planReport is what -o json prints. It is an interface: docs/cli.md describes it,
// and fields are only ever added.
type planReport struct {
	Now      time.Time          `json:"now"`
	Pools    []planOfPool       `json:"pools"`
	Warnings []manifest.Warning `json:"warnings"`
}

type planOfPool struct {
	Namespace string                   `json:"namespace"`
	Name      string                   `json:"name"`
	Version   string                   `json:"version"`
	Steps     []pool.Step              `json:"steps"`
	Clusters  []planOfCluster          `json:"clusters"`
	Counts    census                   `json:"counts"`
	Status    hivev1.ClusterPoolStatus `json:"status"`
	Assumed   []string                 `json:"assumed"`
	Next      string                   `json:"next,omitempty"`
}

type planOfCluster struct {
	Name        string     `json:"name"`
	Phase       pool.Phase `json:"phase"`
	Claim       string     `json:"claim,omitempty"`
	Stale       bool       `json:"stale"`
	Power       pool.Power `json:"power"`
	TargetPower pool.Power `json:"targetPower"`
}

// reportOf has no null lists: programs need not tell none from null.
func reportOf(plans []forecast, warnings []manifest.Warning, now time.Time) planReport {
	out := planReport{Now: now, Pools: []planOfPool{}, Warnings: filled(warnings)}
	for _, f := range plans {
		p := planOfPool{
			Namespace: f.Pool.Namespace, Name: f.Pool.Name, Version: f.snapshot.Settings.Version,
			Steps: filled(f.plan.Steps), Clusters: filled(f.members()), Counts: f.census(), Status: f.status, Assumed: filled(f.assumed),
		}
		if f.plan.Next > 0 {
			p.Next = f.plan.Next.String()
		}
		out.Pools = append(out.Pools, p)
	}
	return out
}

// members are the pool's clusters by name: what each is, is told to be, and will
// be told to be.
func (f forecast) members() []planOfCluster {
	target := map[string]pool.Power{}
	for _, st := range f.plan.Steps {
		switch st.Verb {
		case pool.Bind, pool.Start:
			target[st.Cluster] = pool.Running
		case pool.Sleep:
			target[st.Cluster] = pool.Hibernating
		}
	}
	var out []planOfCluster
	for _, m := range f.snapshot.Members {
		c := planOfCluster{
			Name: m.Name, Phase: m.Phase(f.snapshot.Settings, f.snapshot.Now), Claim: m.Claim,
			Stale: m.Version != f.snapshot.Settings.Version, Power: m.Wanted, TargetPower: m.Wanted,
		}
		if want, told := target[m.Name]; told {
			c.TargetPower = want
		}
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b planOfCluster) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func filled[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
