package claim

import (
	"cmp"
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
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/explain/clusterstate"
)

// runClaimLifetime is the default lifetime of a claim that claim run creates.
const runClaimLifetime = 4 * time.Hour

// runHeartbeatTimeout is the default timeout of the heartbeat of such a claim. If this process is
// killed, the hub releases the claim after this time.
const runHeartbeatTimeout = 90 * time.Second

// releaseTimeout is the maximum time for releasing the claim.
const releaseTimeout = 30 * time.Second

func (a commands) runCommand() *cobra.Command {
	o := &claimOptions{}
	cmd := &cobra.Command{
		Use:   "run POOL -- COMMAND...",
		Short: "Run a command with a claimed cluster, or with several, then release them",
		Long: `Claim a cluster, run a command with it, and release the claim when the command
exits, whether it succeeds or fails. SIGINT, SIGTERM and SIGHUP are forwarded to the
command.

KUBECONFIG is set to a private kubeconfig file, which is deleted afterwards.
HOTSPARE_CLAIM and HOTSPARE_CLUSTER are set to the names of the claim and the cluster.
The exit code is that of the command. If the claim expires or is released before the
command exits, hotspare reports it and sends SIGTERM to the command, because its
cluster is being destroyed.

With --count, several clusters are claimed: all at once, or none. KUBECONFIG then has a
context for each cluster, with the name of its claim, and HOTSPARE_CLAIMS is set to the
names of the claims. The first one is the current context.

With --diagnose-on-failure, the hub writes a bundle of diagnostics of the cluster before it
destroys the cluster, unless the command succeeds. It also does so if this process is
killed. The bundle is for the administrator of the hub.

If this process is killed (SIGKILL), the kernel sends SIGTERM to the command on Linux.
The hub releases the claim when it has received no heartbeat from this process for the
duration of --heartbeat-timeout. The next claim run of the same user on this machine
deletes the file and, on the same hub, also releases the claim.`,
		Example: `  hotspare claim run dev -- make e2e
  hotspare claim run dev --diagnose-on-failure -- make e2e
  hotspare claim run dev --timeout 10m -- sh -c 'kubectl get nodes'
  hotspare claim run dev --count 2 -- sh -c 'for c in $HOTSPARE_CLAIMS; do kubectl --context "$c" get nodes; done'`,
		Args: requirePoolAndCommand,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return a.CompletePools(cmd, args, typed)
		},
	}
	cmd.Flags().IntVar(&o.set.count, "count", 1, "number of clusters to claim, all at once or none")
	cmd.Flags().DurationVar(&o.lifetime, "lifetime", runClaimLifetime, "release the claim automatically after this time")
	cmd.Flags().DurationVar(&o.heartbeatTimeout, "heartbeat-timeout", runHeartbeatTimeout, "release the claim if this process sends no heartbeat for this time (0: no heartbeat)")
	cmd.Flags().BoolVar(&o.diagnoseOnFailure, "diagnose-on-failure", false,
		"have the hub write a bundle of diagnostics of the cluster before it destroys the cluster, unless the command succeeds")
	o.addPriorityFlag(cmd.Flags())
	cmd.Flags().DurationVar(&o.timeout, "timeout", base.DefaultTimeout, "maximum time to wait for the cluster (0: no limit)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.set.allOrNone = o.set.count > 1
		if err := cmp.Or(o.validate(), o.set.validate(args[:1])); err != nil {
			return base.UsageErrorFor(err, cmd)
		}
		if _, err := exec.LookPath(args[1]); err != nil { // check before claiming a cluster
			return &base.ExitError{Code: base.ExitNotFound, Err: err}
		}
		return a.WithHub(func(ctx context.Context, h *base.Hub, _ []string) error {
			if o.set.wantsSet() {
				return a.runWithClaimSet(ctx, h, base.StripKindPrefix(args[0]), args[1:], o)
			}
			return a.runWithClaim(ctx, h, base.StripKindPrefix(args[0]), args[1:], o)
		})(cmd, args[:1])
	}
	return cmd
}

// requirePoolAndCommand accepts POOL -- COMMAND....
func requirePoolAndCommand(cmd *cobra.Command, args []string) error {
	switch dash := cmd.ArgsLenAtDash(); {
	case dash == 1 && len(args) > 1:
		return nil
	case dash < 0 || len(args) == dash:
		return errors.New("specify the command to run after --, for example: hotspare claim run POOL -- make test")
	default:
		return errors.New("specify one pool before --")
	}
}

// runWithClaim claims a cluster, runs the command with it and releases the claim. It handles
// signals until the claim is released, so that a second signal does not leave the claim behind.
func (a commands) runWithClaim(ctx context.Context, h *base.Hub, poolName string, command []string, o *claimOptions) error {
	c, err := a.prepareClaim(ctx, h, poolName, o)
	if err != nil {
		return err
	}
	declareHeartbeat(ctx, h, claimedOne(c), o.heartbeatTimeout)
	a.cleanUpKilledRuns(ctx, h)
	heard := make(chan os.Signal, 8)
	signal.Notify(heard, base.StopSignals...)
	defer signal.Stop(heard)

	defer a.releaseClaimed(ctx, h, claimedOne(c)) // deferred before createClaim: an interrupted request may still create the claim
	if err := a.createClaim(ctx, h, c); err != nil {
		return err
	}
	defer a.startHeartbeat(ctx, h, claimedOne(c), o.heartbeatTimeout)()
	c, took, err := a.waitForClaim(ctx, h, c.Name, o.timeout)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.Stderr, "claim %s has cluster %s after %s\n", c.Name, c.Spec.Namespace, took)
	if err := a.runWithKubeconfig(ctx, h, c, command, heard); err != nil {
		return err
	}
	if o.diagnoseOnFailure {
		a.withdrawDiagnosis(ctx, h, c)
	}
	return nil
}

// withdrawDiagnosis withdraws the request for a bundle at the release of a claim whose command has succeeded. If it
// cannot, the hub writes a bundle that nobody needs.
func (a commands) withdrawDiagnosis(ctx context.Context, h *base.Hub, c *hivev1.ClusterClaim) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	if err := h.Patch(ctx, c.DeepCopy(), diagnosePatch(c.UID, false)); client.IgnoreNotFound(err) != nil {
		fmt.Fprintf(a.Stderr, "warning: the hub writes a bundle of diagnostics of claim %s although the command has succeeded: %v\n", c.Name, h.ExplainAPIError(err))
	}
}

// runWithKubeconfig runs the command with the claim's kubeconfig in a private folder.
func (a commands) runWithKubeconfig(ctx context.Context, h *base.Hub, c *hivev1.ClusterClaim, command []string, heard <-chan os.Signal) error {
	cd, err := a.GetClaimCluster(ctx, h, c)
	if err != nil {
		return err
	}
	kubeconfig, err := h.ReadKubeconfig(ctx, cd)
	if err != nil {
		return err
	}
	held, stop := a.contextWhileAssigned(ctx, h, c)
	defer stop()
	record := runRecord{Hub: h.URL, Namespace: c.Namespace, Name: c.Name, UID: c.UID}
	return a.runInPrivateFolder(held, record, kubeconfig, command, heard, "HOTSPARE_CLAIM="+c.Name, "HOTSPARE_CLUSTER="+cd.Name)
}

// runInPrivateFolder runs the command with a kubeconfig in a private folder, which is deleted afterwards.
func (a commands) runInPrivateFolder(ctx context.Context, record runRecord, kubeconfig []byte, command []string, heard <-chan os.Signal, env ...string) (err error) {
	folder, err := newRunFolder(record)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.removeAndUnlock()) }()
	path := filepath.Join(folder.dir, "kubeconfig")
	if err := os.WriteFile(path, kubeconfig, 0o600); err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	return a.runChildProcess(ctx, command, heard, append(env, "KUBECONFIG="+path)...)
}

// contextWhileAssigned returns a context that is canceled with ctx or when the claim loses its
// cluster, which it reports to standard error. Call stop when the cluster is no longer needed.
func (a commands) contextWhileAssigned(ctx context.Context, h *base.Hub, c *hivev1.ClusterClaim) (held context.Context, stop func()) {
	l := base.ObjectWaiter[*hivev1.ClusterClaim]{
		Hub: h, View: a.newSilentView(), Object: &hivev1.ClusterClaim{ObjectMeta: h.ObjectMeta(c.Name)}, List: &hivev1.ClusterClaimList{},
		CheckDone: func(c *hivev1.ClusterClaim, exists bool) (bool, error) {
			return false, claimLossError(c, exists, a.Clock.Now())
		},
		HasAnswered: true, // the claim was read before, so retry every error
	}
	return a.contextUntilLoss(ctx, "claim "+c.Name, l.WaitUntilDone)
}

func (a commands) newSilentView() *base.ProgressView {
	return &base.ProgressView{W: io.Discard, Clock: a.Clock}
}

// contextUntilLoss returns a context that is canceled with ctx, or when wait returns a permanent error: why a claim has lost its
// cluster, which it reports to standard error. stop ends the wait.
func (a commands) contextUntilLoss(ctx context.Context, what string, wait func(context.Context) error) (held context.Context, stop func()) {
	held, lose := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var lost base.PermanentError
		if err := wait(held); errors.As(err, &lost) {
			fmt.Fprintf(a.Stderr, "error: %s %v; stopping the command\n", what, lost)
			lose()
		}
	}()
	return held, func() { lose(); <-ended }
}

// isClaimExpired reports whether the lifetime of a claim is over.
func isClaimExpired(c *hivev1.ClusterClaim, now time.Time) bool {
	at := clusterstate.ClaimExpiryTime(c)
	return !at.IsZero() && !at.After(now)
}

// claimLossError explains why a claim has lost its cluster; nil while it has one.
func claimLossError(c *hivev1.ClusterClaim, exists bool, now time.Time) error {
	switch {
	case exists && c.DeletionTimestamp != nil && condition.IsTrue(c.Status.Conditions, hivev1.ClaimHeartbeatMissing):
		return fmt.Errorf("was released because the hub received no heartbeat for %s, and its cluster is being destroyed", c.Annotations[hivev1.AnnotationHeartbeatTimeout])
	case exists && c.DeletionTimestamp != nil && isClaimExpired(c, now):
		return fmt.Errorf("has expired after its lifetime of %s and its cluster is being destroyed", base.FormatDuration(c.Status.Lifetime))
	case !exists || c.DeletionTimestamp != nil:
		return errors.New("was released by another user or process and its cluster is being destroyed")
	case clusterstate.OfClaim(c) == clusterstate.Lost:
		return errors.New("has lost its cluster: the cluster was deleted")
	default:
		return nil
	}
}
