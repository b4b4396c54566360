package pool

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/explain/clusterstate"
	"hotspare.io/hotspare/internal/explain/humanize"
	"hotspare.io/hotspare/internal/pool"
)

func (a commands) describeCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "describe POOL",
		Short:             "Show the details of a pool",
		Args:              base.RequireOneName("pool"),
		ValidArgsFunction: a.CompletePools,
		RunE: a.WithHub(func(ctx context.Context, h *base.Hub, args []string) error {
			p, err := a.GetPool(ctx, h, args[0])
			if err != nil {
				return err
			}
			s, err := h.ReadSnapshot(ctx, h.Namespace)
			if err != nil {
				return err
			}
			return a.PrintObject(p, func(w io.Writer) error { return a.writePoolDescription(w, p, s.SelectPool(p)) })
		}),
	}
}

// writePoolDescription writes the pool's facts, then its conditions, inventory, clusters and claims.
func (a commands) writePoolDescription(w io.Writer, p *hivev1.ClusterPool, s *base.HubSnapshot) error {
	facts := base.NewTable()
	facts.AddRow("Pool", p.Namespace+"/"+p.Name)
	facts.AddRow("Age", a.FormatAge(p.CreationTimestamp.Time))
	facts.AddRow("Platform", describePlatform(p.Spec))
	facts.AddRow("Image set", base.ValueOrNone(p.Spec.ImageSetRef.Name))
	facts.AddRow("Base domain", base.ValueOrNone(p.Spec.BaseDomain))
	facts.AddRow("Keeps", DescribeSize(p.Spec))
	facts.AddRow("Limits", DescribeLimits(p.Spec))
	facts.AddRow("Claims live", describeLifetime(p.Spec.ClaimLifetime))
	facts.AddRow("Has", describeTally(s.CountMembers(p, a.Clock.Now())))
	facts.AddRow("Plan", base.ValueOrNone(p.Status.Plan))
	return a.WriteSections(w, facts,
		a.BuildConditionTable(p.Status.Conditions), a.buildPoolInventoryTable(p), a.buildMemberTable(p, s), a.BuildClaimTable(s.Claims.Items, false))
}

func describePlatform(spec hivev1.ClusterPoolSpec) string {
	words := base.ValueOrNone(spec.Platform.Name())
	if l := spec.Platform.Local; l != nil && l.Workers != nil {
		words += ", " + humanize.FormatCount(int(*l.Workers), "worker")
	}
	if e := spec.Platform.Exec; e != nil {
		words += ", recipe " + e.Recipe
	}
	if hivev1.IsTrue(spec.Annotations, hivev1.AnnotationFake) {
		words += ", fake"
	}
	return words
}

// DescribeLimits returns the limits of a pool in words.
func DescribeLimits(spec hivev1.ClusterPoolSpec) string {
	var parts []string
	if spec.MaxSize != nil {
		parts = append(parts, fmt.Sprintf("at most %s", humanize.FormatCount(int(*spec.MaxSize), "cluster")))
	}
	if spec.MaxConcurrent != nil {
		parts = append(parts, fmt.Sprintf("%d installed or destroyed at a time", *spec.MaxConcurrent))
	}
	return base.ValueOrNone(strings.Join(parts, ", "))
}

func describeLifetime(l *hivev1.ClusterPoolClaimLifetime) string {
	if l == nil || l.Default == nil && l.Maximum == nil {
		return "until released"
	}
	var parts []string
	if l.Default != nil {
		parts = append(parts, base.FormatDuration(l.Default))
	}
	if l.Maximum != nil {
		parts = append(parts, "at most "+base.FormatDuration(l.Maximum))
	}
	return strings.Join(parts, ", ")
}

// describeTally returns the counts in words, such as "2 assignable, 1 claim waiting".
func describeTally(t clusterstate.Tally) string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{
		{t.Assignable, string(pool.Assignable)},
		{t.Standby, string(pool.Standby)},
		{t.Installing, string(pool.Installing)},
		{t.Broken, string(pool.Broken)},
		{t.Unreadable, string(pool.Unreadable)},
		{t.Claimed, string(pool.Claimed)},
		{t.Marked, string(pool.Removed)},
		{t.Deleting, string(pool.Deleting)},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	if t.Waiting > 0 {
		parts = append(parts, humanize.FormatCount(t.Waiting, "claim")+" waiting")
	}
	if len(parts) == 0 {
		return "no clusters"
	}
	return strings.Join(parts, ", ")
}

// buildMemberTable lists the clusters of one pool.
func (a commands) buildMemberTable(p *hivev1.ClusterPool, s *base.HubSnapshot) *base.Table {
	t := base.NewTable("CLUSTER", "PHASE", "STATE", "AGE", "CLAIM")
	phases := clusterstate.ComputePhases([]hivev1.ClusterPool{*p}, s.Clusters.Items, s.Claims.Items, a.Clock.Now())
	for i := range s.Clusters.Items {
		cd := &s.Clusters.Items[i]
		t.AddRow(cd.Name, string(phases[client.ObjectKeyFromObject(cd)]), clusterstate.DescribeCluster(cd), a.FormatAge(cd.CreationTimestamp.Time),
			base.ValueOrNone(clusterstate.PoolReference(cd).ClaimName))
	}
	return t
}
