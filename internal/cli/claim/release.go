package claim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
)

func (a commands) releaseCommand() *cobra.Command {
	var wait, diagnose bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:     "release CLAIM...",
		Aliases: []string{"delete"},
		Short:   "Release claims and destroy their clusters",
		Long: `Release claims and destroy their clusters.

With --diagnose, the hub writes a bundle of diagnostics of each cluster for its
administrator before it destroys the cluster. The destruction waits at most two minutes
for it. An event of the claim has the name of the bundle. A cluster that hibernates is
not woken for it.`,
		Example: `  hotspare claim release mine
  hotspare claim release mine --diagnose --wait`,
		Args:              base.RequireNames("claim"),
		ValidArgsFunction: a.CompleteClaims,
	}
	cmd.Flags().BoolVar(&diagnose, "diagnose", false, "have the hub write a bundle of diagnostics of each cluster before it destroys the cluster")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until the clusters are destroyed")
	cmd.Flags().DurationVar(&timeout, "timeout", base.DefaultTimeout, "with --wait, maximum time to wait (0: no limit)")
	cmd.RunE = a.WithHub(func(ctx context.Context, h *base.Hub, names []string) error {
		if err := a.releaseClaims(ctx, h, names, diagnose); err != nil || !wait {
			return err
		}
		return a.waitForClaimsGone(ctx, h, names, timeout)
	})
	return cmd
}

// releaseClaims deletes the claims and prints those that it deleted. An error for one claim does
// not stop it.
func (a commands) releaseClaims(ctx context.Context, h *base.Hub, names []string, diagnose bool) error {
	var released hivev1.ClusterClaimList
	var errs []error
	for _, name := range names {
		c, err := a.deleteClaim(ctx, h, name, diagnose)
		switch {
		case apierrors.IsNotFound(err) && !base.IsAPIMissing(err):
			errs = append(errs, base.WithRemedy(fmt.Errorf("namespace %s has no claim %q", h.Namespace, name), "see: "+a.FormatCommand("claim list")))
		case err != nil:
			errs = append(errs, fmt.Errorf("releasing claim %s: %w", name, err))
		default:
			released.Items = append(released.Items, *c)
		}
	}
	return errors.Join(append(errs, a.printReleasedClaims(&released, len(names) == 1))...)
}

// deleteClaim deletes a claim, and returns the claim as it was before. If a bundle of its cluster is requested and
// the request is refused, it deletes nothing.
func (a commands) deleteClaim(ctx context.Context, h *base.Hub, name string, diagnose bool) (*hivev1.ClusterClaim, error) {
	c := &hivev1.ClusterClaim{}
	if err := h.Get(ctx, h.ObjectKey(name), c); err != nil {
		return nil, err
	}
	if diagnose {
		if err := h.Patch(ctx, c.DeepCopy(), diagnosePatch(c.UID, true)); err != nil {
			err = fmt.Errorf("requesting a bundle of diagnostics with annotation %s: %w", hivev1.AnnotationDiagnoseAtRelease, err)
			return nil, base.WithRemedy(err, "release it without a bundle: "+a.FormatCommand("claim release %s", name))
		}
	}
	return c, h.Delete(ctx, c)
}

// diagnosePatch returns the patch that requests a bundle at the release of the claim with this UID, or withdraws the
// request.
func diagnosePatch(uid types.UID, request bool) client.Patch {
	annotations := map[string]any{hivev1.AnnotationDiagnoseAtRelease: nil}
	if request {
		annotations[hivev1.AnnotationDiagnoseAtRelease] = "true"
	}
	metadata := map[string]any{"annotations": annotations}
	if uid != "" {
		metadata["uid"] = uid
	}
	raw, err := json.Marshal(map[string]any{"metadata": metadata})
	base.MustSucceed(err)
	return client.RawPatch(types.MergePatchType, raw)
}

// printReleasedClaims prints claims in the format of --output: a single requested claim as an
// object, otherwise a list.
func (a commands) printReleasedClaims(released *hivev1.ClusterClaimList, alone bool) error {
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
		return a.PrintObject(released, text)
	case len(released.Items) == 1:
		return a.PrintObject(&released.Items[0], text)
	default:
		return nil
	}
}

// waitForClaimsGone waits until the claims are deleted. A finalizer keeps each claim until its
// cluster is destroyed.
func (a commands) waitForClaimsGone(ctx context.Context, h *base.Hub, names []string, timeout time.Duration) error {
	ctx, cancel := base.WithWaitTimeout(ctx, timeout)
	defer cancel()
	for _, name := range names {
		err := a.waitForClaimGone(ctx, h, name)
		if errors.Is(err, base.ErrTimedOut) {
			return &base.ExitError{Code: base.ExitTimedOut, Err: fmt.Errorf("%w after %s: claim %s is released, but its cluster is not destroyed yet", err, timeout, name)}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (a commands) waitForClaimGone(ctx context.Context, h *base.Hub, name string) error {
	v := a.StartProgressView("claim " + name)
	defer v.Close()
	l := base.ObjectWaiter[*hivev1.ClusterClaim]{
		Hub: h, View: v,
		Object: &hivev1.ClusterClaim{ObjectMeta: h.ObjectMeta(name)}, List: &hivev1.ClusterClaimList{},
		CheckDone: func(_ *hivev1.ClusterClaim, exists bool) (bool, error) {
			if exists {
				v.ShowState("its cluster is being destroyed")
			}
			return !exists, nil
		},
	}
	return l.WaitUntilDone(ctx)
}
