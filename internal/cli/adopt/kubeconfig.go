package adopt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
)

// kubeconfigOptions are the flags of adopt kubeconfig.
type kubeconfigOptions struct {
	commonFlags
	platformFlags
	file, infraID, clusterName, pool string
}

const kubeconfigLong = `Adopt a cluster with the kubeconfig of its administrator. The kubeconfig must contain its
certificates and keys, or a token: the hub runs no programs and reads no files for it. Only its
current context is stored. The URL of the API server must be reachable from the hub.

--platform says where the cluster's machines are, so that it can hibernate. hotspare finds them by the
infraID, the mark that their installer set; an OpenShift cluster reports it, for others specify
--infra-id. The credentials are a Secret in the cluster's namespace, with the keys that the page
of the platform lists. On bare metal, the Secret NAME-bmc lists the hosts.

With --pool, the cluster becomes a spare of the pool, in a namespace NAME, and the Secrets are copied
from the namespace of the pool. A claim gets the stored kubeconfig. Releasing the claim deletes the
ClusterDeployment and keeps the cluster.`

const kubeconfigExample = `  hotspare adopt kubeconfig lab --admin-kubeconfig lab.kubeconfig
  hotspare adopt kubeconfig prod --admin-kubeconfig prod.kubeconfig --platform aws --region eu-west-1 \
    --infra-id prod-x7k2p --credentials-secret aws --hibernate-after 12h
  hotspare adopt kubeconfig lab --admin-kubeconfig lab.kubeconfig --pool dev`

func (a commands) kubeconfigCommand() *cobra.Command {
	o := &kubeconfigOptions{}
	cmd := &cobra.Command{
		Use:               "kubeconfig NAME --admin-kubeconfig FILE",
		Short:             "Adopt a cluster with the kubeconfig of its administrator",
		Long:              kubeconfigLong,
		Example:           kubeconfigExample,
		Args:              base.RequireOneName("cluster"),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	o.addFlags(a, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.validate(base.StripKindPrefix(args[0])); err != nil {
			return base.UsageErrorFor(err, cmd)
		}
		return a.WithHub(func(ctx context.Context, h *base.Hub, args []string) error {
			c, err := a.examineKubeconfig(ctx, h, args[0], o)
			if err != nil {
				return err
			}
			return a.finish(ctx, h, c, o.dryRun)
		})(cmd, args)
	}
	return cmd
}

func (o *kubeconfigOptions) addFlags(a commands, cmd *cobra.Command) {
	o.add(cmd)
	f := cmd.Flags()
	f.StringVar(&o.file, "admin-kubeconfig", "", "kubeconfig file of the cluster's administrator; - reads standard input (required)")
	f.StringVar(&o.platform, "platform", "none", "platform of the cluster's machines: "+strings.Join(platformNames, ", "))
	f.StringVar(&o.infraID, "infra-id", "", "mark of the cluster's machines (default: what an OpenShift cluster reports)")
	f.StringVar(&o.region, "region", "", "region of the machines (aws, azure, gcp)")
	f.StringVar(&o.cloud, "cloud", "", "name of the cloud in clouds.yaml (openstack)")
	f.StringVar(&o.vcenter, "vcenter", "", "address of the vCenter (vsphere)")
	f.StringVar(&o.resourceGroup, "resource-group", "", "resource group of the machines (azure; default: the infraID with -rg)")
	f.StringVar(&o.credentials, "credentials-secret", "", "Secret with the credentials of the platform")
	f.StringVar(&o.certificates, "certificates-secret", "", "Secret with the CA certificates of the platform (openstack, vsphere)")
	f.StringVar(&o.clusterName, "cluster-name", "", "name of the cluster below its base domain (default: NAME)")
	f.StringVar(&o.pool, "pool", "", "pool to which the cluster is added as a spare")
	base.MustSucceed(cmd.RegisterFlagCompletionFunc("platform", cobra.FixedCompletions(platformNames, cobra.ShellCompDirectiveNoFileComp)))
	base.MustSucceed(cmd.RegisterFlagCompletionFunc("pool", func(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		return a.CompletePools(cmd, nil, word)
	}))
	for _, name := range []string{"infra-id", "region", "cloud", "vcenter", "resource-group", "credentials-secret", "certificates-secret", "cluster-name", "base-domain"} {
		base.MustSucceed(cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions))
	}
}

func (o *kubeconfigOptions) validate(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if o.file == "" {
		return errors.New("specify the kubeconfig of the cluster's administrator: --admin-kubeconfig FILE")
	}
	if err := o.platformFlags.validate("platform", platformNames); err != nil {
		return err
	}
	return o.commonFlags.validate()
}

// examineKubeconfig runs all checks and returns what is to be written. It writes nothing.
func (a commands) examineKubeconfig(ctx context.Context, h *base.Hub, name string, o *kubeconfigOptions) (*candidate, error) {
	c := &candidate{}
	var err error
	if c.access, err = a.readAccess(o.file); err != nil {
		return nil, err
	}
	if c.id, err = a.ReadIdentity(ctx, c.access.Kubeconfig); err != nil {
		return nil, base.WithRemedy(fmt.Errorf("the cluster at %s cannot be adopted: %w", c.access.Server, err), "correct the kubeconfig or start the cluster")
	}
	infraID, err := resolveInfraID(o.infraID, c.id.InfraID, name, o.platformFlags)
	if err != nil {
		return nil, err
	}
	namespace := h.Namespace
	if o.pool != "" {
		namespace = name
		if c.pool, err = a.readPool(ctx, h, o.pool); err != nil {
			return nil, err
		}
		c.Namespace = newPoolNamespace(name, c.pool)
	}
	platform, metadata, err := o.build(infraID)
	if err != nil {
		return nil, err
	}
	clusterName := cmp.Or(o.clusterName, name)
	c.Cluster = newCluster(clusterFacts{
		name: name, namespace: namespace, pool: c.pool,
		clusterName: clusterName, baseDomain: cmp.Or(o.baseDomain, domainOf(c.access.Server, clusterName)),
		clusterID: c.id.ID, infraID: infraID, kubeconfigSecret: name + "-admin-kubeconfig",
		platform: platform, metadata: metadata, hibernateAfter: o.hibernateAfterOrNil(),
	})
	c.Secrets = []*corev1.Secret{newSecret(c.Cluster, name+"-admin-kubeconfig", "kubeconfig", map[string][]byte{hivev1.SecretKeyKubeconfig: c.access.Kubeconfig})}
	if c.pool != nil {
		if err := a.copySecrets(ctx, h, c, o.secretNames(name)); err != nil {
			return nil, err
		}
	}
	c.noteAccess(a.Clock.Now())
	if err := a.confirmUnmanaged(ctx, h, c); err != nil {
		return nil, err
	}
	if o.platform != "none" {
		err = a.findMachines(ctx, h, c)
	}
	return c, err
}

// readAccess reads the kubeconfig file, or standard input.
func (a commands) readAccess(file string) (clusterAccess, error) {
	if file == "-" {
		raw, err := io.ReadAll(a.Stdin)
		if err != nil {
			return clusterAccess{}, fmt.Errorf("reading standard input: %w", err)
		}
		return parseAccess(raw, "standard input", a.Clock.Now())
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return clusterAccess{}, fmt.Errorf("reading --admin-kubeconfig: %w", err)
	}
	return parseAccess(raw, file, a.Clock.Now())
}

// resolveInfraID returns the infraID of the flag or, without it, the one that the cluster reports.
func resolveInfraID(flag, reported, name string, platform platformFlags) (string, error) {
	switch {
	case flag != "" && reported != "" && flag != reported:
		return "", fmt.Errorf("--infra-id %q is not the cluster's: the cluster reports infraID %s: remove the flag", flag, reported)
	case flag != "" || reported != "":
		return cmp.Or(flag, reported), nil
	case platform.selectsByInfraID():
		return "", fmt.Errorf("the cluster does not report its infraID: specify with --infra-id how its machines on %s are marked", platform.platform)
	default:
		return name, nil
	}
}

func (a commands) readPool(ctx context.Context, h *base.Hub, name string) (*hivev1.ClusterPool, error) {
	var p hivev1.ClusterPool
	err := h.Get(ctx, h.ObjectKey(name), &p)
	switch {
	case apierrors.IsNotFound(err) && !base.IsAPIMissing(err):
		return nil, base.WithRemedy(fmt.Errorf("there is no pool %q in namespace %s", name, h.Namespace), "see: "+a.FormatCommand("pool list"))
	case err != nil:
		return nil, fmt.Errorf("reading pool %s: %w", name, err)
	}
	return &p, checkPool(&p)
}

// copySecrets adds copies of the pool's Secrets that the cluster needs in its own namespace.
func (a commands) copySecrets(ctx context.Context, h *base.Hub, c *candidate, names []string) error {
	for _, name := range names {
		var s corev1.Secret
		err := h.Get(ctx, client.ObjectKey{Namespace: c.pool.Namespace, Name: name}, &s)
		switch {
		case apierrors.IsNotFound(err):
			return fmt.Errorf("the Secret %s does not exist in namespace %s of the pool: create it", name, c.pool.Namespace)
		case err != nil:
			return fmt.Errorf("reading Secret %s: %w", name, err)
		}
		secret := newSecret(c.Cluster, name, "platform", s.Data)
		secret.Type = s.Type
		c.Secrets = append(c.Secrets, secret)
	}
	return nil
}
