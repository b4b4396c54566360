// Package adopt implements the commands that put existing clusters under the management of the hub.
package adopt

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/remote"
)

// commands has a method for each command of this package. The methods share the App.
type commands struct{ *base.App }

const adoptLong = `Put an existing cluster under the management of hotspare: it gets a ClusterDeployment, and with
it a power state, hibernateAfter and power schedules, or becomes a spare of a pool.

The commands check the kubeconfig, the cluster and its machines before they write anything. You can
repeat a command that was interrupted. Deleting the ClusterDeployment keeps the cluster:
spec.preserveOnDelete is true until you set it to false.`

// NewCommand returns the command "hotspare adopt" with its subcommands.
func NewCommand(app *base.App) *cobra.Command {
	a := commands{app}
	cmd := a.NewCommandGroup("adopt", "Put existing clusters under the management of hotspare", a.kubeconfigCommand(), a.capiCommand())
	cmd.Long = adoptLong
	return cmd
}

// commonFlags are the flags of all subcommands.
type commonFlags struct {
	baseDomain     string
	hibernateAfter time.Duration
	dryRun         bool
}

func (f *commonFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.baseDomain, "base-domain", "", "DNS domain of the cluster (default: from the URL of its API server)")
	flags.DurationVar(&f.hibernateAfter, "hibernate-after", 0, "how long the cluster runs before it hibernates, such as 8h (0: no limit)")
	flags.BoolVar(&f.dryRun, "dry-run", false, "run all checks and print the manifests, with credentials, without writing them")
}

func (f *commonFlags) validate() error {
	if f.hibernateAfter < 0 {
		return fmt.Errorf("--hibernate-after %s must not be negative", f.hibernateAfter)
	}
	return nil
}

// hibernateAfterOrNil returns the duration for spec.hibernateAfter; nil means no limit.
func (f *commonFlags) hibernateAfterOrNil() *hivev1.Duration {
	if f.hibernateAfter == 0 {
		return nil
	}
	return base.ToAPIDuration(f.hibernateAfter)
}

// candidate is a cluster that is about to be adopted: what was found out about it.
type candidate struct {
	adoption
	pool   *hivev1.ClusterPool
	access clusterAccess
	id     remote.Identity
	// machines is nil if they were not looked for.
	machines []string
	notes    []string
	// known is set if the ClusterDeployment exists already.
	known bool
}

func (c *candidate) addNote(format string, args ...any) {
	c.notes = append(c.notes, fmt.Sprintf(format, args...))
}

// expiryNotice is how long before the credentials expire the command says so.
const expiryNotice = 30 * 24 * time.Hour

// noteAccess adds notes about the kubeconfig.
func (c *candidate) noteAccess(now time.Time) {
	if at := c.access.Expires; !at.IsZero() && at.Before(now.Add(expiryNotice)) {
		c.addNote("the credentials of the kubeconfig expire at %s; replace the Secret before that", at.UTC().Format(time.RFC3339))
	}
	if c.access.Insecure {
		c.addNote("the kubeconfig disables the verification of the cluster's certificate, so others can impersonate the cluster")
	}
	if !c.id.IsAdmin {
		c.addNote("the kubeconfig's user is not an administrator of the cluster; hotspare cannot approve certificates of nodes after a long hibernation")
	}
}

// explainMissingNamespace adds the remedy to the error of a write in a namespace that does not exist.
func (a commands) explainMissingNamespace(err error, namespace string) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsNotFound(err) || status.Status().Details == nil || status.Status().Details.Kind != "namespaces" {
		return err
	}
	return base.WithRemedy(fmt.Errorf("namespace %s does not exist", namespace), "create it with: "+a.FormatCommandIn("", "kubectl create namespace %s", namespace))
}

// formatCommandFor formats a command about a cluster, with its namespace only if that is not the one of
// the current command. The only verb of command is the name of the cluster.
func (a commands) formatCommandFor(h *base.Hub, cd *hivev1.ClusterDeployment, command string) string {
	if cd.Namespace == h.Namespace {
		return a.FormatCommand(command, cd.Name)
	}
	return a.FormatCommandIn(cd.Namespace, command, cd.Name)
}

func describeKey(o client.Object) string { return client.ObjectKeyFromObject(o).String() }
