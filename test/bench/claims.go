package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// quantileOf returns a quantile of sorted durations.
func quantileOf(sorted []time.Duration, q float64) time.Duration {
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

func sortedDurations(m map[string]time.Duration) []time.Duration {
	out := make([]time.Duration, 0, len(m))
	for _, d := range m {
		out = append(out, d)
	}
	slices.Sort(out)
	return out
}

// claimsPerSecond is the rate of the steady load, span its duration.
const (
	claimsPerSecond = 50
	steadyDuration  = 8 * time.Second
)

// measureSteadyLoad measures how long claims wait that arrive in quick succession.
func (b *bench) measureSteadyLoad(ctx context.Context, clusters int) ([]row, error) {
	if err := b.ensureFakePool(ctx, "fake", clusters); err != nil {
		return nil, err
	}
	n := int(claimsPerSecond * steadyDuration.Seconds())
	var rounds []round
	for i := range b.rounds {
		claims := burst{pools: []string{"fake"}, claims: n}.newClaims(fmt.Sprintf("steady-%d", i))
		one, err := b.measureSteadyRound(ctx, claims)
		if err != nil {
			return nil, err
		}
		rounds = append(rounds, one)
		if err := b.releaseClaims(ctx, claims); err != nil {
			return nil, err
		}
		if err := b.waitForFullPool(ctx, "fake", clusters); err != nil {
			return nil, err
		}
	}
	millis := func(quantile float64) func(round) float64 {
		return func(r round) float64 { return quantileOf(r.waits, quantile).Seconds() * 1000 }
	}
	return []row{
		{fmt.Sprintf("%d claims a second, wait: median", claimsPerSecond), formatRange(rounds, "%.0f ms", millis(0.5)), ""},
		{"… 99th percentile", formatRange(rounds, "%.0f ms", millis(0.99)), "100 ms"},
		{"… requests per claim, its creation counted", rounds[0].served.asked.formatRequestsPer(n), ""},
		{"… processor time of the hub per claim", formatRange(rounds, "%.1f ms", func(r round) float64 { return r.served.millisPer(n) }), ""},
	}, nil
}

// measureSteadyRound measures the waits of claims that are created one after the other.
func (b *bench) measureSteadyRound(ctx context.Context, claims []*hivev1.ClusterClaim) (round, error) {
	if err := b.waitForNoWrites(ctx); err != nil {
		return round{}, err
	}
	tick := time.NewTicker(time.Second / claimsPerSecond)
	defer tick.Stop()
	var r round
	var err error
	r.served, err = b.measureCost(ctx, func() error {
		waits, err := b.createAndTimeClaims(ctx, claims, writers, tick.C)
		r.waits = sortedDurations(waits)
		return err
	})
	return r, err
}

// measurePoolSizes measures single claims on pools of several sizes: the wait should not depend on
// the size.
func (b *bench) measurePoolSizes(ctx context.Context, clusters int) ([]row, error) {
	var rows []row
	for _, n := range slices.Compact(slices.Sorted(slices.Values([]int{50, 200, clusters}))) {
		pool := fmt.Sprintf("fake-%d", n)
		if n == clusters {
			pool = "fake" // the pool of the burst, if it was measured
		}
		if err := b.ensureFakePool(ctx, pool, n); err != nil {
			return nil, err
		}
		more, err := b.measureSingleClaims(ctx, pool, n)
		if err != nil {
			return rows, err
		}
		rows = append(rows, more...)
	}
	return b.measureIdleRequests(ctx, rows)
}

// measureSingleClaims measures claims that arrive one at a time, and what each costs the API.
func (b *bench) measureSingleClaims(ctx context.Context, pool string, size int) ([]row, error) {
	const n = 15
	waits := map[string]time.Duration{}
	var cost requestCounts
	if err := b.waitForNoWrites(ctx); err != nil {
		return nil, err
	}
	for i := range n {
		if err := b.waitForFullPool(ctx, pool, size); err != nil {
			return nil, err
		}
		before, err := b.readRequests(ctx)
		if err != nil {
			return nil, err
		}
		name := fmt.Sprintf("single-%s-%d", pool, i)
		seen, err := b.createAndTimeClaims(ctx, []*hivev1.ClusterClaim{newClaim(pool, name)}, 1, nil)
		if err != nil {
			return nil, err
		}
		waits[name] = seen[name]
		if i > 0 {
			continue
		}
		if err := b.waitForFullPool(ctx, pool, size); err != nil {
			return nil, err
		}
		after, err := b.readRequests(ctx)
		if err != nil {
			return nil, err
		}
		cost = after.countSince(before)
	}
	each := sortedDurations(waits)
	return []row{
		{fmt.Sprintf("one claim, pool of %d, to ClusterRunning: median, worst of %d", size, n), formatMillis(quantileOf(each, 0.5)) + ", " + formatMillis(each[len(each)-1]), "20 ms"},
		{"… requests, with the replacement's", cost.formatRequestsPer(1), ""},
	}, nil
}

// waitForNoWrites waits until nothing has been written for six seconds: events are rate-limited
// separately and arrive some time after what they report, and namespaces are deleted five seconds after their clusters.
func (b *bench) waitForNoWrites(ctx context.Context) error {
	before, err := b.readRequests(ctx)
	if err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(6 * time.Second):
		}
		after, err := b.readRequests(ctx)
		if err != nil || after.countSince(before).countWrites() == 0 {
			return err
		}
		before = after
	}
}

// measureIdleRequests counts the API requests of an idle system in a minute.
func (b *bench) measureIdleRequests(ctx context.Context, rows []row) ([]row, error) {
	if err := b.waitForNoWrites(ctx); err != nil {
		return nil, err
	}
	before, err := b.readRequests(ctx)
	if err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-time.After(time.Minute):
	}
	after, err := b.readRequests(ctx)
	if err != nil {
		return nil, err
	}
	idle := after.countSince(before)
	return append(rows,
		row{"writes in a minute when idle", fmt.Sprint(idle.countWrites()), "0"},
		row{"… all requests but watches", idle.formatRequestsPer(1), ""}), nil
}

// ensureFakePool creates a pool of n running fake clusters, if there is none, and waits until it is
// full.
func (b *bench) ensureFakePool(ctx context.Context, name string, n int) error {
	var p hivev1.ClusterPool
	err := b.hub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &p)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err != nil {
		if err := b.runHotspare(ctx, "pool", "create", name, "--fake", "-n", namespace, "--size", fmt.Sprint(n), "--running", fmt.Sprint(n)); err != nil {
			return err
		}
	}
	return b.waitForFullPool(ctx, name, n)
}

// waitForFullPool waits until a pool is full, and a moment longer, so that trailing work does not
// affect the next measurement.
func (b *bench) waitForFullPool(ctx context.Context, pool string, n int) error {
	if err := b.waitForReady(ctx, pool, int32(n)); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(500 * time.Millisecond):
		return nil
	}
}
