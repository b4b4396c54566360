// Package inventory has the commands of customizations, which are the inventory of pools.
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
	cmd := a.NewCommandGroup("inventory", "Prepared names and addresses that pools' clusters take",
		a.listCommand(), a.describeCommand())
	cmd.Aliases = []string{"inventories"}
	cmd.Long = `A ClusterDeploymentCustomization is what was prepared for one cluster: its name,
its addresses, as patches to its install-config. A pool lists customizations in
spec.inventory, and each of its clusters takes one.`
	return cmd
}

func (a commands) listCommand() *cobra.Command {
	var everywhere bool
	cmd := &cobra.Command{
		Use:     "list [POOL]",
		Aliases: []string{"ls"},
		Short:   "List the customizations that pools have, and who uses them",
		Long: `List the customizations of a pool's inventory, or of all pools, in the order in
which spec.inventory has them. Those of the namespace that no pool lists come last,
below "-".

CLUSTER is who uses a customization, be it a cluster of this pool or of another.
ATTEMPTS is how many more installs may fail with it before the pool gives it up.
On a narrow terminal columns are left out; describe has everything.`,
		Example: `  hotspare inventory list
  hotspare inventory list vsphere
  hotspare inventory list -A -o json`,
		Args:              acceptOptionalPool,
		ValidArgsFunction: a.CompletePools,
	}
	base.AddAllNamespacesFlag(cmd, &everywhere)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if everywhere && len(args) > 0 {
			return base.UsageErrorFor(errors.New("name a pool or give -A, not both"), cmd)
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

// readInventory reads what there is of inventories; an empty namespace stands for all.
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

// adviseNoInventory says how to give a pool one, to people only.
func (a commands) adviseNoInventory(pool string, customizations []hivev1.ClusterDeploymentCustomization) error {
	text := fmt.Sprintf("Pool %s has no inventory. To give it one, list customizations in its spec.inventory:\n  %s\n",
		pool, a.FormatCommand("kubectl edit clusterpool %s", pool))
	if len(customizations) == 0 {
		text += fmt.Sprintf("There are no customizations to list yet. To make one:\n  %s\n", a.FormatCommand("kubectl apply -f customization.yaml"))
	} else {
		text += fmt.Sprintf("To see which there are:\n  %s\n", a.FormatCommand("inventory list"))
	}
	_, err := io.WriteString(a.Stderr, text)
	return err
}

// printEntries prints entries in the format asked for; text prints them for people.
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
	told := map[client.ObjectKey]bool{}
	for _, e := range entries {
		if e.Customization == nil || told[client.ObjectKeyFromObject(e.Customization)] {
			continue
		}
		told[client.ObjectKeyFromObject(e.Customization)] = true
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

// customizationAge is the age of a customization, which may not be there.
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
