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
	"hotspare.io/hotspare/internal/prose"
	"hotspare.io/hotspare/internal/standing"
)

func (a *app) clusterCommand() *cobra.Command {
	cmd := a.group("cluster", "Clusters of pools and claims",
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
		RunE: a.on(func(ctx context.Context, h *hub, _ []string) error {
			list, err := h.seeClusters(ctx, scope(h, everywhere))
			if err != nil {
				return err
			}
			return a.show(list, func(w io.Writer) error {
				if len(list.Items) == 0 {
					return a.nothing("clusters", h, everywhere, "pool create dev --size 2")
				}
				return a.clusterTable(list.Items, everywhere).write(w, a.palette(w))
			})
		}),
	}
	allNamespaces(cmd, &everywhere)
	return cmd
}

func (a *app) clusterTable(clusters []hivev1.ClusterDeployment, namespaces bool) *table {
	t := newTable("CLUSTER", "POOL", "STATE", "CLAIM", "PLATFORM", "VERSION", "AGE")
	if namespaces {
		t.header = append([]string{"NAMESPACE"}, t.header...)
	}
	for i := range clusters {
		cd := &clusters[i]
		ref := standing.PoolOf(cd)
		row := []string{
			cd.Name, orNone(ref.PoolName), standing.Cluster(cd), orNone(ref.ClaimName),
			orNone(cd.Spec.Platform.Name()), orNone(versionOf(cd)), a.age(cd.CreationTimestamp.Time),
		}
		if namespaces {
			row = append([]string{standing.Home(cd)}, row...)
		}
		t.add(row...)
	}
	return t
}

// versionOf is the cluster's, as its label or else its install says.
func versionOf(cd *hivev1.ClusterDeployment) string {
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
		Args:              one("cluster or claim"),
		ValidArgsFunction: a.completeClusters,
		RunE: a.on(func(ctx context.Context, h *hub, args []string) error {
			cd, err := a.cluster(ctx, h, args[0])
			if err != nil {
				return err
			}
			return a.show(cd, func(w io.Writer) error {
				return a.writeSections(w, a.clusterFacts(cd), a.conditionTable(cd.Status.Conditions))
			})
		}),
	}
}

func (a *app) clusterFacts(cd *hivev1.ClusterDeployment) *table {
	t := newTable()
	t.add("Cluster", cd.Namespace+"/"+cd.Name)
	t.add("State", standing.Cluster(cd))
	t.add("Age", a.age(cd.CreationTimestamp.Time))
	if ref := standing.PoolOf(cd); ref.PoolName != "" {
		t.add("Pool", ref.Namespace+"/"+ref.PoolName)
		t.add("Claim", orNone(ref.ClaimName))
		if c := ref.CustomizationRef; c != nil { // what was prepared is known by the name that it gives
			t.add("Name", cd.Spec.ClusterName+"."+cd.Spec.BaseDomain)
			t.add("Customization", ref.Namespace+"/"+c.Name)
		}
	}
	t.add("Platform", orNone(cd.Spec.Platform.Name()))
	t.add("Version", orNone(versionOf(cd)))
	t.add("API", orNone(cd.Status.APIURL))
	t.add("Power", powerInWords(cd))
	if n := cd.Status.InstallRestarts; n > 0 {
		t.add("Install", prose.Plural(n, "attempt failed", "attempts failed"))
	}
	return t
}

// powerInWords is what the machines should do and what they do.
func powerInWords(cd *hivev1.ClusterDeployment) string {
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
	if why := cannotHibernate(cd); why != "" && wanted == hivev1.PowerHibernating {
		return words + ", and cannot hibernate: " + strings.TrimSuffix(why, ".")
	}
	if t := cd.Status.PowerTransition; t != nil && t.FinishedAt == nil && t.LastError != "" {
		words += ": " + t.LastError
	}
	return words
}

// cannotHibernate is why the cluster cannot hibernate; "" if it can.
func cannotHibernate(cd *hivev1.ClusterDeployment) string {
	if !standing.Unsupported(cd) {
		return ""
	}
	return condition.Find(cd.Status.Conditions, hivev1.ClusterHibernating).Message
}

// cluster finds a cluster by its claim's name, in the namespace, or else by its own.
func (a *app) cluster(ctx context.Context, h *hub, name string) (*hivev1.ClusterDeployment, error) {
	cd, err := a.claimed(ctx, h, name)
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
	return nil, advise(fmt.Errorf("namespace %s has no claim, and there is no cluster, called %q", h.namespace, name),
		"see: "+a.next("claim list")+"\n  and: "+a.next("cluster list"))
}

var errNoClaim = errors.New("no such claim")

// claimed is the cluster of a claim by its name; errNoClaim if there is no such claim.
func (a *app) claimed(ctx context.Context, h *hub, name string) (*hivev1.ClusterDeployment, error) {
	var c hivev1.ClusterClaim
	err := h.Get(ctx, h.key(name), &c)
	if err != nil {
		return nil, a.noClaim(h, name, err)
	}
	return a.clusterOf(ctx, h, &c)
}

// noClaim says why a claim could not be read: mostly there is none.
func (a *app) noClaim(h *hub, name string, err error) error {
	if apierrors.IsNotFound(err) && !noSuchAPI(err) {
		return advise(fmt.Errorf("%w in namespace %s: %s", errNoClaim, h.namespace, name), "see: "+a.next("claim list"))
	}
	return fmt.Errorf("reading claim %s: %w", name, err)
}

// clusterOf is the cluster that a claim has.
func (a *app) clusterOf(ctx context.Context, h *hub, c *hivev1.ClusterClaim) (*hivev1.ClusterDeployment, error) {
	if c.Spec.Namespace == "" {
		return nil, fmt.Errorf("claim %s has no cluster yet: %s", c.Name, progress(c, a.Clock.Now()))
	}
	var cd hivev1.ClusterDeployment
	err := h.Get(ctx, client.ObjectKey{Namespace: c.Spec.Namespace, Name: c.Spec.Namespace}, &cd)
	if apierrors.IsNotFound(err) && !noSuchAPI(err) {
		return nil, fmt.Errorf("the cluster of claim %s, %s, is gone; release the claim and make another", c.Name, c.Spec.Namespace)
	}
	return &cd, err
}
