package main

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
)

const (
	fleetPools = 100
	poolSize   = 100
)

// fleet measures many pools: what ten thousand clusters take in memory, how long
// a restart takes until all is looked at, and what it asks when idle.
func (b *bench) fleet(ctx context.Context) ([]row, error) {
	began := time.Now()
	for i := range fleetPools {
		if err := b.hotspare(ctx, "pool", "create", fmt.Sprintf("fleet-%d", i), "--fake", "-n", space, "--size", fmt.Sprint(poolSize)); err != nil {
			return nil, err
		}
	}
	if err := b.untilSettled(ctx); err != nil {
		return nil, err
	}
	what := fmt.Sprintf("%d fake clusters in %d pools", fleetPools*poolSize, fleetPools)
	rows := []row{{what + ", made in", seconds(time.Since(began)), ""}}
	pid, err := b.pid()
	if err != nil {
		return nil, err
	}
	full, err := usage(pid)
	if err != nil {
		return nil, err
	}
	rows = append(rows, row{"… memory of the hub", full.String(), ""})
	if rows, err = b.idle(ctx, rows); err != nil {
		return nil, err
	}
	if err := b.down(ctx); err != nil {
		return nil, err
	}
	began = time.Now()
	if _, err := b.start(ctx); err != nil {
		return nil, err
	}
	seen, err := b.claimAll(ctx, "fleet-7", []string{"after-restart"}, 1, nil)
	if err != nil {
		return nil, err
	}
	return append(rows, row{
		"… from a restart to the first claim served",
		fmt.Sprintf("%s, the claim %s", seconds(time.Since(began)), seconds(seen["after-restart"])), "",
	}), nil
}

// untilSettled waits until all pools say that they are.
func (b *bench) untilSettled(ctx context.Context) error {
	return until(ctx, func(ctx context.Context) (bool, error) {
		var list hivev1.ClusterPoolList
		if err := b.hub.List(ctx, &list, client.InNamespace(space)); err != nil {
			return false, err
		}
		for _, p := range list.Items {
			c := condition.Find(p.Status.Conditions, hivev1.PoolProgressing)
			if p.Status.Size != p.Spec.Size || c == nil || c.Reason != hivev1.ReasonSettled {
				return false, nil
			}
		}
		return true, nil
	})
}
