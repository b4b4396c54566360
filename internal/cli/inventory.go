package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/explain/inventoryview"
)

func (a *app) inventoryCommand() *cobra.Command {
	cmd := a.newCommandGroup("inventory", "Prepared names and addresses that pools' clusters take",
		a.inventoryListCommand(), a.inventoryDescribeCommand())
	cmd.Aliases = []string{"inventories"}
	cmd.Long = `A ClusterDeploymentCustomization is what was prepared for one cluster: its name,
its addresses, as patches to its install-config. A pool lists customizations in
spec.inventory, and each of its clusters takes one.`
	return cmd
}

func (a *app) inventoryListCommand() *cobra.Command {
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
		ValidArgsFunction: a.completePools,
	}
	addAllNamespacesFlag(cmd, &everywhere)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if everywhere && len(args) > 0 {
			return usageErrorFor(errors.New("name a pool or give -A, not both"), cmd)
		}
		return a.withHub(func(ctx context.Context, h *hub, args []string) error {
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
	return requireOneName("pool")(cmd, args)
}

// readInventory reads what there is of inventories; an empty namespace stands for all.
func (h *hub) readInventory(ctx context.Context, namespace string) (*inventoryview.Objects, error) {
	var pools hivev1.ClusterPoolList
	if err := h.List(ctx, &pools, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing pools: %w", err)
	}
	var customizations hivev1.ClusterDeploymentCustomizationList
	if err := h.List(ctx, &customizations, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing customizations: %w", err)
	}
	clusters, err := h.listClusters(ctx, namespace)
	if err != nil {
		return nil, err
	}
	return &inventoryview.Objects{Pools: pools.Items, Customizations: customizations.Items, Clusters: clusters.Items}, nil
}

func (a *app) printAllInventories(ctx context.Context, h *hub, everywhere bool) error {
	s, err := h.readInventory(ctx, listNamespace(h, everywhere))
	if err != nil {
		return err
	}
	entries := s.Entries()
	return a.printEntries(entries, func(w io.Writer) error {
		if len(entries) == 0 {
			return a.reportEmptyList("customizations", h, everywhere, "kubectl apply -f customization.yaml")
		}
		return a.buildEntryTable(entries, everywhere).writeTo(w, a.paletteFor(w))
	})
}

func (a *app) printPoolInventory(ctx context.Context, h *hub, pool string) error {
	p, err := a.getPool(ctx, h, pool)
	if err != nil {
		return err
	}
	s, err := h.readInventory(ctx, h.namespace)
	if err != nil {
		return err
	}
	entries := s.PoolEntries(p)
	return a.printEntries(entries, func(w io.Writer) error {
		if len(entries) == 0 {
			return a.adviseNoInventory(p.Name, s.Customizations)
		}
		return a.buildEntryTable(entries, false).writeTo(w, a.paletteFor(w))
	})
}

// adviseNoInventory says how to give a pool one, to people only.
func (a *app) adviseNoInventory(pool string, customizations []hivev1.ClusterDeploymentCustomization) error {
	text := fmt.Sprintf("Pool %s has no inventory. To give it one, list customizations in its spec.inventory:\n  %s\n",
		pool, a.formatCommand("kubectl edit clusterpool %s", pool))
	if len(customizations) == 0 {
		text += fmt.Sprintf("There are no customizations to list yet. To make one:\n  %s\n", a.formatCommand("kubectl apply -f customization.yaml"))
	} else {
		text += fmt.Sprintf("To see which there are:\n  %s\n", a.formatCommand("inventory list"))
	}
	_, err := io.WriteString(a.Stderr, text)
	return err
}

// printEntries prints entries in the format asked for; text prints them for people.
func (a *app) printEntries(entries []inventoryview.Entry, text func(io.Writer) error) error {
	switch a.flags.output {
	case asJSON, asYAML:
		return a.printEncoded(map[string][]inventoryview.Entry{"entries": entries})
	case asName:
		return a.printEntryNames(entries)
	default:
		return text(a.Stdout)
	}
}

// printEntryNames prints the customizations that exist, each once.
func (a *app) printEntryNames(entries []inventoryview.Entry) error {
	told := map[client.ObjectKey]bool{}
	for _, e := range entries {
		if e.Customization == nil || told[client.ObjectKeyFromObject(e.Customization)] {
			continue
		}
		told[client.ObjectKeyFromObject(e.Customization)] = true
		if err := a.printNames(e.Customization); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) buildEntryTable(entries []inventoryview.Entry, namespaces bool) *table {
	t := newTable("POOL", "NAME", "STATUS", "CLUSTER", "CLAIM", "ATTEMPTS", "AGE", "MESSAGE")
	t.colours = inventoryColours
	if namespaces {
		t.header = append([]string{"NAMESPACE"}, t.header...)
	}
	for _, e := range entries {
		row := []string{
			valueOrNone(e.Pool), e.Name, valueOrNone(string(e.Status)), valueOrNone(e.Cluster), valueOrNone(e.Claim), valueOrNone(e.Tries()),
			a.customizationAge(e.Customization), e.Message,
		}
		if namespaces {
			row = append([]string{e.Namespace}, row...)
		}
		t.addRow(row...)
	}
	t.fitWidth(a.Width(a.Stdout), "AGE", "ATTEMPTS", "MESSAGE", "CLAIM", "CLUSTER")
	return t
}

// customizationAge is the age of a customization, which may not be there.
func (a *app) customizationAge(c *hivev1.ClusterDeploymentCustomization) string {
	if c == nil {
		return none
	}
	return a.formatAge(c.CreationTimestamp.Time)
}

// buildPoolInventoryTable is a pool's inventory as far as the pool itself tells.
func (a *app) buildPoolInventoryTable(p *hivev1.ClusterPool) *table {
	t := newTable("INVENTORY", "STATUS", "CLUSTER", "ATTEMPTS", "MESSAGE")
	t.colours = inventoryColours
	for _, e := range inventoryview.EntriesFromPool(p) {
		t.addRow(e.Name, valueOrNone(string(e.Status)), valueOrNone(e.Cluster), valueOrNone(e.Tries()), e.Message)
	}
	t.fitWidth(a.Width(a.Stdout), "ATTEMPTS", "MESSAGE", "CLUSTER")
	return t
}

func (a *app) completeCustomizations(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completeNames(cmd, args, listCustomizationNames)
}

func listCustomizationNames(ctx context.Context, h *hub) ([]string, error) {
	var list hivev1.ClusterDeploymentCustomizationList
	err := h.List(ctx, &list, client.InNamespace(h.namespace))
	var out []string
	for _, c := range list.Items {
		out = append(out, c.Name)
	}
	return out, err
}
