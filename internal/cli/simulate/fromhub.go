package simulate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/pool"
	"hotspare.io/hotspare/internal/simulate"
	"hotspare.io/hotspare/internal/sizing/policy"
	"hotspare.io/hotspare/internal/sizing/record"
)

// runFromHub replays the record that the hub has of a pool.
func (a commands) runFromHub(cmd *cobra.Command, q *options) error {
	return a.WithHub(func(ctx context.Context, h *base.Hub, _ []string) error {
		pool := base.StripKindPrefix(q.fromHub)
		r, err := readRecord(ctx, h, pool, a.Clock.Now())
		if err != nil {
			return err
		}
		measured := r.Measured()
		for _, d := range []struct {
			flag string
			to   *string
			is   time.Duration
		}{
			{"resume", &q.resume, measured.Resume},
			{"resume-freeze", &q.resumeFreeze, measured.Shallow.Freeze},
			{"resume-suspend", &q.resumeSuspend, measured.Shallow.Suspend},
			{"install", &q.install, measured.Install},
		} {
			if !cmd.Flags().Changed(d.flag) && d.is > 0 {
				*d.to = d.is.String()
			}
		}
		if err := errors.Join(usePool(ctx, h, cmd, q, pool), usePoolPolicy(ctx, h, cmd, q, pool)); err != nil {
			return err
		}
		q.trace = "pool " + h.Namespace + "/" + pool
		return a.run(q, func() (simulate.Trace, error) { return simulate.NewTrace(&r.Demand) })
	})(cmd, nil)
}

// usePool makes the limits of a pool, and the ladder of depths at which its clusters sleep, the values of flags that are not
// set. A pool that does not exist any more has none.
func usePool(ctx context.Context, h *base.Hub, cmd *cobra.Command, q *options, name string) error {
	var p hivev1.ClusterPool
	if err := h.Get(ctx, h.ObjectKey(name), &p); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("reading pool %s: %w", name, err)
	}
	if most := p.Spec.MaxSize; most != nil && !cmd.Flags().Changed("max-size") {
		q.maxSize = int(*most)
	}
	if most := p.Spec.MaxConcurrent; most != nil && !cmd.Flags().Changed("max-concurrent") {
		q.maxConcurrent = int(*most)
	}
	if text := p.Annotations[hivev1.AnnotationSleepLadder]; text != "" && !cmd.Flags().Changed("sleep") {
		if _, err := pool.ParseLadder(text); err != nil {
			return fmt.Errorf("annotation %s of pool %s cannot be used: %w", hivev1.AnnotationSleepLadder, name, err)
		}
		q.sleep = text
	}
	return nil
}

// usePoolPolicy makes the PoolPolicy of a pool what auto means, and its objective, time zone and prices the values of flags that
// are not set. A flag that is set replaces them in auto, too. A pool without a PoolPolicy changes nothing.
func usePoolPolicy(ctx context.Context, h *base.Hub, cmd *cobra.Command, q *options, pool string) error {
	var p v1alpha1.PoolPolicy
	if err := h.Get(ctx, h.ObjectKey(pool), &p); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("reading PoolPolicy %s: %w", pool, err)
	}
	parsed, faults := policy.Parse(p.Spec, policy.HubDefaults.WithEstimate(p.Status.EstimatedPrices))
	if len(faults) > 0 {
		return fmt.Errorf("PoolPolicy %s cannot be used: %w", pool, joinFaults(faults))
	}
	own, changed := policyFile{PoolPolicySpec: p.Spec}, cmd.Flags().Changed
	if changed("at-once") || changed("max-wait") {
		own.Objective = nil
	} else {
		q.atOnce, q.maxWait = math.Round(1e8*parsed.Objective.Share)/1e6, parsed.Objective.MaxWait
	}
	if changed("time-zone") {
		own.TimeZone = ""
	} else {
		q.zone = parsed.Zone.String()
	}
	if changed("prices") {
		own.Prices = nil
	} else {
		q.ownPrices = parsed.Limits.Prices
	}
	q.own = &own
	return nil
}

// readRecord reads the record of claims of a pool, which has some.
func readRecord(ctx context.Context, h *base.Hub, pool string, now time.Time) (*record.Record, error) {
	r, err := base.ReadRecord(ctx, h, h.ObjectKey(pool), now)
	if err != nil {
		return nil, err
	}
	if r.Demand.Claims() == 0 {
		return nil, fmt.Errorf("no claims on pool %s have been recorded since %s: repeat the command after some claims", pool, r.Since.UTC().Format(time.RFC3339))
	}
	return r, nil
}
