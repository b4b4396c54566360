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

// measureFleet measures many pools: the memory that ten thousand clusters take, how long a restart
// takes until everything is reconciled, and the requests when idle.
func (b *bench) measureFleet(ctx context.Context) ([]row, error) {
	began := time.Now()
	for i := range fleetPools {
		if err := b.runHotspare(ctx, "pool", "create", fmt.Sprintf("fleet-%d", i), "--fake", "-n", namespace, "--size", fmt.Sprint(poolSize)); err != nil {
			return nil, err
		}
	}
	if err := b.waitForSettled(ctx); err != nil {
		return nil, err
	}
	what := fmt.Sprintf("%d fake clusters in %d pools", fleetPools*poolSize, fleetPools)
	rows := []row{{what + ", made in", formatSeconds(time.Since(began)), ""}}
	pid, err := b.readHubPID()
	if err != nil {
		return nil, err
	}
	full, err := readMemoryUsage(pid)
	if err != nil {
		return nil, err
	}
	rows = append(rows, row{"… memory of the hub", full.String(), ""})
	if rows, err = b.measureIdleRequests(ctx, rows); err != nil {
		return nil, err
	}
	if err := b.stopHub(ctx); err != nil {
		return nil, err
	}
	began = time.Now()
	if _, err := b.measureStart(ctx); err != nil {
		return nil, err
	}
	seen, err := b.createAndTimeClaims(ctx, []*hivev1.ClusterClaim{newClaim("fleet-7", "after-restart")}, 1, nil)
	if err != nil {
		return nil, err
	}
	return append(rows, row{
		"… from a restart to the first claim served",
		fmt.Sprintf("%s, the claim %s", formatSeconds(time.Since(began)), formatSeconds(seen["after-restart"])), "",
	}), nil
}

// waitForSettled waits until all pools report that they are settled.
func (b *bench) waitForSettled(ctx context.Context) error {
	return pollUntil(ctx, func(ctx context.Context) (bool, error) {
		var list hivev1.ClusterPoolList
		if err := b.hub.List(ctx, &list, client.InNamespace(namespace)); err != nil {
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
