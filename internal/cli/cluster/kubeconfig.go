package cluster

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/embedded/pki"
	"hotspare.io/hotspare/internal/explain/clusterstate"
)

func (a commands) kubeconfigCommand() *cobra.Command {
	var claimOnly bool
	var file string
	cmd := &cobra.Command{
		Use:   "kubeconfig NAME [-o FILE]",
		Short: "Print a cluster's kubeconfig, or write it to a file",
		Long: `Print the administrator kubeconfig of a cluster, or write it to a file that only
you can read. NAME is the name of a claim in the namespace or, failing that, of a
cluster.`,
		Example: `  hotspare cluster kubeconfig dev-x7k2p -o dev.kubeconfig
  KUBECONFIG=dev.kubeconfig kubectl get nodes`,
		Args:              base.RequireOneName("cluster or claim"),
		ValidArgsFunction: a.CompleteClusters,
		RunE: a.WithHub(func(ctx context.Context, h *base.Hub, args []string) error {
			find := a.FindCluster
			if claimOnly {
				find = a.FindClaimedCluster
			}
			cd, err := find(ctx, h, args[0])
			if err != nil {
				return err
			}
			raw, err := h.ReadKubeconfig(ctx, cd)
			if err != nil {
				return err
			}
			return a.writeKubeconfig(cd, raw, file)
		}),
	}
	cmd.Flags().BoolVar(&claimOnly, "claim", false, "NAME is a claim, never a cluster")
	cmd.Flags().StringVarP(&file, "output", "o", "", "file to write, with mode 0600")
	return cmd
}

// writeKubeconfig prints the kubeconfig or writes the file, and warns if the cluster is not
// running.
func (a commands) writeKubeconfig(cd *hivev1.ClusterDeployment, raw []byte, file string) error {
	if state := clusterstate.OfCluster(cd); state != clusterstate.Running {
		fmt.Fprintf(a.Stderr, "note: cluster %s is not running: its state is %s\n", cd.Name, state)
	}
	if file == "" {
		_, err := a.Stdout.Write(raw)
		return err
	}
	if err := pki.WriteFile(file, raw); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.Stdout, "%s written\n\nUse it:\n  export KUBECONFIG=%s\n", file, file)
	return err
}
