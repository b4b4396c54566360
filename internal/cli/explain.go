package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/cli/pool"
	"hotspare.io/hotspare/internal/explain/poolplan"
	"hotspare.io/hotspare/internal/explain/remedy"
)

const explainLong = `Explain the state of a pool, a claim or a cluster: the next steps with their reasons,
what each object waits for and until when, which clusters are broken and how they are
replaced, and what you can do.

The explanation is computed now from the objects on the hub, with the code of the
controllers. For the regions of a fleet, use "hotspare fleet explain".`

func (a commands) explainCommand() *cobra.Command {
	cmd := a.NewCommandGroup("explain", "Explain the state of pools, claims and clusters, and what you can do",
		a.explainPoolCommand(), a.explainClaimCommand(), a.explainSetCommand(), a.explainClusterCommand())
	cmd.Long = explainLong
	return cmd
}

const explainPoolLong = `Explain the state of a pool: the next steps with their reasons, the phase and the next
step of each cluster, what each claim waits for and until when, the conditions that
report a problem, and what you can do.

The explanation is computed now from the objects on the hub, with the code of the pool's
controller. Facts that only the controller can read, such as Secrets and the capacity of
a platform, come from the pool's conditions. With -o json or -o yaml, the output is for
programs; docs/cli.md describes its fields.`

func (a commands) explainPoolCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "pool POOL",
		Short:             "Explain the state of a pool, and what you can do",
		Long:              explainPoolLong,
		Example:           "  hotspare explain pool dev\n  hotspare explain pool dev -o json",
		Args:              base.RequireOneName("pool"),
		ValidArgsFunction: a.CompletePools,
		RunE: a.WithHub(func(ctx context.Context, h *base.Hub, args []string) error {
			p, err := a.GetPool(ctx, h, args[0])
			if err != nil {
				return err
			}
			f, err := previewPool(ctx, h, p, a.Clock.Now())
			if err != nil {
				return err
			}
			return a.printPoolExplanation(f)
		}),
	}
}

func (a commands) printPoolExplanation(f poolplan.Evaluation) error {
	v := f.BuildView(a.Clock.Now(), a.FormatCommandIn)
	switch a.Flags.Output {
	case base.AsJSON, base.AsYAML:
		return a.PrintEncoded(v)
	case base.AsName:
		return a.PrintNames(f.Pool)
	}
	about := base.NewTable()
	about.AddRow("Pool", f.Pool.Namespace+"/"+f.Pool.Name)
	about.AddRow("Keeps", pool.DescribeSize(f.Pool.Spec))
	about.AddRow("Limits", pool.DescribeLimits(f.Pool.Spec))
	if f.Pool.Unreadable == "" {
		about.AddRow("Has", v.Counts.InWords())
	}
	if v.Policy != "" {
		about.AddRow("Policy", v.Policy)
	}
	about.AddRow("Plan", v.Plan)
	if f.Plan.Next > 0 {
		about.AddRow("Next check", "in "+duration.HumanDuration(f.Plan.Next))
	}
	return a.writeExplanation(a.Stdout, v.ToDo, about, pool.BuildStepTable(f),
		a.buildClusterReasonTable(v.Clusters), a.buildClaimReasonTable(v.Claims, v.Now), pool.BuildConditionTable(f))
}

// writeExplanation writes tables that fit into the terminal, and the actions for the user.
func (a commands) writeExplanation(w io.Writer, duties []poolplan.Action, tables ...*base.Table) error {
	var list remedy.TaskList
	for _, d := range duties {
		list.AddRemedy(d.Of, &d.Remedy)
	}
	for _, t := range tables {
		t.WrapLastColumn(a.Width(w), "AGE", "STATE", "PHASE")
	}
	return a.WriteSections(w, append(tables, base.BuildTaskTable(list.Act, list.Wait))...)
}

// buildClusterReasonTable lists the phase and the next step of each cluster.
func (a commands) buildClusterReasonTable(clusters []poolplan.Cluster) *base.Table {
	t := base.NewTable("CLUSTER", "PHASE", "AGE", "WHY")
	for _, c := range clusters {
		t.AddRow(c.Name, string(c.Phase), a.FormatAge(c.Created), c.Message)
	}
	return t
}

// buildClaimReasonTable lists what each claim waits for.
func (a commands) buildClaimReasonTable(claims []poolplan.Claim, now time.Time) *base.Table {
	t := base.NewTable("CLAIM", "STATE", "AGE", "PLACE", "EXPECTED", "WHY")
	for _, c := range claims {
		t.AddRow(c.Name, c.State, a.FormatAge(c.Created), formatPosition(c), formatExpectedTime(c, now), c.Message)
	}
	return t
}

func formatPosition(v poolplan.Claim) string {
	if v.Position == 0 {
		return base.None
	}
	return base.FormatNumber(v.Position)
}

func formatClaimPriority(v poolplan.Claim) string {
	if v.Priority == 0 {
		return base.None
	}
	return base.FormatNumber(v.Priority)
}

func formatExpectedTime(v poolplan.Claim, now time.Time) string {
	switch {
	case v.Ready == nil:
		return base.None
	case v.Ready.After(now):
		return "in " + duration.HumanDuration(v.Ready.Sub(now))
	case now.Sub(*v.Ready) < time.Second:
		return "now"
	default:
		return "overdue by " + duration.HumanDuration(now.Sub(*v.Ready))
	}
}

// findPool reads a pool; nil if it does not exist.
func findPool(ctx context.Context, h *base.Hub, namespace, name string) (*hivev1.ClusterPool, error) {
	var list hivev1.ClusterPoolList
	if err := h.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing pools: %w", err)
	}
	for i := range list.Items {
		if list.Items[i].Name == name {
			return &list.Items[i], nil
		}
	}
	return nil, nil //nolint:nilnil // documented above
}
