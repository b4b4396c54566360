package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

func (a *app) claimReleaseCommand() *cobra.Command {
	var wait bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:               "release CLAIM...",
		Aliases:           []string{"delete"},
		Short:             "Give clusters back; they are destroyed",
		Args:              some("claim"),
		ValidArgsFunction: a.completeClaims,
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until the clusters are gone")
	cmd.Flags().DurationVar(&timeout, "timeout", defaultTimeout, "with --wait, the longest to wait (0: for ever)")
	cmd.RunE = a.on(func(ctx context.Context, h *hub, names []string) error {
		if err := a.release(ctx, h, names); err != nil || !wait {
			return err
		}
		return a.awaitGone(ctx, h, names, timeout)
	})
	return cmd
}

// release deletes every claim that it can.
func (a *app) release(ctx context.Context, h *hub, names []string) error {
	var errs []error
	for _, name := range names {
		c := &hivev1.ClusterClaim{ObjectMeta: h.object(name)}
		switch err := h.Delete(ctx, c); {
		case apierrors.IsNotFound(err):
			errs = append(errs, advise(fmt.Errorf("namespace %s has no claim %q", h.namespace, name), "see: "+a.next("claim list")))
		case err != nil:
			errs = append(errs, fmt.Errorf("releasing claim %s: %w", name, err))
		case a.flags.output == asName:
			errs = append(errs, a.names(c))
		default:
			fmt.Fprintf(a.Stdout, "claim %s released\n", name)
		}
	}
	return errors.Join(errs...)
}

// awaitGone waits until none of the claims exists any longer; each is held until
// its cluster is gone.
func (a *app) awaitGone(ctx context.Context, h *hub, names []string, timeout time.Duration) error {
	ctx, cancel := within(ctx, timeout)
	defer cancel()
	for _, name := range names {
		err := a.awaitOneGone(ctx, h, name)
		if errors.Is(err, errTimedOut) {
			return &exit{exitTimedOut, fmt.Errorf("%w after %s: claim %s is released, but its cluster is not gone yet", err, timeout, name)}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *app) awaitOneGone(ctx context.Context, h *hub, name string) error {
	v := a.watching("claim " + name)
	defer v.close()
	l := lookout[*hivev1.ClusterClaim]{
		hub: h, view: v,
		object: &hivev1.ClusterClaim{ObjectMeta: h.object(name)}, list: &hivev1.ClusterClaimList{},
		look: func(_ *hivev1.ClusterClaim, exists bool) (bool, error) {
			if exists {
				v.show("its cluster is being destroyed")
			}
			return !exists, nil
		},
	}
	return l.wait(ctx)
}
