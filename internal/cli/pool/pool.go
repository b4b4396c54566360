// Package pool implements the commands for pools.
package pool

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/explain/clusterstate"
	"hotspare.io/hotspare/internal/explain/humanize"
)

// commands has a method for each command of this package. The methods share the App.
type commands struct{ *base.App }

// NewCommand returns the command "hotspare pool" with its subcommands.
func NewCommand(app *base.App) *cobra.Command {
	a := commands{app}
	cmd := a.NewCommandGroup("pool", "Pools of spare clusters",
		a.listCommand(), a.createCommand(), a.describeCommand(), a.scaleCommand(), a.deleteCommand(),
		a.watchCommand(), a.planCommand(), a.estimateCommand(), a.reportCommand(), a.importClaimsCommand())
	cmd.Aliases = []string{"pools"}
	return cmd
}

func (a commands) listCommand() *cobra.Command {
	var everywhere bool
	cmd := &cobra.Command{
		Use:               "list",
		Aliases:           []string{"ls"},
		Short:             "List pools and the number of their clusters by phase",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: a.WithHub(func(ctx context.Context, h *base.Hub, _ []string) error {
			s, err := h.ReadSnapshot(ctx, base.ListNamespace(h, everywhere))
			if err != nil {
				return err
			}
			return a.PrintObject(&s.Pools, func(w io.Writer) error {
				if len(s.Pools.Items) == 0 {
					return a.ReportEmptyList("pools", h, everywhere, "pool create dev --size 2")
				}
				return a.BuildPoolTable(s, everywhere).WriteTo(w, a.PaletteFor(w))
			})
		}),
	}
	base.AddAllNamespacesFlag(cmd, &everywhere)
	return cmd
}

func (a commands) scaleCommand() *cobra.Command {
	var size, running int32
	cmd := &cobra.Command{
		Use:               "scale POOL --size N [--running N]",
		Short:             "Change how many clusters a pool keeps",
		Args:              base.RequireOneName("pool"),
		ValidArgsFunction: a.CompletePools,
	}
	cmd.Long = "Change how many clusters a pool keeps. If you set a size below the number of running\nclusters, that number is lowered too, unless you set --running."
	cmd.Flags().Int32Var(&size, "size", 0, "number of unclaimed clusters to keep")
	cmd.Flags().Int32Var(&running, "running", 0, "number of unclaimed clusters to keep running; the others hibernate")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		resize, rerun := cmd.Flags().Changed("size"), cmd.Flags().Changed("running")
		if !resize && !rerun {
			return base.UsageErrorFor(errors.New("specify --size, --running or both"), cmd)
		}
		if size < 0 || running < 0 {
			return base.UsageErrorFor(errors.New("--size and --running must not be negative"), cmd)
		}
		return a.WithHub(func(ctx context.Context, h *base.Hub, args []string) error {
			return a.scalePool(ctx, h, args[0], func(spec *hivev1.ClusterPoolSpec) {
				if resize {
					spec.Size = size
				}
				switch {
				case rerun:
					spec.RunningCount = running
				case spec.RunningCount > size:
					fmt.Fprintf(a.Stderr, "note: the number of running clusters is lowered from %d to the new size, %d\n", spec.RunningCount, size)
					spec.RunningCount = size
				}
			})
		})(cmd, args)
	}
	return cmd
}

func (a commands) scalePool(ctx context.Context, h *base.Hub, name string, change func(*hivev1.ClusterPoolSpec)) error {
	p, err := a.GetPool(ctx, h, name)
	if err != nil {
		return err
	}
	before := p.DeepCopy()
	change(&p.Spec)
	if err := h.Patch(ctx, p, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("scaling pool %s: %w", name, err)
	}
	return a.PrintObject(p, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "pool %s keeps %s\n", name, DescribeSize(p.Spec))
		return err
	})
}

// DescribeSize returns the size of a pool in words, such as "3 clusters, 1 of them running".
func DescribeSize(spec hivev1.ClusterPoolSpec) string {
	return fmt.Sprintf("%s, %d of them running", humanize.FormatCount(int(spec.Size), "cluster"), min(spec.RunningCount, spec.Size))
}

func (a commands) deleteCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "delete POOL",
		Short:             "Delete a pool and its unclaimed clusters",
		Args:              base.RequireOneName("pool"),
		ValidArgsFunction: a.CompletePools,
		RunE:              a.WithHub(a.runPoolDelete),
	}
}

func (a commands) runPoolDelete(ctx context.Context, h *base.Hub, args []string) error {
	p, err := a.GetPool(ctx, h, args[0])
	if err != nil {
		return err
	}
	s, err := h.ReadSnapshot(ctx, h.Namespace)
	if err != nil {
		return err
	}
	if err := h.Delete(ctx, p); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting pool %s: %w", p.Name, err)
	}
	return a.PrintObject(p, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, describePoolDeletion(p.Name, s.SelectPool(p).CountMembers(p, a.Clock.Now())))
		return err
	})
}

// describePoolDeletion explains what happens to the clusters of a deleted pool.
func describePoolDeletion(name string, n clusterstate.Tally) string {
	spare := n.Assignable + n.Standby + n.Installing + n.Broken + n.Unreadable
	words := fmt.Sprintf("pool %s is being deleted with %s", name, humanize.FormatCount(spare, "unclaimed cluster"))
	if n.Claimed > 0 {
		words += fmt.Sprintf("; the deletion completes when its %s released", humanize.FormatPlural(n.Claimed, "claim is", "claims are"))
	}
	return words
}
