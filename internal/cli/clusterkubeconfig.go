package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/embedded/pki"
	"hotspare.io/hotspare/internal/explain/clusterstate"
)

func (a *app) clusterKubeconfigCommand() *cobra.Command {
	var claimOnly bool
	var file string
	cmd := &cobra.Command{
		Use:   "kubeconfig NAME [-o FILE]",
		Short: "Print a cluster's kubeconfig, or write it to a file",
		Long: `Print the administrator's kubeconfig of a cluster, or write it to a file that
only you can read. NAME is a claim of the namespace or, failing that, a cluster.`,
		Example: `  hotspare cluster kubeconfig dev-x7k2p -o dev.kubeconfig
  KUBECONFIG=dev.kubeconfig kubectl get nodes`,
		Args:              requireOneName("cluster or claim"),
		ValidArgsFunction: a.completeClusters,
		RunE: a.withHub(func(ctx context.Context, h *hub, args []string) error {
			find := a.findCluster
			if claimOnly {
				find = a.findClaimedCluster
			}
			cd, err := find(ctx, h, args[0])
			if err != nil {
				return err
			}
			raw, err := h.readKubeconfig(ctx, cd)
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

// readKubeconfig reads the administrator's kubeconfig of a cluster.
func (h *hub) readKubeconfig(ctx context.Context, cd *hivev1.ClusterDeployment) ([]byte, error) {
	if cd.Spec.ClusterMetadata == nil || !cd.Spec.Installed {
		return nil, fmt.Errorf("cluster %s has no kubeconfig yet: it is %s", cd.Name, valueOrNone(clusterstate.OfCluster(cd)))
	}
	name := cd.Spec.ClusterMetadata.AdminKubeconfigSecretRef.Name
	var s corev1.Secret
	if err := h.Get(ctx, client.ObjectKey{Namespace: cd.Namespace, Name: name}, &s); err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of cluster %s: %w", cd.Name, err)
	}
	raw := s.Data[hivev1.SecretKeyKubeconfig]
	if len(raw) == 0 {
		return nil, fmt.Errorf("the Secret %s/%s has no key %s", cd.Namespace, name, hivev1.SecretKeyKubeconfig)
	}
	return raw, nil
}

// writeKubeconfig prints the kubeconfig or writes the file, and says when it is of no use yet.
func (a *app) writeKubeconfig(cd *hivev1.ClusterDeployment, raw []byte, file string) error {
	if state := clusterstate.OfCluster(cd); state != clusterstate.Running {
		fmt.Fprintf(a.Stderr, "note: cluster %s is not running but %s\n", cd.Name, state)
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
