package cli

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
	"hotspare.io/hotspare/internal/condition"
)

const poolWatchLong = `Show a pool, its clusters and its claims as they change, until Ctrl-C. On a terminal
the screen is kept up to date; elsewhere each change is a line, with -o json an object.

With --until-settled it ends when nothing is left to do: the pool has what it should
have.`

// vigil is what pool watch is asked.
type vigil struct {
	untilSettled bool
	timeout      time.Duration
}

func (a *app) poolWatchCommand() *cobra.Command {
	v := &vigil{}
	cmd := &cobra.Command{
		Use:               "watch POOL",
		Short:             "Show a pool as it changes",
		Long:              poolWatchLong,
		Example:           "  hotspare pool watch dev\n  hotspare pool watch dev --until-settled --timeout 10m",
		Args:              one("pool"),
		ValidArgsFunction: a.completePools,
	}
	cmd.Flags().BoolVar(&v.untilSettled, "until-settled", false, "end when nothing is left to do")
	cmd.Flags().DurationVar(&v.timeout, "timeout", 0, "the longest to watch (0: for ever)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if v.timeout < 0 {
			return usage(errors.New("--timeout cannot be below 0"), cmd)
		}
		return a.on(func(ctx context.Context, h *hub, args []string) error {
			if _, err := a.pool(ctx, h, args[0]); err != nil {
				return err
			}
			return a.poolWatch(ctx, h, args[0], v)
		})(cmd, args)
	}
	return cmd
}

// tick is how often a screen is drawn anew though nothing changed: ages grow.
const tick = time.Second

func (a *app) poolWatch(ctx context.Context, h *hub, name string, v *vigil) error {
	ctx, cancel := within(ctx, v.timeout)
	defer cancel()
	news := a.news(ctx, h, &hivev1.ClusterPoolList{}, &hivev1.ClusterClaimList{}, &hivev1.ClusterDeploymentList{})
	ticker := a.Clock.NewTicker(tick)
	defer ticker.Stop()
	show := a.changes()
	if a.IsTerminal(a.Stdout) && a.flags.output == "" {
		show = a.screen
	}
	var plan string
	for {
		p, s, err := h.poolScene(ctx, name)
		switch {
		case ctx.Err() != nil:
		case apierrors.IsNotFound(err) && !noSuchAPI(err):
			return a.poolGone(name, v)
		case err != nil:
			fmt.Fprintf(a.Stderr, "pool %s: %s; trying again\n", name, trouble(err))
		default:
			plan = p.Status.Plan
			if err := show(p, s); err != nil || v.untilSettled && settled(p) {
				return err
			}
		}
		select {
		case <-news:
		case <-ticker.C():
		case <-ctx.Done():
			return a.watchEnded(context.Cause(ctx), name, plan, v)
		}
	}
}

// settled reports whether nothing is left to do for the pool as it is now.
func settled(p *hivev1.ClusterPool) bool {
	c := condition.Find(p.Status.Conditions, hivev1.PoolProgressing)
	return p.DeletionTimestamp == nil && p.Status.ObservedGeneration == p.Generation && c != nil && c.Reason == hivev1.ReasonSettled
}

func (a *app) poolGone(name string, v *vigil) error {
	if v.untilSettled {
		return fmt.Errorf("pool %s is gone", name)
	}
	fmt.Fprintf(a.Stderr, "pool %s is gone\n", name)
	return nil
}

func (a *app) watchEnded(why error, name, plan string, v *vigil) error {
	if !errors.Is(why, errTimedOut) {
		return why
	}
	return &exit{exitTimedOut, advise(fmt.Errorf("%w after %s: pool %s: %s", why, v.timeout, name, orNone(plan)),
		"see why: "+a.next("explain pool %s", name))}
}

// poolScene reads a pool with its claims and clusters.
func (h *hub) poolScene(ctx context.Context, name string) (*hivev1.ClusterPool, *scene, error) {
	var p hivev1.ClusterPool
	if err := h.Get(ctx, h.key(name), &p); err != nil {
		return nil, nil, err
	}
	s, err := h.see(ctx, h.namespace)
	if err != nil {
		return nil, nil, err
	}
	return &p, s.of(&p), nil
}

const home, eraseBelow = "\x1b[H", "\x1b[J"

// screen draws a pool where the last one was drawn.
func (a *app) screen(p *hivev1.ClusterPool, s *scene) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s   Ctrl-C ends this\n\n", a.Clock.Now().Format(time.TimeOnly))
	if err := a.describePool(&b, p, s); err != nil {
		return err
	}
	// Each line is erased as it is written: to clear the screen first would make it flicker.
	_, err := io.WriteString(a.Stdout, home+strings.ReplaceAll(b.String(), "\n", "\x1b[K\n")+eraseBelow)
	return err
}

// change is one thing that is not as it was. It is what -o json prints.
type change struct {
	Time time.Time `json:"time"`
	Kind string    `json:"kind"`
	Name string    `json:"name"`
	// State is empty when it is gone, Was when it is new.
	State string `json:"state,omitempty"`
	Was   string `json:"was,omitempty"`
}

func (c change) String() string {
	words := c.State
	switch {
	case c.State == "":
		words = "gone"
	case c.Was != "":
		words += " (was " + c.Was + ")"
	}
	return fmt.Sprintf("%s   %s %s: %s", c.Time.Format(time.TimeOnly), c.Kind, c.Name, words)
}

// changes returns what prints a line for each thing that changed since it was last called.
func (a *app) changes() func(*hivev1.ClusterPool, *scene) error {
	var before []change
	return func(p *hivev1.ClusterPool, s *scene) error {
		now := statesOf(p, s, a.Clock.Now())
		for _, c := range differences(before, now, a.Clock.Now()) {
			if err := a.writeChange(c); err != nil {
				return err
			}
		}
		before = now
		return nil
	}
}

func (a *app) writeChange(c change) error {
	if a.flags.output == "" || a.flags.output == asTable {
		_, err := fmt.Fprintln(a.Stdout, c)
		return err
	}
	if a.flags.output != asJSON {
		return Usage(errors.New("pool watch prints lines, or with -o json objects"))
	}
	raw, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	_, err = fmt.Fprintf(a.Stdout, "%s\n", raw)
	return err
}
