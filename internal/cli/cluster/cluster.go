// Package cluster implements the commands for clusters.
package cluster

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/explain/clusterstate"
	"hotspare.io/hotspare/internal/explain/humanize"
)

// commands has a method for each command of this package. The methods share the App.
type commands struct{ *base.App }

// NewCommand returns the command "hotspare cluster" with its subcommands.
func NewCommand(app *base.App) *cobra.Command {
	a := commands{app}
	cmd := a.NewCommandGroup("cluster", "Clusters of pools and claims",
		a.listCommand(), a.describeCommand(), a.kubeconfigCommand(),
		a.hibernateCommand(), a.resumeCommand(), a.logsCommand(), a.diagnoseCommand())
	cmd.Aliases = []string{"clusters"}
	return cmd
}

func (a commands) listCommand() *cobra.Command {
	var everywhere bool
	cmd := &cobra.Command{
		Use:               "list",
		Aliases:           []string{"ls"},
		Short:             "List clusters; a pool's clusters are listed in the pool's namespace",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: a.WithHub(func(ctx context.Context, h *base.Hub, _ []string) error {
			list, err := h.ListClusters(ctx, base.ListNamespace(h, everywhere))
			if err != nil {
				return err
			}
			return a.PrintObject(list, func(w io.Writer) error {
				if len(list.Items) == 0 {
					return a.ReportEmptyList("clusters", h, everywhere, "pool create dev --size 2")
				}
				return a.buildClusterTable(list.Items, everywhere).WriteTo(w, a.PaletteFor(w))
			})
		}),
	}
	base.AddAllNamespacesFlag(cmd, &everywhere)
	return cmd
}

func (a commands) buildClusterTable(clusters []hivev1.ClusterDeployment, namespaces bool) *base.Table {
	t := base.NewTable("CLUSTER", "POOL", "STATE", "CLAIM", "PLATFORM", "VERSION", "AGE")
	if namespaces {
		t.Header = append([]string{"NAMESPACE"}, t.Header...)
	}
	for i := range clusters {
		cd := &clusters[i]
		ref := clusterstate.PoolReference(cd)
		row := []string{
			cd.Name, base.ValueOrNone(ref.PoolName), clusterstate.DescribeCluster(cd), base.ValueOrNone(ref.ClaimName),
			base.ValueOrNone(cd.Spec.Platform.Name()), base.ValueOrNone(clusterVersion(cd)), a.FormatAge(cd.CreationTimestamp.Time),
		}
		if namespaces {
			row = append([]string{clusterstate.HomeNamespace(cd)}, row...)
		}
		t.AddRow(row...)
	}
	return t
}

// clusterVersion returns the version of the cluster from its label, else from its install.
func clusterVersion(cd *hivev1.ClusterDeployment) string {
	if v := cd.Labels[hivev1.LabelVersion]; v != "" {
		return v
	}
	if v := cd.Status.InstallVersion; v != nil {
		return *v
	}
	return ""
}

func (a commands) describeCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "describe NAME",
		Short:             "Show the details of a cluster, or of a claim's cluster",
		Args:              base.RequireOneName("cluster or claim"),
		ValidArgsFunction: a.CompleteClusters,
		RunE: a.WithHub(func(ctx context.Context, h *base.Hub, args []string) error {
			cd, err := a.FindCluster(ctx, h, args[0])
			if err != nil {
				return err
			}
			next, err := h.FindNextAttempt(ctx, cd)
			if err != nil {
				return err
			}
			return a.PrintObject(cd, func(w io.Writer) error {
				facts := a.buildClusterFacts(cd)
				if when := base.DescribeNextAttempt(next, a.Clock.Now()); when != "" {
					facts.AddRow("Next attempt", when)
				}
				return a.WriteSections(w, facts, a.BuildConditionTable(cd.Status.Conditions))
			})
		}),
	}
}

func (a commands) buildClusterFacts(cd *hivev1.ClusterDeployment) *base.Table {
	t := base.NewTable()
	t.AddRow("Cluster", cd.Namespace+"/"+cd.Name)
	t.AddRow("State", clusterstate.DescribeCluster(cd))
	t.AddRow("Age", a.FormatAge(cd.CreationTimestamp.Time))
	if ref := clusterstate.PoolReference(cd); ref.PoolName != "" {
		t.AddRow("Pool", ref.Namespace+"/"+ref.PoolName)
		t.AddRow("Claim", base.ValueOrNone(ref.ClaimName))
		if c := ref.CustomizationRef; c != nil { // the customization sets the name, by which the user knows the cluster
			t.AddRow("Name", cd.Spec.ClusterName+"."+cd.Spec.BaseDomain)
			t.AddRow("Customization", ref.Namespace+"/"+c.Name)
		}
	}
	t.AddRow("Platform", base.ValueOrNone(cd.Spec.Platform.Name()))
	t.AddRow("Version", base.ValueOrNone(clusterVersion(cd)))
	t.AddRow("API", base.ValueOrNone(cd.Status.APIURL))
	t.AddRow("Power", base.DescribePower(cd))
	if n := cd.Status.InstallRestarts; n > 0 {
		t.AddRow("Install", humanize.FormatPlural(n, "attempt failed", "attempts failed"))
	}
	return t
}
