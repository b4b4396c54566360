package pool

import (
	"fmt"
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/explain/poolplan"
	"hotspare.io/hotspare/internal/manifest"
	"hotspare.io/hotspare/internal/pool"
)

// BuildStepTable has a row for each step. Clusters that are created for the same reason share a
// row. Steps that set a claim's position are omitted: the table of claims shows the positions.
func BuildStepTable(f poolplan.Evaluation) *base.Table {
	t := base.NewTable("STEPS")
	creates := map[string]int{}
	for _, st := range f.Plan.StepsOf(pool.Create) {
		creates[st.Reason]++
	}
	for _, st := range f.Plan.Steps {
		switch n := creates[st.Reason]; {
		case st.Verb == pool.SetPosition:
		case st.Verb != pool.Create || n == 1:
			t.AddRow(st.String())
		case n > 1:
			t.AddRow(fmt.Sprintf("create %d clusters: %s", n, st.Reason))
			creates[st.Reason] = 0
		}
	}
	return t
}

// buildPowerTable lists the clusters whose power state changes.
func buildPowerTable(f poolplan.Evaluation) *base.Table {
	t := base.NewTable("CLUSTER", "PHASE", "POWER", "TARGET")
	for _, c := range f.PlannedClusters() {
		if c.Power != c.TargetPower {
			t.AddRow(c.Name, string(c.Phase), base.ValueOrNone(string(c.Power)), string(c.TargetPower))
		}
	}
	return t
}

// BuildConditionTable lists the conditions that report a problem, with a row for each missing
// dependency.
func BuildConditionTable(f poolplan.Evaluation) *base.Table {
	t := base.NewTable("CONDITION", "STATUS", "REASON", "MESSAGE")
	for _, c := range f.UnhealthyConditions() {
		if c.Type == hivev1.PoolMissingDependencies && len(f.Missing) > 0 {
			t.AddRow(c.Type, string(c.Status), c.Reason, f.Missing[0])
			for _, words := range f.Missing[1:] {
				t.AddRow("", "", "", words)
			}
			continue
		}
		t.AddRow(c.Type, string(c.Status), c.Reason, c.Message)
	}
	return t
}

// PlanReport is the output of pool plan -o json. It is a public interface: docs/cli.md describes
// it. Fields may be added, but never changed or removed.
type PlanReport struct {
	Now      time.Time          `json:"now"`
	Pools    []PlannedPool      `json:"pools"`
	Warnings []manifest.Warning `json:"warnings"`
}

// PlannedPool is the plan of one pool in a PlanReport.
type PlannedPool struct {
	Namespace string                    `json:"namespace"`
	Name      string                    `json:"name"`
	Version   string                    `json:"version"`
	Steps     []pool.Step               `json:"steps"`
	Clusters  []poolplan.PlannedCluster `json:"clusters"`
	Counts    poolplan.Census           `json:"counts"`
	Status    hivev1.ClusterPoolStatus  `json:"status"`
	Assumed   []string                  `json:"assumed"`
	Next      string                    `json:"next,omitempty"`
}

// newPlanReport uses empty lists instead of null, so that programs need not handle both.
func newPlanReport(plans []manifestPlan, warnings []manifest.Warning, now time.Time) PlanReport {
	out := PlanReport{Now: now, Pools: []PlannedPool{}, Warnings: base.EmptyIfNil(warnings)}
	for _, f := range plans {
		p := PlannedPool{
			Namespace: f.Pool.Namespace, Name: f.Pool.Name, Version: f.Facts.Settings.Version,
			Steps: base.EmptyIfNil(f.Plan.Steps), Clusters: base.EmptyIfNil(f.PlannedClusters()), Counts: f.CountMembersAndClaims(),
			Status: f.Told, Assumed: base.EmptyIfNil(f.assumedObjects),
		}
		if f.Plan.Next > 0 {
			p.Next = f.Plan.Next.String()
		}
		out.Pools = append(out.Pools, p)
	}
	return out
}
