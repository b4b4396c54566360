package main

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// holdFinalizer is the finalizer of what the bare loop deletes. No controller has it.
const holdFinalizer = "bench.hotspare.io/hold"

// measureRelease measures many claims that are deleted at the same time, until they and their clusters are gone, and
// compares them with a bare loop of the four writes that this takes: two deletions, and two removals of a finalizer.
func (b *bench) measureRelease(ctx context.Context, clusters, claims int) ([]row, error) {
	if err := b.ensureFakePool(ctx, "fake", clusters); err != nil {
		return nil, err
	}
	pairs, err := b.createClaimPairs(ctx, "release-bare", claims, holdFinalizer)
	if err != nil {
		return nil, err
	}
	if err := b.waitForNoWrites(ctx); err != nil {
		return nil, err
	}
	bare, err := b.measureCost(ctx, func() error { return b.deleteClaimPairs(ctx, pairs) })
	if err != nil {
		return nil, err
	}
	held := burst{pools: []string{"fake"}, claims: claims}.newClaims("release")
	if _, err := b.createAndTimeClaims(ctx, held, writers, nil); err != nil {
		return nil, err
	}
	if err := b.waitForFullPool(ctx, "fake", clusters); err != nil {
		return nil, err
	}
	if err := b.waitForNoWrites(ctx); err != nil {
		return nil, err
	}
	released, err := b.measureCost(ctx, func() error {
		return b.releaseClaims(ctx, held)
	})
	if err != nil {
		return nil, err
	}
	return []row{
		{
			fmt.Sprintf("release of %d claims, until they and their clusters are gone", claims),
			fmt.Sprintf("%s, %.0f claims/s", formatSeconds(released.took), released.ratePerSecond(claims)), "100/s",
		},
		{"… requests per claim, its deletion counted", released.asked.formatRequestsPer(claims), ""},
		{"… processor time of the hub per claim", released.formatProcessorTime(claims), ""},
		{"bare loop of the same four writes", fmt.Sprintf("%s, %.0f claims/s", formatSeconds(bare.took), bare.ratePerSecond(claims)), ""},
		{"… ratio", fmt.Sprintf("%.2f", released.ratePerSecond(claims)/bare.ratePerSecond(claims)), ""},
	}, nil
}

// releaseClaims deletes claims and waits until they and their clusters are gone.
func (b *bench) releaseClaims(ctx context.Context, claims []*hivev1.ClusterClaim) error {
	if err := runConcurrently(len(claims), writers, func(i int) error { return b.hub.Delete(ctx, claims[i]) }); err != nil {
		return err
	}
	return b.waitForReleased(ctx, claims)
}

// deleteClaimPairs makes, for each pair, the writes that a release takes.
func (b *bench) deleteClaimPairs(ctx context.Context, pairs []pair) error {
	let := newMergePatch(`{"metadata":{"finalizers":null}}`)
	return runConcurrently(len(pairs), writers, func(i int) error {
		for _, o := range []client.Object{pairs[i].claim, pairs[i].cluster} {
			if err := b.hub.Delete(ctx, o); err != nil {
				return err
			}
		}
		for _, o := range []client.Object{pairs[i].cluster, pairs[i].claim} {
			if err := b.hub.Patch(ctx, o, let); client.IgnoreNotFound(err) != nil {
				return err
			}
		}
		return nil
	})
}

// waitForReleased waits until claims, of which the clusters are known, and these clusters are gone.
func (b *bench) waitForReleased(ctx context.Context, claims []*hivev1.ClusterClaim) error {
	left := claims
	ctx, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	return pollUntil(ctx, func(ctx context.Context) (bool, error) {
		for len(left) > 0 {
			if err := b.hub.Get(ctx, client.ObjectKeyFromObject(left[0]), &hivev1.ClusterClaim{}); !apierrors.IsNotFound(err) {
				return false, err
			}
			left = left[1:]
		}
		return true, nil
	})
}
