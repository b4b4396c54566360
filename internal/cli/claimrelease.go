package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
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
		Args:              requireNames("claim"),
		ValidArgsFunction: a.completeClaims,
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until the clusters are gone")
	cmd.Flags().DurationVar(&timeout, "timeout", defaultTimeout, "with --wait, the longest to wait (0: for ever)")
	cmd.RunE = a.withHub(func(ctx context.Context, h *hub, names []string) error {
		if err := a.releaseClaims(ctx, h, names); err != nil || !wait {
			return err
		}
		return a.waitForClaimsGone(ctx, h, names, timeout)
	})
	return cmd
}

// releaseClaims deletes every claim that it can, and prints those.
func (a *app) releaseClaims(ctx context.Context, h *hub, names []string) error {
	var released hivev1.ClusterClaimList
	var errs []error
	for _, name := range names {
		c, err := h.deleteClaim(ctx, name)
		switch {
		case apierrors.IsNotFound(err) && !isAPIMissing(err):
			errs = append(errs, withRemedy(fmt.Errorf("namespace %s has no claim %q", h.namespace, name), "see: "+a.formatCommand("claim list")))
		case err != nil:
			errs = append(errs, fmt.Errorf("releasing claim %s: %w", name, err))
		default:
			released.Items = append(released.Items, *c)
		}
	}
	return errors.Join(append(errs, a.printReleasedClaims(&released, len(names) == 1))...)
}

// deleteClaim deletes a claim, and returns it as it was.
func (h *hub) deleteClaim(ctx context.Context, name string) (*hivev1.ClusterClaim, error) {
	c := &hivev1.ClusterClaim{}
	if err := h.Get(ctx, h.objectKey(name), c); err != nil {
		return nil, err
	}
	return c, h.Delete(ctx, c)
}

// printReleasedClaims prints claims in the format asked for: one that was asked for alone as an
// object, and otherwise a list.
func (a *app) printReleasedClaims(released *hivev1.ClusterClaimList, alone bool) error {
	text := func(w io.Writer) error {
		for _, c := range released.Items {
			if _, err := fmt.Fprintf(w, "claim %s released\n", c.Name); err != nil {
				return err
			}
		}
		return nil
	}
	switch {
	case !alone:
		return a.printObject(released, text)
	case len(released.Items) == 1:
		return a.printObject(&released.Items[0], text)
	default:
		return nil
	}
}

// waitForClaimsGone waits until none of the claims exists any longer; each is held until
// its cluster is gone.
func (a *app) waitForClaimsGone(ctx context.Context, h *hub, names []string, timeout time.Duration) error {
	ctx, cancel := withWaitTimeout(ctx, timeout)
	defer cancel()
	for _, name := range names {
		err := a.waitForClaimGone(ctx, h, name)
		if errors.Is(err, errTimedOut) {
			return &exitError{exitTimedOut, fmt.Errorf("%w after %s: claim %s is released, but its cluster is not gone yet", err, timeout, name)}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *app) waitForClaimGone(ctx context.Context, h *hub, name string) error {
	v := a.startProgressView("claim " + name)
	defer v.close()
	l := objectWaiter[*hivev1.ClusterClaim]{
		hub: h, view: v,
		object: &hivev1.ClusterClaim{ObjectMeta: h.objectMeta(name)}, list: &hivev1.ClusterClaimList{},
		checkDone: func(_ *hivev1.ClusterClaim, exists bool) (bool, error) {
			if exists {
				v.showState("its cluster is being destroyed")
			}
			return !exists, nil
		},
	}
	return l.waitUntilDone(ctx)
}
