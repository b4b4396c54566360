package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/explain/clusterstate"
	"hotspare.io/hotspare/internal/explain/humanize"
)

func (a *app) poolCommand() *cobra.Command {
	cmd := a.newCommandGroup("pool", "Pools of spare clusters",
		a.poolListCommand(), a.poolCreateCommand(), a.poolDescribeCommand(), a.poolScaleCommand(), a.poolDeleteCommand(),
		a.poolWatchCommand(), a.poolPlanCommand(), a.poolEstimateCommand())
	cmd.Aliases = []string{"pools"}
	return cmd
}

func (a *app) poolListCommand() *cobra.Command {
	var everywhere bool
	cmd := &cobra.Command{
		Use:               "list",
		Aliases:           []string{"ls"},
		Short:             "List pools and what is in them",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: a.withHub(func(ctx context.Context, h *hub, _ []string) error {
			s, err := h.readSnapshot(ctx, listNamespace(h, everywhere))
			if err != nil {
				return err
			}
			return a.printObject(&s.pools, func(w io.Writer) error {
				if len(s.pools.Items) == 0 {
					return a.reportEmptyList("pools", h, everywhere, "pool create dev --size 2")
				}
				return a.buildPoolTable(s, everywhere).writeTo(w, a.paletteFor(w))
			})
		}),
	}
	addAllNamespacesFlag(cmd, &everywhere)
	return cmd
}

func addAllNamespacesFlag(cmd *cobra.Command, everywhere *bool) {
	cmd.Flags().BoolVarP(everywhere, "all-namespaces", "A", false, "of all namespaces")
}

func listNamespace(h *hub, everywhere bool) string {
	if everywhere {
		return ""
	}
	return h.namespace
}

// reportEmptyList says that a list is empty, to people only: a pipe gets an empty list.
func (a *app) reportEmptyList(what string, h *hub, everywhere bool, command string) error {
	where := "in namespace " + h.namespace + " (-A looks into all)"
	if everywhere {
		where = "in any namespace"
	}
	_, err := fmt.Fprintf(a.Stderr, "No %s %s. To make one:\n  %s\n", what, where, a.formatCommand("%s", command))
	return err
}

// buildPoolTable has a line for each pool of a scene.
func (a *app) buildPoolTable(s *hubSnapshot, namespaces bool) *table {
	t := newTable("POOL", "SIZE", "READY", "STANDBY", "INSTALLING", "CLAIMED", "WAITING", "AGE", "PLAN")
	if namespaces {
		t.header = append([]string{"NAMESPACE"}, t.header...)
	}
	for i := range s.pools.Items {
		p := &s.pools.Items[i]
		n := s.selectPool(p).countMembers(p, a.Clock.Now())
		row := []string{
			p.Name, formatNumber(p.Spec.Size), formatNumber(n.Assignable), formatNumber(n.Standby), formatNumber(n.Installing),
			formatNumber(n.Claimed), formatNumber(n.Waiting), a.formatAge(p.CreationTimestamp.Time), p.Status.Plan,
		}
		if namespaces {
			row = append([]string{p.Namespace}, row...)
		}
		t.addRow(row...)
	}
	return t
}

func (a *app) poolScaleCommand() *cobra.Command {
	var size, running int32
	cmd := &cobra.Command{
		Use:               "scale POOL --size N [--running N]",
		Short:             "Change how many clusters a pool keeps",
		Args:              requireOneName("pool"),
		ValidArgsFunction: a.completePools,
	}
	cmd.Long = "Change how many clusters a pool keeps. A size below the number that it keeps running\nlowers that, too, unless --running says otherwise."
	cmd.Flags().Int32Var(&size, "size", 0, "unclaimed clusters to keep")
	cmd.Flags().Int32Var(&running, "running", 0, "how many of them to keep running; the others hibernate")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		resize, rerun := cmd.Flags().Changed("size"), cmd.Flags().Changed("running")
		if !resize && !rerun {
			return usageErrorFor(errors.New("say what to change: --size, --running or both"), cmd)
		}
		if size < 0 || running < 0 {
			return usageErrorFor(errors.New("--size and --running cannot be below 0"), cmd)
		}
		return a.withHub(func(ctx context.Context, h *hub, args []string) error {
			return a.scalePool(ctx, h, args[0], func(spec *hivev1.ClusterPoolSpec) {
				if resize {
					spec.Size = size
				}
				switch {
				case rerun:
					spec.RunningCount = running
				case spec.RunningCount > size:
					fmt.Fprintf(a.Stderr, "note: it kept %d running; that is lowered to its size, %d\n", spec.RunningCount, size)
					spec.RunningCount = size
				}
			})
		})(cmd, args)
	}
	return cmd
}

func (a *app) scalePool(ctx context.Context, h *hub, name string, change func(*hivev1.ClusterPoolSpec)) error {
	p, err := a.getPool(ctx, h, name)
	if err != nil {
		return err
	}
	before := p.DeepCopy()
	change(&p.Spec)
	if err := h.Patch(ctx, p, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("scaling pool %s: %w", name, err)
	}
	return a.printObject(p, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "pool %s keeps %s\n", name, describeSize(p.Spec))
		return err
	})
}

// describeSize is "3 clusters, 1 of them running".
func describeSize(spec hivev1.ClusterPoolSpec) string {
	return fmt.Sprintf("%s, %d of them running", humanize.FormatCount(int(spec.Size), "cluster"), min(spec.RunningCount, spec.Size))
}

func (a *app) poolDeleteCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "delete POOL",
		Short:             "Delete a pool and its unclaimed clusters",
		Args:              requireOneName("pool"),
		ValidArgsFunction: a.completePools,
		RunE:              a.withHub(a.runPoolDelete),
	}
}

func (a *app) runPoolDelete(ctx context.Context, h *hub, args []string) error {
	p, err := a.getPool(ctx, h, args[0])
	if err != nil {
		return err
	}
	s, err := h.readSnapshot(ctx, h.namespace)
	if err != nil {
		return err
	}
	if err := h.Delete(ctx, p); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting pool %s: %w", p.Name, err)
	}
	return a.printObject(p, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, describePoolDeletion(p.Name, s.selectPool(p).countMembers(p, a.Clock.Now())))
		return err
	})
}

// describePoolDeletion says what becomes of a deleted pool's clusters.
func describePoolDeletion(name string, n clusterstate.Tally) string {
	spare := n.Assignable + n.Standby + n.Installing + n.Broken + n.Unreadable
	words := fmt.Sprintf("pool %s is being deleted, and %s with it", name, humanize.FormatCount(spare, "unclaimed cluster"))
	if n.Claimed > 0 {
		words += fmt.Sprintf("; it stays until its %s released", humanize.FormatPlural(n.Claimed, "claim is", "claims are"))
	}
	return words
}

// getPool reads a pool; the error for one that does not exist names those that do.
func (a *app) getPool(ctx context.Context, h *hub, name string) (*hivev1.ClusterPool, error) {
	var p hivev1.ClusterPool
	err := h.Get(ctx, h.objectKey(name), &p)
	switch {
	case err == nil:
		return &p, nil
	case !apierrors.IsNotFound(err) || isAPIMissing(err):
		return nil, fmt.Errorf("reading pool %s: %w", name, err)
	}
	var others hivev1.ClusterPoolList
	if err := h.List(ctx, &others, client.InNamespace(h.namespace)); err != nil {
		return nil, fmt.Errorf("listing pools: %w", err)
	}
	return nil, withRemedy(fmt.Errorf("namespace %s has no pool %q", h.namespace, name),
		describeOtherPools(others.Items)+"; look into the others with: "+a.formatCommand("pool list -A"))
}

func describeOtherPools(pools []hivev1.ClusterPool) string {
	if len(pools) == 0 {
		return "it has no pools"
	}
	var names []string
	for _, p := range pools {
		names = append(names, p.Name)
	}
	return "it has " + humanize.JoinWords(names)
}

// objectMeta is the metadata of something new in the command's namespace.
func (h *hub) objectMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: h.namespace, Name: name}
}
