package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

func (a *app) clusterHibernateCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "hibernate NAME",
		Short:             "Put a cluster, or a claim's cluster, to sleep",
		Args:              one("cluster or claim"),
		ValidArgsFunction: a.completeClusters,
		RunE: a.on(func(ctx context.Context, h *hub, args []string) error {
			cd, err := a.tell(ctx, h, args[0], hivev1.PowerHibernating)
			if err != nil {
				return err
			}
			return a.show(cd, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "cluster %s hibernates\n\nWake it:\n  %s\n", cd.Name, a.next("cluster resume %s --wait", args[0]))
				return err
			})
		}),
	}
}

func (a *app) clusterResumeCommand() *cobra.Command {
	var wait bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:               "resume NAME",
		Short:             "Wake a cluster, or a claim's cluster",
		Args:              one("cluster or claim"),
		ValidArgsFunction: a.completeClusters,
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until the cluster can be used")
	cmd.Flags().DurationVar(&timeout, "timeout", defaultTimeout, "with --wait, the longest to wait (0: for ever)")
	cmd.RunE = a.on(func(ctx context.Context, h *hub, args []string) error {
		cd, err := a.tell(ctx, h, args[0], hivev1.PowerRunning)
		if err != nil {
			return err
		}
		words := "resumes"
		if wait {
			if cd, err = a.awaitRunning(ctx, h, cd, timeout); err != nil {
				return err
			}
			words = "runs"
		}
		return a.show(cd, func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "cluster %s %s\n", cd.Name, words)
			return err
		})
	})
	return cmd
}

// tell sets the power state of a cluster that is not its pool's to set.
func (a *app) tell(ctx context.Context, h *hub, name string, want hivev1.PowerState) (*hivev1.ClusterDeployment, error) {
	cd, err := a.cluster(ctx, h, name)
	if err != nil {
		return nil, err
	}
	if ref := poolOf(cd); ref.PoolName != "" && ref.ClaimName == "" {
		return nil, advise(
			fmt.Errorf("cluster %s is a spare of pool %s/%s, which decides when it runs", cd.Name, ref.Namespace, ref.PoolName),
			"change how many run with: hotspare pool scale "+ref.PoolName+" --running N -n "+ref.Namespace)
	}
	before := cd.DeepCopy()
	cd.Spec.PowerState = want
	if err := h.Patch(ctx, cd, client.MergeFrom(before)); err != nil {
		return nil, fmt.Errorf("setting the power state of cluster %s: %w", cd.Name, err)
	}
	return cd, nil
}

func (a *app) awaitRunning(ctx context.Context, h *hub, cd *hivev1.ClusterDeployment, timeout time.Duration) (*hivev1.ClusterDeployment, error) {
	ctx, cancel := within(ctx, timeout)
	defer cancel()
	v := a.watching("cluster " + cd.Name)
	defer v.close()
	last := cd
	l := lookout[*hivev1.ClusterDeployment]{
		hub: h, view: v, object: cd.DeepCopy(), list: &hivev1.ClusterDeploymentList{},
		look: func(seen *hivev1.ClusterDeployment, exists bool) (bool, error) {
			if !exists || seen.DeletionTimestamp != nil {
				return false, fmt.Errorf("cluster %s was deleted while it resumed", cd.Name)
			}
			last = seen.DeepCopy()
			v.show(powerInWords(last))
			return clusterState(last) == stateRunning, nil
		},
	}
	err := l.wait(ctx)
	if errors.Is(err, errTimedOut) {
		err = &exit{exitTimedOut, advise(fmt.Errorf("%w after %s: cluster %s %s", err, timeout, cd.Name, powerInWords(last)),
			"it goes on resuming; see: "+a.next("cluster describe %s", cd.Name))}
	}
	return last, err
}
