package cli

import (
	"fmt"
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/manifest"
	"hotspare.io/hotspare/internal/pool"
	"hotspare.io/hotspare/internal/pool/forecast"
)

// stepsTable has a line for each step; clusters that are created for the same
// reason share one. The table of claims has their positions.
func stepsTable(f forecast.Preview) *table {
	t := newTable("STEPS")
	creates := map[string]int{}
	for _, st := range f.Plan.StepsOf(pool.Create) {
		creates[st.Reason]++
	}
	for _, st := range f.Plan.Steps {
		switch n := creates[st.Reason]; {
		case st.Verb == pool.SetPosition:
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
func powerTable(f forecast.Preview) *table {
	t := newTable("CLUSTER", "PHASE", "POWER", "TARGET")
	for _, c := range f.PlannedClusters() {
		if c.Power != c.TargetPower {
			t.add(c.Name, string(c.Phase), orNone(string(c.Power)), string(c.TargetPower))
		}
	}
	return t
}

// conditionTable has the conditions that are not as people like them, and a line
// for each thing that is missing.
func conditionTable(f forecast.Preview) *table {
	t := newTable("CONDITION", "STATUS", "REASON", "MESSAGE")
	for _, c := range f.UnhealthyConditions() {
		if c.Type == hivev1.PoolMissingDependencies && len(f.Missing) > 0 {
			t.add(c.Type, string(c.Status), c.Reason, f.Missing[0])
			for _, words := range f.Missing[1:] {
				t.add("", "", "", words)
			}
			continue
		}
		t.add(c.Type, string(c.Status), c.Reason, c.Message)
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
	Namespace string                    `json:"namespace"`
	Name      string                    `json:"name"`
	Version   string                    `json:"version"`
	Steps     []pool.Step               `json:"steps"`
	Clusters  []forecast.PlannedCluster `json:"clusters"`
	Counts    forecast.Census           `json:"counts"`
	Status    hivev1.ClusterPoolStatus  `json:"status"`
	Assumed   []string                  `json:"assumed"`
	Next      string                    `json:"next,omitempty"`
}

// reportOf has no null lists: programs need not tell none from null.
func reportOf(plans []prediction, warnings []manifest.Warning, now time.Time) planReport {
	out := planReport{Now: now, Pools: []planOfPool{}, Warnings: filled(warnings)}
	for _, f := range plans {
		p := planOfPool{
			Namespace: f.Pool.Namespace, Name: f.Pool.Name, Version: f.Facts.Settings.Version,
			Steps: filled(f.Plan.Steps), Clusters: filled(f.PlannedClusters()), Counts: f.CountMembersAndClaims(), Status: f.Told, Assumed: filled(f.assumed),
		}
		if f.Plan.Next > 0 {
			p.Next = f.Plan.Next.String()
		}
		out.Pools = append(out.Pools, p)
	}
	return out
}

func filled[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
