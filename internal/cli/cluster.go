package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/explain/clusterstate"
	"hotspare.io/hotspare/internal/explain/humanize"
)

func (a *app) clusterCommand() *cobra.Command {
	cmd := a.newCommandGroup("cluster", "Clusters of pools and claims",
		a.clusterListCommand(), a.clusterDescribeCommand(), a.clusterKubeconfigCommand(),
		a.clusterHibernateCommand(), a.clusterResumeCommand(), a.clusterLogsCommand())
	cmd.Aliases = []string{"clusters"}
	return cmd
}

func (a *app) clusterListCommand() *cobra.Command {
	var everywhere bool
	cmd := &cobra.Command{
		Use:               "list",
		Aliases:           []string{"ls"},
		Short:             "List clusters, those of a pool in the pool's namespace",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: a.withHub(func(ctx context.Context, h *hub, _ []string) error {
			list, err := h.listClusters(ctx, listNamespace(h, everywhere))
			if err != nil {
				return err
			}
			return a.printObject(list, func(w io.Writer) error {
				if len(list.Items) == 0 {
					return a.reportEmptyList("clusters", h, everywhere, "pool create dev --size 2")
				}
				return a.buildClusterTable(list.Items, everywhere).writeTo(w, a.paletteFor(w))
			})
		}),
	}
	addAllNamespacesFlag(cmd, &everywhere)
	return cmd
}

func (a *app) buildClusterTable(clusters []hivev1.ClusterDeployment, namespaces bool) *table {
	t := newTable("CLUSTER", "POOL", "STATE", "CLAIM", "PLATFORM", "VERSION", "AGE")
	if namespaces {
		t.header = append([]string{"NAMESPACE"}, t.header...)
	}
	for i := range clusters {
		cd := &clusters[i]
		ref := clusterstate.PoolReference(cd)
		row := []string{
			cd.Name, valueOrNone(ref.PoolName), clusterstate.OfCluster(cd), valueOrNone(ref.ClaimName),
			valueOrNone(cd.Spec.Platform.Name()), valueOrNone(clusterVersion(cd)), a.formatAge(cd.CreationTimestamp.Time),
		}
		if namespaces {
			row = append([]string{clusterstate.HomeNamespace(cd)}, row...)
		}
		t.addRow(row...)
	}
	return t
}

// clusterVersion is the cluster's, as its label or else its install says.
func clusterVersion(cd *hivev1.ClusterDeployment) string {
	if v := cd.Labels[hivev1.LabelVersion]; v != "" {
		return v
	}
	if v := cd.Status.InstallVersion; v != nil {
		return *v
	}
	return ""
}

func (a *app) clusterDescribeCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "describe NAME",
		Short:             "Show all there is to know of a cluster, or of a claim's cluster",
		Args:              requireOneName("cluster or claim"),
		ValidArgsFunction: a.completeClusters,
		RunE: a.withHub(func(ctx context.Context, h *hub, args []string) error {
			cd, err := a.findCluster(ctx, h, args[0])
			if err != nil {
				return err
			}
			return a.printObject(cd, func(w io.Writer) error {
				return a.writeSections(w, a.buildClusterFacts(cd), a.buildConditionTable(cd.Status.Conditions))
			})
		}),
	}
}

func (a *app) buildClusterFacts(cd *hivev1.ClusterDeployment) *table {
	t := newTable()
	t.addRow("Cluster", cd.Namespace+"/"+cd.Name)
	t.addRow("State", clusterstate.OfCluster(cd))
	t.addRow("Age", a.formatAge(cd.CreationTimestamp.Time))
	if ref := clusterstate.PoolReference(cd); ref.PoolName != "" {
		t.addRow("Pool", ref.Namespace+"/"+ref.PoolName)
		t.addRow("Claim", valueOrNone(ref.ClaimName))
		if c := ref.CustomizationRef; c != nil { // what was prepared is known by the name that it gives
			t.addRow("Name", cd.Spec.ClusterName+"."+cd.Spec.BaseDomain)
			t.addRow("Customization", ref.Namespace+"/"+c.Name)
		}
	}
	t.addRow("Platform", valueOrNone(cd.Spec.Platform.Name()))
	t.addRow("Version", valueOrNone(clusterVersion(cd)))
	t.addRow("API", valueOrNone(cd.Status.APIURL))
	t.addRow("Power", describePower(cd))
	if n := cd.Status.InstallRestarts; n > 0 {
		t.addRow("Install", humanize.FormatPlural(n, "attempt failed", "attempts failed"))
	}
	return t
}

// describePower is what the machines should do and what they do.
func describePower(cd *hivev1.ClusterDeployment) string {
	wanted := cd.Spec.PowerState
	if wanted == "" {
		wanted = hivev1.PowerRunning
	}
	words := "should be " + strings.ToLower(string(wanted))
	switch is := cd.Status.PowerState; is {
	case "":
		words += ", not looked at yet"
	case string(wanted):
		words += ", and is"
	default:
		words += ", is " + is
	}
	if why := cannotHibernateReason(cd); why != "" && wanted == hivev1.PowerHibernating {
		return words + ", and cannot hibernate: " + strings.TrimSuffix(why, ".")
	}
	if t := cd.Status.PowerTransition; t != nil && t.FinishedAt == nil && t.LastError != "" {
		words += ": " + t.LastError
	}
	return words
}

// cannotHibernateReason is why the cluster cannot hibernate; "" if it can.
func cannotHibernateReason(cd *hivev1.ClusterDeployment) string {
	if !clusterstate.IsHibernationUnsupported(cd) {
		return ""
	}
	return condition.Find(cd.Status.Conditions, hivev1.ClusterHibernating).Message
}

// findCluster finds a cluster by its claim's name, in the namespace, or else by its own.
func (a *app) findCluster(ctx context.Context, h *hub, name string) (*hivev1.ClusterDeployment, error) {
	cd, err := a.findClaimedCluster(ctx, h, name)
	if !errors.Is(err, errNoClaim) {
		return cd, err
	}
	cd = &hivev1.ClusterDeployment{}
	for _, namespace := range []string{name, h.namespace} { // a pool's cluster, then one without a pool
		err := h.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, cd)
		if !apierrors.IsNotFound(err) {
			return cd, err
		}
	}
	return nil, withRemedy(fmt.Errorf("namespace %s has no claim, and there is no cluster, called %q", h.namespace, name),
		"see: "+a.formatCommand("claim list")+"\n  and: "+a.formatCommand("cluster list"))
}

var errNoClaim = errors.New("no such claim")

// findClaimedCluster is the cluster of a claim by its name; errNoClaim if there is no such claim.
func (a *app) findClaimedCluster(ctx context.Context, h *hub, name string) (*hivev1.ClusterDeployment, error) {
	var c hivev1.ClusterClaim
	err := h.Get(ctx, h.objectKey(name), &c)
	if err != nil {
		return nil, a.claimReadError(h, name, err)
	}
	return a.getClaimCluster(ctx, h, &c)
}

// claimReadError says why a claim could not be read: mostly there is none.
func (a *app) claimReadError(h *hub, name string, err error) error {
	if apierrors.IsNotFound(err) && !isAPIMissing(err) {
		return withRemedy(fmt.Errorf("%w in namespace %s: %s", errNoClaim, h.namespace, name), "see: "+a.formatCommand("claim list"))
	}
	return fmt.Errorf("reading claim %s: %w", name, err)
}

// getClaimCluster is the cluster that a claim has.
func (a *app) getClaimCluster(ctx context.Context, h *hub, c *hivev1.ClusterClaim) (*hivev1.ClusterDeployment, error) {
	if c.Spec.Namespace == "" {
		return nil, fmt.Errorf("claim %s has no cluster yet: %s", c.Name, describeClaimProgress(c, a.Clock.Now()))
	}
	var cd hivev1.ClusterDeployment
	err := h.Get(ctx, client.ObjectKey{Namespace: c.Spec.Namespace, Name: c.Spec.Namespace}, &cd)
	if apierrors.IsNotFound(err) && !isAPIMissing(err) {
		return nil, fmt.Errorf("the cluster of claim %s, %s, is gone; release the claim and make another", c.Name, c.Spec.Namespace)
	}
	return &cd, err
}
