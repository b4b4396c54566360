package pool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/condition"
)

const poolWatchLong = `Show a pool, its clusters and its claims as they change, until you press Ctrl-C. On a
terminal, the screen is updated; elsewhere, each change is printed as one line, or with
-o json as one object.

With --until-settled, the command exits when the pool has reached its desired state.`

// watchOptions are the flags of pool watch.
type watchOptions struct {
	untilSettled bool
	timeout      time.Duration
}

func (a commands) watchCommand() *cobra.Command {
	v := &watchOptions{}
	cmd := &cobra.Command{
		Use:               "watch POOL",
		Short:             "Show a pool as it changes",
		Long:              poolWatchLong,
		Example:           "  hotspare pool watch dev\n  hotspare pool watch dev --until-settled --timeout 10m",
		Args:              base.RequireOneName("pool"),
		ValidArgsFunction: a.CompletePools,
	}
	cmd.Flags().BoolVar(&v.untilSettled, "until-settled", false, "exit when the pool has reached its desired state")
	cmd.Flags().DurationVar(&v.timeout, "timeout", 0, "maximum time to watch (0: no limit)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if v.timeout < 0 {
			return base.UsageErrorFor(errors.New("--timeout must not be negative"), cmd)
		}
		return a.WithHub(func(ctx context.Context, h *base.Hub, args []string) error {
			if _, err := a.GetPool(ctx, h, args[0]); err != nil {
				return err
			}
			return a.runPoolWatch(ctx, h, args[0], v)
		})(cmd, args)
	}
	return cmd
}

func (a commands) runPoolWatch(ctx context.Context, h *base.Hub, name string, v *watchOptions) error {
	ctx, cancel := base.WithWaitTimeout(ctx, v.timeout)
	defer cancel()
	news := a.WatchForChanges(ctx, h, &hivev1.ClusterPoolList{}, &hivev1.ClusterClaimList{}, &hivev1.ClusterDeploymentList{})
	ticker := a.Clock.NewTicker(base.RedrawInterval)
	defer ticker.Stop()
	show := a.newChangePrinter()
	if a.IsTerminal(a.Stdout) && a.Flags.Output == "" {
		show = a.drawScreen
	}
	var plan string
	for {
		p, s, err := readPoolSnapshot(ctx, h, name)
		switch {
		case ctx.Err() != nil:
		case apierrors.IsNotFound(err) && !base.IsAPIMissing(err):
			return a.reportPoolGone(name, v)
		case err != nil:
			fmt.Fprintf(a.Stderr, "pool %s: %s; retrying\n", name, base.DescribeHubError(err))
		default:
			plan = p.Status.Plan
			if err := show(p, s); err != nil || v.untilSettled && isPoolSettled(p) {
				return err
			}
		}
		select {
		case <-news:
		case <-ticker.C():
		case <-ctx.Done():
			return a.watchEndError(context.Cause(ctx), name, plan, v)
		}
	}
}

// isPoolSettled reports whether the pool has reached the desired state of its current spec.
func isPoolSettled(p *hivev1.ClusterPool) bool {
	c := condition.Find(p.Status.Conditions, hivev1.PoolProgressing)
	return p.DeletionTimestamp == nil && p.Status.ObservedGeneration == p.Generation && c != nil && c.Reason == hivev1.ReasonSettled
}

func (a commands) reportPoolGone(name string, v *watchOptions) error {
	if v.untilSettled {
		return fmt.Errorf("pool %s was deleted", name)
	}
	fmt.Fprintf(a.Stderr, "pool %s was deleted\n", name)
	return nil
}

func (a commands) watchEndError(why error, name, plan string, v *watchOptions) error {
	if !errors.Is(why, base.ErrTimedOut) {
		return why
	}
	return &base.ExitError{Code: base.ExitTimedOut, Err: base.WithRemedy(fmt.Errorf("%w after %s: pool %s: %s", why, v.timeout, name, base.ValueOrNone(plan)),
		"see why: "+a.FormatCommand("explain pool %s", name))}
}

// readPoolSnapshot reads a pool with its claims and clusters.
func readPoolSnapshot(ctx context.Context, h *base.Hub, name string) (*hivev1.ClusterPool, *base.HubSnapshot, error) {
	var p hivev1.ClusterPool
	if err := h.Get(ctx, h.ObjectKey(name), &p); err != nil {
		return nil, nil, err
	}
	s, err := h.ReadSnapshot(ctx, h.Namespace)
	if err != nil {
		return nil, nil, err
	}
	return &p, s.SelectPool(&p), nil
}

const cursorHome, eraseBelow = "\x1b[H", "\x1b[J"

// drawScreen draws the pool over the previous screen.
func (a commands) drawScreen(p *hivev1.ClusterPool, s *base.HubSnapshot) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s   Press Ctrl-C to exit\n\n", a.Clock.Now().Format(time.TimeOnly))
	if err := a.writePoolDescription(&b, p, s); err != nil {
		return err
	}
	// Erase each line as it is written: clearing the screen first would make it flicker.
	_, err := io.WriteString(a.Stdout, cursorHome+strings.ReplaceAll(b.String(), "\n", "\x1b[K\n")+eraseBelow)
	return err
}

// stateChange is the change of one object. It is the output of pool watch -o json.
type stateChange struct {
	Time time.Time `json:"time"`
	Kind string    `json:"kind"`
	Name string    `json:"name"`
	// State is empty for a deleted object. Was is empty for a new object.
	State string `json:"state,omitempty"`
	Was   string `json:"was,omitempty"`
}

func (c stateChange) String() string {
	words := c.State
	switch {
	case c.State == "":
		words = "deleted"
	case c.Was != "":
		words += " (was " + c.Was + ")"
	}
	return fmt.Sprintf("%s   %s %s: %s", c.Time.Format(time.TimeOnly), c.Kind, c.Name, words)
}

// newChangePrinter returns a function that prints a line for each change since its last call.
func (a commands) newChangePrinter() func(*hivev1.ClusterPool, *base.HubSnapshot) error {
	var before []stateChange
	return func(p *hivev1.ClusterPool, s *base.HubSnapshot) error {
		now := listObjectStates(p, s, a.Clock.Now())
		for _, c := range diffStates(before, now, a.Clock.Now()) {
			if err := a.printStateChange(c); err != nil {
				return err
			}
		}
		before = now
		return nil
	}
}

func (a commands) printStateChange(c stateChange) error {
	if a.Flags.Output == "" || a.Flags.Output == base.AsTable {
		_, err := fmt.Fprintln(a.Stdout, c)
		return err
	}
	if a.Flags.Output != base.AsJSON {
		return base.NewUsageError(errors.New("pool watch supports only the formats table and json"))
	}
	raw, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	_, err = fmt.Fprintf(a.Stdout, "%s\n", raw)
	return err
}
