package claim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/explain/clusterstate"
)

// runClaimLifetime is the lifetime of a claim that claim run makes: should this process
// be killed, and no other claim run follow, the hub gives the cluster back.
const runClaimLifetime = 4 * time.Hour

// releaseTimeout is how long giving the cluster back may take.
const releaseTimeout = 30 * time.Second

func (a commands) runCommand() *cobra.Command {
	o := &claimOptions{}
	cmd := &cobra.Command{
		Use:   "run POOL -- COMMAND...",
		Short: "Run a command with a claimed cluster, then release it",
		Long: `Claim a cluster, run a command with it, and release it when the command ends,
however it ends. SIGINT, SIGTERM and SIGHUP go to the command.

The command finds the cluster by KUBECONFIG, a private file that is removed
afterwards; HOTSPARE_CLAIM and HOTSPARE_CLUSTER hold the names. The exit code is
the command's. If the claim's lifetime ends first, or somebody releases it, that is
said, and the command is sent SIGTERM: its cluster is gone.

Should this process be killed (SIGKILL), the command is sent SIGTERM on Linux. The next
claim run of the same user on this machine releases the claim and removes the file;
without one the claim ends with its lifetime.`,
		Example: `  hotspare claim run dev -- make e2e
  hotspare claim run dev --timeout 10m -- sh -c 'kubectl get nodes'`,
		Args: requirePoolAndCommand,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return a.CompletePools(cmd, args, typed)
		},
	}
	cmd.Flags().DurationVar(&o.lifetime, "lifetime", runClaimLifetime, "release it by itself after this time")
	cmd.Flags().DurationVar(&o.timeout, "timeout", base.DefaultTimeout, "the longest to wait for the cluster (0: for ever)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.validate(); err != nil {
			return base.UsageErrorFor(err, cmd)
		}
		if _, err := exec.LookPath(args[1]); err != nil { // before it costs a cluster
			return &base.ExitError{Code: base.ExitNotFound, Err: err}
		}
		return a.WithHub(func(ctx context.Context, h *base.Hub, _ []string) error {
			return a.runWithClaim(ctx, h, base.StripKindPrefix(args[0]), args[1:], o)
		})(cmd, args[:1])
	}
	return cmd
}

// requirePoolAndCommand accepts POOL -- COMMAND...
func requirePoolAndCommand(cmd *cobra.Command, args []string) error {
	switch dash := cmd.ArgsLenAtDash(); {
	case dash == 1 && len(args) > 1:
		return nil
	case dash < 0 || len(args) == dash:
		return errors.New("give the command to run after --, as in: hotspare claim run POOL -- make test")
	default:
		return errors.New("name one pool before --")
	}
}

// runWithClaim keeps hearing signals until the claim is released, so that a second
// one does not leave the cluster behind.
func (a commands) runWithClaim(ctx context.Context, h *base.Hub, poolName string, command []string, o *claimOptions) error {
	c, err := a.prepareClaim(ctx, h, poolName, o)
	if err != nil {
		return err
	}
	a.cleanUpKilledRuns(ctx, h)
	heard := make(chan os.Signal, 8)
	signal.Notify(heard, base.StopSignals...)
	defer signal.Stop(heard)

	defer a.releaseClaim(ctx, h, c) // before it is made: an interrupted request may have been served
	if err := a.createClaim(ctx, h, c); err != nil {
		return err
	}
	c, took, err := a.waitForClaim(ctx, h, c.Name, o.timeout)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.Stderr, "claim %s has cluster %s after %s\n", c.Name, c.Spec.Namespace, took)
	return a.runWithKubeconfig(ctx, h, c, command, heard)
}

// releaseClaim releases the claim even when ctx has ended. Its failure does not change
// the exit code: that is the command's.
func (a commands) releaseClaim(ctx context.Context, h *base.Hub, c *hivev1.ClusterClaim) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	err := h.Delete(ctx, &hivev1.ClusterClaim{ObjectMeta: h.ObjectMeta(c.Name)})
	switch {
	case client.IgnoreNotFound(err) != nil:
		fmt.Fprintf(a.Stderr, "warning: claim %s could not be released: %v\n  release it with: %s\n",
			c.Name, h.ExplainAPIError(err), a.FormatCommand("claim release %s", c.Name))
	case err == nil:
		fmt.Fprintf(a.Stderr, "claim %s released\n", c.Name)
	}
}

// runWithKubeconfig runs the command with the claim's kubeconfig in a private folder.
func (a commands) runWithKubeconfig(ctx context.Context, h *base.Hub, c *hivev1.ClusterClaim, command []string, heard <-chan os.Signal) (err error) {
	cd, err := a.GetClaimCluster(ctx, h, c)
	if err != nil {
		return err
	}
	kubeconfig, err := h.ReadKubeconfig(ctx, cd)
	if err != nil {
		return err
	}
	folder, err := newRunFolder(runRecord{Hub: h.URL, Namespace: c.Namespace, Name: c.Name, UID: c.UID})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.removeAndUnlock()) }()
	path := filepath.Join(folder.dir, "kubeconfig")
	if err := os.WriteFile(path, kubeconfig, 0o600); err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	held, stop := a.contextWhileAssigned(ctx, h, c)
	defer stop()
	return a.runChildProcess(held, command, heard,
		"KUBECONFIG="+path, "HOTSPARE_CLAIM="+c.Name, "HOTSPARE_CLUSTER="+cd.Name)
}

// contextWhileAssigned is ctx for as long as the claim has its cluster. When it loses that, people are
// told. Call stop when the cluster is needed no more.
func (a commands) contextWhileAssigned(ctx context.Context, h *base.Hub, c *hivev1.ClusterClaim) (held context.Context, stop func()) {
	held, lose := context.WithCancel(ctx)
	ended := make(chan struct{})
	l := base.ObjectWaiter[*hivev1.ClusterClaim]{
		Hub: h, View: &base.ProgressView{W: io.Discard, Clock: a.Clock}, Object: &hivev1.ClusterClaim{ObjectMeta: h.ObjectMeta(c.Name)}, List: &hivev1.ClusterClaimList{},
		CheckDone: func(c *hivev1.ClusterClaim, exists bool) (bool, error) {
			return false, claimLossError(c, exists, a.Clock.Now())
		},
		HasAnswered: true, // it was there: a hub that does not answer now has only lost its way
	}
	go func() {
		defer close(ended)
		var lost base.PermanentError
		if err := l.WaitUntilDone(held); errors.As(err, &lost) {
			fmt.Fprintf(a.Stderr, "error: claim %s %v: the command is ended\n", c.Name, lost)
			lose()
		}
	}()
	return held, func() { lose(); <-ended }
}

// isClaimExpired reports whether the lifetime of a claim has ended.
func isClaimExpired(c *hivev1.ClusterClaim, now time.Time) bool {
	at := clusterstate.ClaimExpiryTime(c)
	return !at.IsZero() && !at.After(now)
}

// claimLossError says why a claim has no cluster any more; nil while it has.
func claimLossError(c *hivev1.ClusterClaim, exists bool, now time.Time) error {
	switch {
	case exists && c.DeletionTimestamp != nil && isClaimExpired(c, now):
		return fmt.Errorf("has come to the end of its lifetime, %s, and its cluster is being destroyed", base.FormatDuration(c.Status.Lifetime))
	case !exists || c.DeletionTimestamp != nil:
		return errors.New("was released by somebody else, and its cluster is being destroyed")
	case clusterstate.OfClaim(c) == clusterstate.Lost:
		return errors.New("has lost its cluster, which was deleted")
	default:
		return nil
	}
}
