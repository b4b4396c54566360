package adopt

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/clusterapi"
)

// capiOptions are the flags of adopt capi.
type capiOptions struct {
	commonFlags
	provider platformFlags
}

const capiLong = `Adopt a Cluster of Cluster API that exists on the hub. Its ClusterDeployment has the same name and
namespace, and uses the kubeconfig that Cluster API stores and renews in Secret NAME-kubeconfig.

hotspare does not create, change or delete the Cluster, except to pause it while it hibernates.
--provider selects the cloud whose credentials hotspare uses to stop and start the machines;
Metal3, Kamaji and k0smotron need none.`

const capiExample = `  hotspare adopt capi prod -n prod --provider aws --region us-east-1 --credentials-secret aws-power
  hotspare adopt capi prod -n prod --hibernate-after 12h --dry-run > clusterdeployment.yaml`

func (a commands) capiCommand() *cobra.Command {
	o := &capiOptions{}
	cmd := &cobra.Command{
		Use:               "capi NAME",
		Short:             "Adopt a Cluster of Cluster API",
		Long:              capiLong,
		Example:           capiExample,
		Args:              base.RequireOneName("Cluster"),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	o.add(cmd)
	f := cmd.Flags()
	f.StringVar(&o.provider.platform, "provider", "", "cloud of the machines: "+strings.Join(providerNames, ", ")+" (default: none)")
	f.StringVar(&o.provider.region, "region", "", "region of the machines (aws, azure, gcp)")
	f.StringVar(&o.provider.cloud, "cloud", "", "name of the cloud in clouds.yaml (openstack)")
	f.StringVar(&o.provider.vcenter, "vcenter", "", "address of the vCenter (vsphere)")
	f.StringVar(&o.provider.credentials, "credentials-secret", "", "Secret with the credentials of the provider, in the namespace of the Cluster")
	f.StringVar(&o.provider.certificates, "certificates-secret", "", "Secret with the CA certificates of the provider (openstack, vsphere)")
	base.MustSucceed(cmd.RegisterFlagCompletionFunc("provider", cobra.FixedCompletions(providerNames, cobra.ShellCompDirectiveNoFileComp)))
	for _, name := range []string{"region", "cloud", "vcenter", "credentials-secret", "certificates-secret", "base-domain"} {
		base.MustSucceed(cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions))
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.validate(base.StripKindPrefix(args[0])); err != nil {
			return base.UsageErrorFor(err, cmd)
		}
		return a.WithHub(func(ctx context.Context, h *base.Hub, args []string) error {
			c, err := a.examineCluster(ctx, h, args[0], o)
			if err != nil {
				return err
			}
			return a.finish(ctx, h, c, o.dryRun)
		})(cmd, args)
	}
	return cmd
}

func (o *capiOptions) validate(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if err := o.validateProvider(); err != nil {
		return err
	}
	return o.commonFlags.validate()
}

// validateProvider returns an error that names a wrong or missing flag of the provider.
func (o *capiOptions) validateProvider() error {
	switch {
	case slices.Contains(providerNames, o.provider.platform):
		return o.provider.validate("provider", providerNames)
	case o.provider.platform != "":
		return fmt.Errorf("--provider %q is not supported: use one of %s; for Metal3, Kamaji and k0smotron, remove the flag",
			o.provider.platform, strings.Join(providerNames, ", "))
	}
	values := o.provider.values()
	for _, name := range settingFlags {
		if values[name] != "" {
			return fmt.Errorf("--%s belongs to a provider: add --provider with one of %s", name, strings.Join(providerNames, ", "))
		}
	}
	return nil
}

// examineCluster runs all checks and returns what is to be written. It writes nothing.
func (a commands) examineCluster(ctx context.Context, h *base.Hub, name string, o *capiOptions) (*candidate, error) {
	if err := a.checkCluster(ctx, h, name); err != nil {
		return nil, err
	}
	c := &candidate{}
	var err error
	if c.access, err = a.readClusterAccess(ctx, h, name); err != nil {
		return nil, err
	}
	if c.id, err = a.ReadIdentity(ctx, c.access.Kubeconfig); err != nil {
		return nil, base.WithRemedy(fmt.Errorf("the cluster at %s cannot be adopted: %w", c.access.Server, err), "wait until the Cluster is available")
	}
	platform := hivev1.Platform{CAPI: &hivev1.CAPIPlatform{}}
	if o.provider.platform != "" {
		if platform.CAPI.Providers, err = o.provider.buildProviders(); err != nil {
			return nil, err
		}
	}
	c.Cluster = newCluster(clusterFacts{
		name: name, namespace: h.Namespace, clusterName: name, baseDomain: cmp.Or(o.baseDomain, domainOf(c.access.Server, name)),
		clusterID: c.id.ID, infraID: name, kubeconfigSecret: clusterapi.KubeconfigSecret(name),
		platform: platform, hibernateAfter: o.hibernateAfterOrNil(),
	})
	if c.access.Insecure {
		c.addNote("the kubeconfig disables the verification of the cluster's certificate, so others can impersonate the cluster")
	}
	if err := a.confirmUnmanaged(ctx, h, c); err != nil {
		return nil, err
	}
	err = a.findMachines(ctx, h, c)
	if err != nil && o.provider.platform == "" {
		c.addNote("the cluster cannot hibernate: %v", err)
		err = nil
	}
	return c, err
}

// checkCluster confirms that the Cluster exists and that hotspare did not create it.
func (a commands) checkCluster(ctx context.Context, h *base.Hub, name string) error {
	cluster := &unstructured.Unstructured{}
	cluster.SetGroupVersionKind(base.ClusterAPICluster)
	err := h.Get(ctx, h.ObjectKey(name), cluster)
	switch {
	case clusterapi.IsKindMissing(err), meta.IsNoMatchError(err):
		return clusterapi.NotInstalledError(clusterapi.Clusters)
	case apierrors.IsNotFound(err):
		return base.WithRemedy(fmt.Errorf("there is no Cluster %q in namespace %s", name, h.Namespace), "see: "+a.FormatCommand("kubectl get clusters -A"))
	case err != nil:
		return fmt.Errorf("reading Cluster %s: %w", name, err)
	case cluster.GetDeletionTimestamp() != nil:
		return fmt.Errorf("the Cluster %s is being deleted: adopt another one", name)
	case cluster.GetAnnotations()[clusterapi.AnnotationOwner] != "":
		return base.WithRemedy(fmt.Errorf("hotspare created Cluster %s, and manages it already", name), "see: "+a.FormatCommand("cluster list -A"))
	}
	return nil
}

// readClusterAccess reads the kubeconfig that Cluster API stores.
func (a commands) readClusterAccess(ctx context.Context, h *base.Hub, cluster string) (clusterAccess, error) {
	var s corev1.Secret
	name := clusterapi.KubeconfigSecret(cluster)
	err := h.Get(ctx, h.ObjectKey(name), &s)
	switch {
	case apierrors.IsNotFound(err):
		return clusterAccess{}, fmt.Errorf("the Secret %s does not exist: wait until Cluster API has created the control plane of Cluster %s", name, cluster)
	case err != nil:
		return clusterAccess{}, fmt.Errorf("reading Secret %s: %w", name, err)
	}
	return parseAccess(hivev1.KubeconfigOf(s.Data), "Secret "+name, a.Clock.Now())
}
