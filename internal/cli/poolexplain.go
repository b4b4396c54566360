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
	"hotspare.io/hotspare/internal/explain/poolforecast"
	"hotspare.io/hotspare/internal/explain/remedy"
)

const explainLong = `Tell in words why a pool, a claim or a cluster is as it is: what is done next and
why, what waits for what and until when, what is broken and what becomes of it, and
what a person can do.

It is decided now, from what the hub has, with the code of the hub's controllers. Of
regions of a fleet, "hotspare fleet explain" tells.`

func (a *app) explainCommand() *cobra.Command {
	cmd := a.newCommandGroup("explain", "Tell why things are as they are, and what to do",
		a.explainPoolCommand(), a.explainClaimCommand(), a.explainClusterCommand())
	cmd.Long = explainLong
	return cmd
}

const explainPoolLong = `Tell in words why a pool does what it does: the next steps with their reasons, what
each cluster is to the pool and what becomes of it, what each claim waits for and until
when, which conditions are not as they should be, and what a person can do.

It is decided now, from what the hub has, with the code of the pool's controller. What
only the controller can see, such as Secrets and the room of a platform, is taken from
the pool's conditions. With -o json or -o yaml the output is for programs; docs/cli.md
describes its fields.`

func (a *app) explainPoolCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "pool POOL",
		Short:             "Tell why a pool does what it does, and what to do",
		Long:              explainPoolLong,
		Example:           "  hotspare explain pool dev\n  hotspare explain pool dev -o json",
		Args:              requireOneName("pool"),
		ValidArgsFunction: a.completePools,
		RunE: a.withHub(func(ctx context.Context, h *hub, args []string) error {
			p, err := a.getPool(ctx, h, args[0])
			if err != nil {
				return err
			}
			f, err := h.previewPool(ctx, p, a.Clock.Now())
			if err != nil {
				return err
			}
			return a.printPoolExplanation(f)
		}),
	}
}

func (a *app) printPoolExplanation(f poolforecast.Preview) error {
	v := f.BuildView(a.Clock.Now(), a.formatCommandIn)
	switch a.flags.output {
	case asJSON, asYAML:
		return a.printEncoded(v)
	case asName:
		return a.printNames(f.Pool)
	}
	about := newTable()
	about.addRow("Pool", f.Pool.Namespace+"/"+f.Pool.Name)
	about.addRow("Keeps", describeSize(f.Pool.Spec))
	about.addRow("Limits", describeLimits(f.Pool.Spec))
	if f.Pool.Unreadable == "" {
		about.addRow("Has", v.Counts.InWords())
	}
	about.addRow("Plan", v.Plan)
	if f.Plan.Next > 0 {
		about.addRow("Looks again", "in "+duration.HumanDuration(f.Plan.Next))
	}
	return a.writeExplanation(a.Stdout, v.ToDo, about, buildPoolStepTable(f),
		a.buildClusterReasonTable(v.Clusters), a.buildClaimReasonTable(v.Claims, v.Now), buildPoolConditionTable(f))
}

// writeExplanation writes tables as narrow as the terminal, and what there is to do.
func (a *app) writeExplanation(w io.Writer, duties []poolforecast.Action, tables ...*table) error {
	var list remedy.TaskList
	for _, d := range duties {
		list.AddRemedy(d.Of, &d.Remedy)
	}
	for _, t := range tables {
		t.wrapLastColumn(a.Width(w), "AGE", "STATE", "PHASE")
	}
	return a.writeSections(w, append(tables, buildTaskTable(list.Act, list.Wait))...)
}

// buildClusterReasonTable says what becomes of each cluster.
func (a *app) buildClusterReasonTable(clusters []poolforecast.Cluster) *table {
	t := newTable("CLUSTER", "PHASE", "AGE", "WHY")
	for _, c := range clusters {
		t.addRow(c.Name, string(c.Phase), a.formatAge(c.Created), c.Message)
	}
	return t
}

// buildClaimReasonTable says what each claim waits for.
func (a *app) buildClaimReasonTable(claims []poolforecast.Claim, now time.Time) *table {
	t := newTable("CLAIM", "STATE", "AGE", "PLACE", "EXPECTED", "WHY")
	for _, c := range claims {
		t.addRow(c.Name, c.State, a.formatAge(c.Created), formatPosition(c), formatExpectedTime(c, now), c.Message)
	}
	return t
}

func formatPosition(v poolforecast.Claim) string {
	if v.Position == 0 {
		return none
	}
	return formatNumber(v.Position)
}

func formatExpectedTime(v poolforecast.Claim, now time.Time) string {
	switch {
	case v.Ready == nil:
		return none
	case v.Ready.After(now):
		return "in " + duration.HumanDuration(v.Ready.Sub(now))
	case now.Sub(*v.Ready) < time.Second:
		return "now"
	default:
		return "overdue for " + duration.HumanDuration(now.Sub(*v.Ready))
	}
}

// findPool reads a pool; nil when there is none of that name.
func (h *hub) findPool(ctx context.Context, namespace, name string) (*hivev1.ClusterPool, error) {
	var list hivev1.ClusterPoolList
	if err := h.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing pools: %w", err)
	}
	for i := range list.Items {
		if list.Items[i].Name == name {
			return &list.Items[i], nil
		}
	}
	return nil, nil //nolint:nilnil // it says so
}
