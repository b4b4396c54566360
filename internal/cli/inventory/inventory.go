// Package inventory implements the commands for customizations, which make up the inventory of
// pools.
package inventory

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/explain/inventoryview"
)

// commands has a method for each command of this package. The methods share the App.
type commands struct{ *base.App }

// NewCommand returns the command "hotspare inventory" with its subcommands.
func NewCommand(app *base.App) *cobra.Command {
	a := commands{app}
	cmd := a.NewCommandGroup("inventory", "Prepared names and addresses for the clusters of pools",
		a.listCommand(), a.describeCommand())
	cmd.Aliases = []string{"inventories"}
	cmd.Long = `A ClusterDeploymentCustomization contains the settings that are prepared for one
cluster, such as its name and addresses, as patches to its install-config. A pool lists
customizations in spec.inventory, and each of its clusters uses one.`
	return cmd
}

func (a commands) listCommand() *cobra.Command {
	var everywhere bool
	cmd := &cobra.Command{
		Use:     "list [POOL]",
		Aliases: []string{"ls"},
		Short:   "List the customizations of pools and the clusters that use them",
		Long: `List the customizations in the inventory of a pool, or of all pools, in the order of
spec.inventory. Customizations of the namespace that no pool lists come last, with "-"
as their pool.

CLUSTER is the cluster that uses a customization, of this pool or of another. ATTEMPTS
is the number of installs that can still fail before the pool stops using the
customization. A narrow terminal omits columns; "inventory describe" shows all fields.`,
		Example: `  hotspare inventory list
  hotspare inventory list vsphere
  hotspare inventory list -A -o json`,
		Args:              acceptOptionalPool,
		ValidArgsFunction: a.CompletePools,
	}
	base.AddAllNamespacesFlag(cmd, &everywhere)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if everywhere && len(args) > 0 {
			return base.UsageErrorFor(errors.New("specify a pool or -A, not both"), cmd)
		}
		return a.WithHub(func(ctx context.Context, h *base.Hub, args []string) error {
			if len(args) > 0 {
				return a.printPoolInventory(ctx, h, args[0])
			}
			return a.printAllInventories(ctx, h, everywhere)
		})(cmd, args)
	}
	return cmd
}

// acceptOptionalPool accepts the name of a pool, or no argument.
func acceptOptionalPool(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return base.RequireOneName("pool")(cmd, args)
}

// readInventory reads the pools, customizations and clusters; an empty namespace stands for all
// namespaces.
func readInventory(ctx context.Context, h *base.Hub, namespace string) (*inventoryview.Objects, error) {
	var pools hivev1.ClusterPoolList
	if err := h.List(ctx, &pools, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing pools: %w", err)
	}
	var customizations hivev1.ClusterDeploymentCustomizationList
	if err := h.List(ctx, &customizations, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing customizations: %w", err)
	}
	clusters, err := h.ListClusters(ctx, namespace)
	if err != nil {
		return nil, err
	}
	return &inventoryview.Objects{Pools: pools.Items, Customizations: customizations.Items, Clusters: clusters.Items}, nil
}

func (a commands) printAllInventories(ctx context.Context, h *base.Hub, everywhere bool) error {
	s, err := readInventory(ctx, h, base.ListNamespace(h, everywhere))
	if err != nil {
		return err
	}
	entries := s.Entries()
	return a.printEntries(entries, func(w io.Writer) error {
		if len(entries) == 0 {
			return a.ReportEmptyList("customizations", h, everywhere, "kubectl apply -f customization.yaml")
		}
		return a.buildEntryTable(entries, everywhere).WriteTo(w, a.PaletteFor(w))
	})
}

func (a commands) printPoolInventory(ctx context.Context, h *base.Hub, pool string) error {
	p, err := a.GetPool(ctx, h, pool)
	if err != nil {
		return err
	}
	s, err := readInventory(ctx, h, h.Namespace)
	if err != nil {
		return err
	}
	entries := s.PoolEntries(p)
	return a.printEntries(entries, func(w io.Writer) error {
		if len(entries) == 0 {
			return a.adviseNoInventory(p.Name, s.Customizations)
		}
		return a.buildEntryTable(entries, false).WriteTo(w, a.PaletteFor(w))
	})
}

// adviseNoInventory prints to standard error how to add an inventory to a pool.
func (a commands) adviseNoInventory(pool string, customizations []hivev1.ClusterDeploymentCustomization) error {
	text := fmt.Sprintf("Pool %s has no inventory. To add one, list customizations in its spec.inventory:\n  %s\n",
		pool, a.FormatCommand("kubectl edit clusterpool %s", pool))
	if len(customizations) == 0 {
		text += fmt.Sprintf("The namespace has no customizations yet. To create one:\n  %s\n", a.FormatCommand("kubectl apply -f customization.yaml"))
	} else {
		text += fmt.Sprintf("To list the existing customizations:\n  %s\n", a.FormatCommand("inventory list"))
	}
	_, err := io.WriteString(a.Stderr, text)
	return err
}

// printEntries prints entries in the format of --output; text prints the default format, for
// people.
func (a commands) printEntries(entries []inventoryview.Entry, text func(io.Writer) error) error {
	switch a.Flags.Output {
	case base.AsJSON, base.AsYAML:
		return a.PrintEncoded(map[string][]inventoryview.Entry{"entries": entries})
	case base.AsName:
		return a.printEntryNames(entries)
	default:
		return text(a.Stdout)
	}
}

// printEntryNames prints the customizations that exist, each once.
func (a commands) printEntryNames(entries []inventoryview.Entry) error {
	printed := map[client.ObjectKey]bool{}
	for _, e := range entries {
		if e.Customization == nil || printed[client.ObjectKeyFromObject(e.Customization)] {
			continue
		}
		printed[client.ObjectKeyFromObject(e.Customization)] = true
		if err := a.PrintNames(e.Customization); err != nil {
			return err
		}
	}
	return nil
}

func (a commands) buildEntryTable(entries []inventoryview.Entry, namespaces bool) *base.Table {
	t := base.NewTable("POOL", "NAME", "STATUS", "CLUSTER", "CLAIM", "ATTEMPTS", "AGE", "MESSAGE")
	t.Colours = base.InventoryColours
	if namespaces {
		t.Header = append([]string{"NAMESPACE"}, t.Header...)
	}
	for _, e := range entries {
		row := []string{
			base.ValueOrNone(e.Pool), e.Name, base.ValueOrNone(string(e.Status)), base.ValueOrNone(e.Cluster), base.ValueOrNone(e.Claim), base.ValueOrNone(e.Tries()),
			a.customizationAge(e.Customization), e.Message,
		}
		if namespaces {
			row = append([]string{e.Namespace}, row...)
		}
		t.AddRow(row...)
	}
	t.FitWidth(a.Width(a.Stdout), "AGE", "ATTEMPTS", "MESSAGE", "CLAIM", "CLUSTER")
	return t
}

// customizationAge returns the age of a customization, which may be nil.
func (a commands) customizationAge(c *hivev1.ClusterDeploymentCustomization) string {
	if c == nil {
		return base.None
	}
	return a.FormatAge(c.CreationTimestamp.Time)
}

func (a commands) completeCustomizations(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.CompleteNames(cmd, args, listCustomizationNames)
}

func listCustomizationNames(ctx context.Context, h *base.Hub) ([]string, error) {
	var list hivev1.ClusterDeploymentCustomizationList
	err := h.List(ctx, &list, client.InNamespace(h.Namespace))
	var out []string
	for _, c := range list.Items {
		out = append(out, c.Name)
	}
	return out, err
}
