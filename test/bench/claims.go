package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// quantile is of sorted durations.
func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

func sortedValues(m map[string]time.Duration) []time.Duration {
	out := make([]time.Duration, 0, len(m))
	for _, d := range m {
		out = append(out, d)
	}
	slices.Sort(out)
	return out
}

// rate is how many claims a second the steady load has, span how long it lasts.
const (
	rate = 50
	span = 8 * time.Second
)

// steady measures the waits of claims that come one after the other, fast.
func (b *bench) steady(ctx context.Context, clusters int) ([]row, error) {
	if err := b.fake(ctx, "fake", clusters); err != nil {
		return nil, err
	}
	names := make([]string, int(rate*span.Seconds()))
	for i := range names {
		names[i] = fmt.Sprintf("steady-%d", i)
	}
	if err := b.calm(ctx); err != nil {
		return nil, err
	}
	tick := time.NewTicker(time.Second / rate)
	defer tick.Stop()
	waits, err := b.claimAll(ctx, "fake", names, writers, tick.C)
	if err != nil {
		return nil, err
	}
	each := sortedValues(waits)
	return []row{{
		fmt.Sprintf("%d claims a second, wait: median, 99th percentile", rate),
		millis(quantile(each, 0.5)) + ", " + millis(quantile(each, 0.99)), "99th < 250 ms",
	}}, nil
}

// sizes measures single claims on pools of several sizes: the wait should not
// depend on it.
func (b *bench) sizes(ctx context.Context) ([]row, error) {
	var rows []row
	for _, n := range []int{50, 200, 1000} {
		pool := fmt.Sprintf("fake-%d", n)
		if n == 1000 {
			pool = "fake" // the burst's, if there was one
		}
		if err := b.fake(ctx, pool, n); err != nil {
			return nil, err
		}
		more, err := b.single(ctx, pool, n)
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	return b.idle(ctx, rows)
}

// single measures claims that come one at a time, and what each costs the API.
func (b *bench) single(ctx context.Context, pool string, size int) ([]row, error) {
	const n = 15
	waits := map[string]time.Duration{}
	var cost requests
	if err := b.calm(ctx); err != nil {
		return nil, err
	}
	for i := range n {
		if err := b.quiet(ctx, pool, size); err != nil {
			return nil, err
		}
		before, err := b.requests(ctx)
		if err != nil {
			return nil, err
		}
		name := fmt.Sprintf("single-%s-%d", pool, i)
		seen, err := b.claimAll(ctx, pool, []string{name}, 1, nil)
		if err != nil {
			return nil, err
		}
		waits[name] = seen[name]
		if i > 0 {
			continue
		}
		if err := b.quiet(ctx, pool, size); err != nil {
			return nil, err
		}
		after, err := b.requests(ctx)
		if err != nil {
			return nil, err
		}
		cost = after.since(before)
	}
	each := sortedValues(waits)
	return []row{
		{fmt.Sprintf("one claim, pool of %d, to ClusterRunning: median, worst of %d", size, n), millis(quantile(each, 0.5)) + ", " + millis(each[len(each)-1]), "25 ms"},
		{"… requests, with the replacement's", cost.per(1), ""},
	}, nil
}

// calm waits until nothing has been written for five seconds: events, which have a
// limit of their own, follow a while after what they tell.
func (b *bench) calm(ctx context.Context) error {
	before, err := b.requests(ctx)
	if err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(5 * time.Second):
		}
		after, err := b.requests(ctx)
		if err != nil || after.since(before).writes() == 0 {
			return err
		}
		before = after
	}
}

// idle counts what an idle system asks of the API in a minute.
func (b *bench) idle(ctx context.Context, rows []row) ([]row, error) {
	if err := b.calm(ctx); err != nil {
		return nil, err
	}
	before, err := b.requests(ctx)
	if err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-time.After(time.Minute):
	}
	after, err := b.requests(ctx)
	if err != nil {
		return nil, err
	}
	idle := after.since(before)
	return append(rows,
		row{"writes in a minute when idle", fmt.Sprint(idle.writes()), "0"},
		row{"… all requests but watches", idle.per(1), ""}), nil
}

// fake makes a pool of so many running fake clusters, if there is none, and waits until it is full.
func (b *bench) fake(ctx context.Context, name string, n int) error {
	var p hivev1.ClusterPool
	err := b.hub.Get(ctx, client.ObjectKey{Namespace: space, Name: name}, &p)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err != nil {
		if err := b.hotspare(ctx, "pool", "create", name, "--fake", "-n", space, "--size", fmt.Sprint(n), "--running", fmt.Sprint(n)); err != nil {
			return err
		}
	}
	return b.quiet(ctx, name, n)
}

// quiet waits until a pool is full, and a moment longer: what follows is not to
// be measured with what comes next.
func (b *bench) quiet(ctx context.Context, pool string, n int) error {
	if err := b.untilReady(ctx, pool, int32(n)); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(500 * time.Millisecond):
		return nil
	}
}
