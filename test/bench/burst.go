package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
)

// writers is the number of users, or of writes of the bare loop, that run concurrently.
const writers = 16

// measureBurst measures many simultaneous claims on a pool of fake clusters, and compares them with
// a bare loop of the three writes that serving a claim takes, on the same API server.
func (b *bench) measureBurst(ctx context.Context, clusters, claims int) ([]row, error) {
	filled, err := b.measureCost(ctx, func() error { return b.ensureFakePool(ctx, "fake", clusters) })
	if err != nil {
		return nil, err
	}
	pairs, err := b.createClaimPairs(ctx, claims)
	if err != nil {
		return nil, err
	}
	if err := b.waitForNoWrites(ctx); err != nil {
		return nil, err
	}
	bare, err := b.measureCost(ctx, func() error { return b.writeClaimPairs(ctx, pairs) })
	if err != nil {
		return nil, err
	}
	names := make([]string, claims)
	for i := range names {
		names[i] = fmt.Sprintf("burst-%d", i)
	}
	if err := b.waitForNoWrites(ctx); err != nil {
		return nil, err
	}
	var waits map[string]time.Duration
	served, err := b.measureCost(ctx, func() (err error) {
		waits, err = b.createAndTimeClaims(ctx, "fake", names, writers, nil)
		return err
	})
	if err != nil {
		return nil, err
	}
	rate := func(c cost) float64 { return float64(claims) / c.took.Seconds() }
	each := sortedDurations(waits)
	return []row{
		{fmt.Sprintf("pool of %d fake clusters filled", clusters), formatSeconds(filled.took), ""},
		{"… requests per cluster", filled.asked.formatRequestsPer(clusters), ""},
		{"… processor time of the hub per cluster", filled.formatProcessorTime(clusters), ""},
		{fmt.Sprintf("burst of %d claims on it", claims), fmt.Sprintf("%s, %.0f claims/s", formatSeconds(served.took), rate(served)), ""},
		{"… wait of a claim, median and 99th percentile", formatMillis(quantileOf(each, 0.5)) + ", " + formatMillis(quantileOf(each, 0.99)), ""},
		{"… requests per claim, its creation counted", served.asked.formatRequestsPer(claims), ""},
		{"… processor time of the hub per claim", served.formatProcessorTime(claims), ""},
		{"bare loop of the same three writes", fmt.Sprintf("%s, %.0f claims/s", formatSeconds(bare.took), rate(bare)), ""},
		{"… processor time of the hub per claim", bare.formatProcessorTime(claims), ""},
		{"… ratio", fmt.Sprintf("%.2f", rate(served)/rate(bare)), "> 0.6"},
	}, nil
}

// cost is what a measured operation took.
type cost struct {
	took   time.Duration
	worked time.Duration // processor time of the hub
	asked  requestCounts
}

func (c cost) formatProcessorTime(n int) string {
	return fmt.Sprintf("%.1f ms", c.worked.Seconds()*1000/float64(n))
}

func (b *bench) measureCost(ctx context.Context, do func() error) (cost, error) {
	before, err := b.readRequests(ctx)
	if err != nil {
		return cost{}, err
	}
	idle, err := b.readProcessorTime()
	if err != nil {
		return cost{}, err
	}
	began := time.Now()
	if err := do(); err != nil {
		return cost{}, err
	}
	took := time.Since(began)
	busy, err := b.readProcessorTime()
	if err != nil {
		return cost{}, err
	}
	after, err := b.readRequests(ctx)
	return cost{took, busy - idle, after.countSince(before)}, err
}

// runConcurrently calls do n times, at most atATime calls at a time.
func runConcurrently(n, atATime int, do func(i int) error) error {
	next := make(chan int)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for range atATime {
		wg.Go(func() {
			for i := range next {
				errs[i] = do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
	return errors.Join(errs...)
}

// createAndTimeClaims creates claims and returns for each the time from before its creation until a
// watch shows ClusterRunning. With a pace, it creates one claim per tick.
func (b *bench) createAndTimeClaims(ctx context.Context, pool string, names []string, atATime int, pace <-chan time.Time) (map[string]time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	w, err := b.watchClaimRetrying(ctx)
	if err != nil {
		return nil, err
	}
	defer w.Stop()
	var mu sync.Mutex
	began := map[string]time.Time{}
	created := make(chan error, 1)
	go func() {
		created <- runConcurrently(len(names), atATime, func(i int) error {
			if pace != nil {
				<-pace
			}
			mu.Lock()
			began[names[i]] = time.Now()
			mu.Unlock()
			return b.hub.Create(ctx, newClaim(pool, names[i]))
		})
	}()
	took := map[string]time.Duration{}
	for len(took) < len(names) {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d claims were served: %w", len(took), len(names), ctx.Err())
		case e, open := <-w.ResultChan():
			c, ok := e.Object.(*hivev1.ClusterClaim)
			if !open || !ok {
				return nil, fmt.Errorf("watching claims: %v", e.Object)
			}
			mu.Lock()
			at, mine := began[c.Name]
			mu.Unlock()
			if _, had := took[c.Name]; mine && !had && condition.IsTrue(c.Status.Conditions, hivev1.ClaimClusterRunning) {
				took[c.Name] = time.Since(at)
			}
		}
	}
	return took, <-created
}

// watchClaimRetrying returns a watch that resumes where it was when the API server ends it, as it
// does with slow readers.
func (b *bench) watchClaimRetrying(ctx context.Context) (*watchtools.RetryWatcher, error) {
	var now hivev1.ClusterClaimList
	if err := b.hub.List(ctx, &now, client.InNamespace(namespace), client.Limit(1)); err != nil {
		return nil, err
	}
	return watchtools.NewRetryWatcherWithContext(ctx, now.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			return b.hub.Watch(ctx, &hivev1.ClusterClaimList{}, &client.ListOptions{Namespace: namespace, Raw: &opts})
		},
	})
}

// pair is what one iteration of the bare loop writes. No controller reconciles it.
type pair struct {
	cluster *hivev1.ClusterDeployment
	claim   *hivev1.ClusterClaim
}

func (b *bench) createClaimPairs(ctx context.Context, n int) ([]pair, error) {
	out := make([]pair, n)
	if err := runConcurrently(n, writers, func(i int) error {
		out[i] = pair{newIdleCluster(i), newClaim("no-such-pool", fmt.Sprintf("bare-%d", i))}
		return errors.Join(b.hub.Create(ctx, out[i].cluster), b.hub.Create(ctx, out[i].claim))
	}); err != nil {
		return nil, err
	}
	return out, b.waitForPairStatus(ctx, out)
}

// writeClaimPairs makes, for each pair, the writes that serving a claim takes: of the cluster, of
// the claim, and of the claim's status.
func (b *bench) writeClaimPairs(ctx context.Context, pairs []pair) error {
	patch := func(format string, args ...any) client.Patch {
		return client.RawPatch(types.MergePatchType, fmt.Appendf(nil, format, args...))
	}
	return runConcurrently(len(pairs), writers, func(i int) error {
		cd, claim := pairs[i].cluster, pairs[i].claim
		if err := b.hub.Patch(ctx, cd, patch(`{"metadata":{"annotations":{"claim":%q}},"spec":{"powerState":"Running"}}`, claim.Name)); err != nil {
			return err
		}
		if err := b.hub.Patch(ctx, claim, patch(`{"metadata":{"annotations":{"cluster":%q}}}`, cd.Name)); err != nil {
			return err
		}
		return b.hub.Status().Patch(ctx, claim, patch(`{"status":{"lifetime":"8h"}}`))
	})
}

// waitForPairStatus waits until the controllers have written all status of claims on a pool that
// does not exist.
func (b *bench) waitForPairStatus(ctx context.Context, pairs []pair) error {
	return pollUntil(ctx, func(ctx context.Context) (bool, error) {
		for _, p := range pairs {
			if err := b.hub.Get(ctx, client.ObjectKeyFromObject(p.claim), p.claim); err != nil || len(p.claim.Status.Conditions) == 0 {
				return false, err
			}
		}
		return true, nil
	})
}

func newIdleCluster(i int) *hivev1.ClusterDeployment {
	return &hivev1.ClusterDeployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: fmt.Sprintf("bare-%d", i),
			Annotations: map[string]string{hivev1.AnnotationReconcilePause: "true"},
		},
		Spec: hivev1.ClusterDeploymentSpec{
			ClusterName: fmt.Sprintf("bare-%d", i), BaseDomain: "example.com",
			Provisioning: &hivev1.Provisioning{},
		},
	}
}
