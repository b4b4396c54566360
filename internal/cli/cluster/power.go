package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/explain/clusterstate"
)

func (a commands) hibernateCommand() *cobra.Command {
	return a.newPowerCommand(&cobra.Command{
		Use:   "hibernate NAME",
		Short: "Hibernate a cluster, or a claim's cluster",
		Long: "Hibernate a cluster, or a claim's cluster.\n\n" +
			"A cluster that is frozen or suspended keeps its memory and wakes up sooner than one that is stopped.\n" +
			"A depth that its platform does not have becomes the next deeper one.",
	}, hivev1.PowerHibernating, "wait until the cluster hibernates")
}

func (a commands) resumeCommand() *cobra.Command {
	return a.newPowerCommand(&cobra.Command{
		Use:   "resume NAME",
		Short: "Resume a cluster, or a claim's cluster",
	}, hivev1.PowerRunning, "wait until the cluster can be used")
}

// newPowerCommand returns a command that sets the power state of a cluster.
func (a commands) newPowerCommand(cmd *cobra.Command, want hivev1.PowerState, help string) *cobra.Command {
	var wait bool
	var timeout time.Duration
	cmd.Args, cmd.ValidArgsFunction = base.RequireOneName("cluster or claim"), a.CompleteClusters
	cmd.Flags().BoolVar(&wait, "wait", false, help)
	cmd.Flags().DurationVar(&timeout, "timeout", base.DefaultTimeout, "with --wait, maximum time to wait (0: no limit)")
	var depth string
	if want == hivev1.PowerHibernating {
		cmd.Flags().StringVar(&depth, "depth", "", "depth of the sleep: freeze, suspend or stop (default: that of the last time, or stop)")
		base.MustSucceed(cmd.RegisterFlagCompletionFunc("depth", cobra.FixedCompletions(depths, cobra.ShellCompDirectiveNoFileComp)))
	}
	cmd.RunE = a.WithHub(func(ctx context.Context, h *base.Hub, args []string) error {
		if err := checkDepth(depth); err != nil {
			return err
		}
		cd, err := a.setPowerState(ctx, h, args[0], powerRequest{want, depth})
		if err != nil {
			return err
		}
		if wait {
			if cd, err = a.waitForPowerState(ctx, h, cd, powerRequest{want, depth}, timeout); err != nil {
				return err
			}
		}
		return a.PrintObject(cd, func(w io.Writer) error {
			_, err := io.WriteString(w, a.describePowerChange(cd, args[0], want, wait))
			return err
		})
	})
	return cmd
}

// describePowerChange reports the requested power state, and whether the cluster has reached it.
func (a commands) describePowerChange(cd *hivev1.ClusterDeployment, name string, want hivev1.PowerState, waited bool) string {
	switch {
	case want == hivev1.PowerHibernating && base.CannotHibernateReason(cd) != "":
		return fmt.Sprintf("cluster %s keeps running until it can hibernate: %s\n\nUndo:\n  %s\n", cd.Name, base.CannotHibernateReason(cd), a.FormatCommand("cluster resume %s", name))
	case want == hivev1.PowerHibernating && waited:
		return fmt.Sprintf("cluster %s is hibernating\n\nResume it:\n  %s\n", cd.Name, a.FormatCommand("cluster resume %s --wait", name))
	case want == hivev1.PowerHibernating:
		return fmt.Sprintf("hibernating cluster %s\n\nResume it:\n  %s\n", cd.Name, a.FormatCommand("cluster resume %s --wait", name))
	case waited:
		return fmt.Sprintf("cluster %s is running\n", cd.Name)
	default:
		return fmt.Sprintf("resuming cluster %s\n", cd.Name)
	}
}

// powerRequest is what a user wants of a cluster. An empty depth leaves the annotation as it is.
type powerRequest struct {
	state hivev1.PowerState
	depth string
}

// depths are the depths of sleep.
var depths = []string{hivev1.DepthFreeze, hivev1.DepthSuspend, hivev1.DepthStop}

// checkDepth returns an error for a depth that does not exist.
func checkDepth(depth string) error {
	if depth == "" || slices.Contains(depths, depth) {
		return nil
	}
	return base.NewUsageError(fmt.Errorf("flag --depth: there is no depth %q: choose one of %s", depth, strings.Join(depths, ", ")))
}

// setPowerState sets the power state of a cluster, unless its pool controls it.
func (a commands) setPowerState(ctx context.Context, h *base.Hub, name string, want powerRequest) (*hivev1.ClusterDeployment, error) {
	cd, err := a.FindCluster(ctx, h, name)
	if err != nil {
		return nil, err
	}
	if ref := clusterstate.PoolReference(cd); ref.PoolName != "" && ref.ClaimName == "" {
		return nil, base.WithRemedy(
			fmt.Errorf("cluster %s is unclaimed, and pool %s/%s controls its power state", cd.Name, ref.Namespace, ref.PoolName),
			"change the number of running clusters with: "+a.FormatCommandIn(ref.Namespace, "pool scale %s --running N", ref.PoolName))
	}
	before := cd.DeepCopy()
	cd.Spec.PowerState = want.state
	if want.state == hivev1.PowerHibernating {
		delete(cd.Annotations, hivev1.AnnotationInactivity) // a connection does not end what a person wants
	}
	if want.depth != "" {
		metav1.SetMetaDataAnnotation(&cd.ObjectMeta, hivev1.AnnotationSleepDepth, want.depth)
	}
	if err := h.Patch(ctx, cd, client.MergeFrom(before)); err != nil {
		return nil, fmt.Errorf("setting the power state of cluster %s: %w", cd.Name, err)
	}
	return cd, nil
}

// isReached reports whether a cluster has the requested power state. A cluster that sleeps less deeply than requested does
// not.
func (r powerRequest) isReached(cd *hivev1.ClusterDeployment) bool {
	if r.state != hivev1.PowerHibernating {
		return clusterstate.OfCluster(cd) == clusterstate.Running
	}
	depth := cmp.Or(clusterstate.SleepDepth(cd), hivev1.DepthStop)
	return clusterstate.OfCluster(cd) == clusterstate.Hibernating && slices.Index(depths, depth) >= slices.Index(depths, r.depth)
}

// waitForPowerState waits until a cluster has reached the requested power state.
func (a commands) waitForPowerState(
	ctx context.Context, h *base.Hub, cd *hivev1.ClusterDeployment, want powerRequest, timeout time.Duration,
) (*hivev1.ClusterDeployment, error) {
	ctx, cancel := base.WithWaitTimeout(ctx, timeout)
	defer cancel()
	v := a.StartProgressView("cluster " + cd.Name)
	defer v.Close()
	last, doing := cd, "resume"
	if want.state == hivev1.PowerHibernating {
		doing = "hibernate"
	}
	l := base.ObjectWaiter[*hivev1.ClusterDeployment]{
		Hub: h, View: v, Object: cd.DeepCopy(), List: &hivev1.ClusterDeploymentList{},
		CheckDone: func(seen *hivev1.ClusterDeployment, exists bool) (bool, error) {
			if !exists || seen.DeletionTimestamp != nil {
				return false, fmt.Errorf("cluster %s was deleted before it could %s", cd.Name, doing)
			}
			last = seen.DeepCopy()
			v.ShowState(base.DescribePower(last))
			if why := base.CannotHibernateReason(last); why != "" && want.state == hivev1.PowerHibernating {
				return false, fmt.Errorf("cluster %s cannot hibernate: %s", cd.Name, strings.TrimSuffix(why, "."))
			}
			return want.isReached(last), nil
		},
	}
	err := l.WaitUntilDone(ctx)
	if errors.Is(err, base.ErrTimedOut) {
		err = &base.ExitError{Code: base.ExitTimedOut, Err: base.WithRemedy(fmt.Errorf("%w after %s: cluster %s %s", err, timeout, cd.Name, base.DescribePower(last)),
			"the change continues; see: "+a.FormatCommand("cluster describe %s", cd.Name))}
	}
	return last, err
}
