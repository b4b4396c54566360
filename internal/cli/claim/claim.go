// Package claim implements the commands for claims.
package claim

import (
	"context"
	"io"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
)

// commands has a method for each command of this package. The methods share the App.
type commands struct{ *base.App }

// NewCommand returns the command "hotspare claim" with its subcommands.
func NewCommand(app *base.App) *cobra.Command {
	a := commands{app}
	cmd := a.NewCommandGroup("claim", "Claims of pool clusters",
		a.listCommand(), a.createCommand(), a.extendCommand(), a.releaseCommand(), a.runCommand())
	cmd.Aliases = []string{"claims"}
	return cmd
}

func (a commands) listCommand() *cobra.Command {
	var everywhere bool
	cmd := &cobra.Command{
		Use:               "list",
		Aliases:           []string{"ls"},
		Short:             "List claims and their clusters",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: a.WithHub(func(ctx context.Context, h *base.Hub, _ []string) error {
			var list hivev1.ClusterClaimList
			if err := h.List(ctx, &list, client.InNamespace(base.ListNamespace(h, everywhere))); err != nil {
				return err
			}
			return a.PrintObject(&list, func(w io.Writer) error {
				if len(list.Items) == 0 {
					return a.ReportEmptyList("claims", h, everywhere, "claim create POOL --wait")
				}
				return a.BuildClaimTable(list.Items, everywhere).WriteTo(w, a.PaletteFor(w))
			})
		}),
	}
	base.AddAllNamespacesFlag(cmd, &everywhere)
	return cmd
}
