package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
)

// writers is how many users, or writes of the bare loop, are at it at a time.
const writers = 16

// burst measures many claims at once on a pool of fake clusters, against a bare
// loop of the three writes that serving a claim takes, on the same API server.
func (b *bench) burst(ctx context.Context, clusters, claims int) ([]row, error) {
	empty, err := b.requests(ctx)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := b.fake(ctx, "fake", clusters); err != nil {
		return nil, err
	}
	filled := time.Since(began)
	full, err := b.requests(ctx)
	if err != nil {
		return nil, err
	}
	bare, err := b.bare(ctx, claims)
	if err != nil {
		return nil, err
	}
	names := make([]string, claims)
	for i := range names {
		names[i] = fmt.Sprintf("burst-%d", i)
	}
	before, err := b.requests(ctx)
	if err != nil {
		return nil, err
	}
	began = time.Now()
	waits, err := b.claimAll(ctx, "fake", names, writers, nil)
	if err != nil {
		return nil, err
	}
	took := time.Since(began)
	after, err := b.requests(ctx)
	if err != nil {
		return nil, err
	}
	rate := func(d time.Duration) float64 { return float64(claims) / d.Seconds() }
	each := sortedValues(waits)
	return []row{
		{fmt.Sprintf("pool of %d fake clusters filled", clusters), seconds(filled), ""},
		{"… requests per cluster", full.since(empty).per(clusters), ""},
		{fmt.Sprintf("burst of %d claims on it", claims), fmt.Sprintf("%s, %.0f claims/s", seconds(took), rate(took)), ""},
		{"… wait of a claim, median and 99th percentile", millis(quantile(each, 0.5)) + ", " + millis(quantile(each, 0.99)), ""},
		{"… requests per claim, its creation counted", after.since(before).per(claims), ""},
		{"bare loop of the same three writes", fmt.Sprintf("%s, %.0f claims/s", seconds(bare), rate(bare)), ""},
		{"… ratio", fmt.Sprintf("%.2f", rate(took)/rate(bare)), "> 0.6"},
	}, nil
}

// each does n things, so many at a time.
func each(n, atATime int, do func(i int) error) error {
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

// claimAll creates claims and returns how long each took from before its creation
// to ClusterRunning, as a watch shows it. With a pace, one is created at each tick.
func (b *bench) claimAll(ctx context.Context, pool string, names []string, atATime int, pace <-chan time.Time) (map[string]time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	w, err := b.hub.Watch(ctx, &hivev1.ClusterClaimList{}, client.InNamespace(space))
	if err != nil {
		return nil, err
	}
	defer w.Stop()
	var mu sync.Mutex
	began := map[string]time.Time{}
	created := make(chan error, 1)
	go func() {
		created <- each(len(names), atATime, func(i int) error {
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
			if _, had := took[c.Name]; mine && !had && condition.True(c.Status.Conditions, hivev1.ClaimClusterRunning) {
				took[c.Name] = time.Since(at)
			}
		}
	}
	return took, <-created
}

// bare does for n pairs of objects, which no controller looks at, what serving n
// claims takes: a write of the cluster, of the claim, and of the claim's status.
func (b *bench) bare(ctx context.Context, n int) (time.Duration, error) {
	clusters, claims := make([]*hivev1.ClusterDeployment, n), make([]*hivev1.ClusterClaim, n)
	if err := each(n, writers, func(i int) error {
		clusters[i] = idleCluster(i)
		claims[i] = newClaim("no-such-pool", fmt.Sprintf("bare-%d", i))
		return errors.Join(b.hub.Create(ctx, clusters[i]), b.hub.Create(ctx, claims[i]))
	}); err != nil {
		return 0, err
	}
	if err := b.untilTold(ctx, claims); err != nil {
		return 0, err
	}
	patch := func(format string, args ...any) client.Patch {
		return client.RawPatch(types.MergePatchType, fmt.Appendf(nil, format, args...))
	}
	began := time.Now()
	err := each(n, writers, func(i int) error {
		if err := b.hub.Patch(ctx, clusters[i], patch(`{"metadata":{"annotations":{"claim":%q}},"spec":{"powerState":"Running"}}`, claims[i].Name)); err != nil {
			return err
		}
		if err := b.hub.Patch(ctx, claims[i], patch(`{"metadata":{"annotations":{"cluster":%q}}}`, clusters[i].Name)); err != nil {
			return err
		}
		return b.hub.Status().Patch(ctx, claims[i], patch(`{"status":{"lifetime":"8h"}}`))
	})
	return time.Since(began), err
}

// untilTold waits until the controllers have said all they have to say about
// claims on a pool that does not exist.
func (b *bench) untilTold(ctx context.Context, claims []*hivev1.ClusterClaim) error {
	return until(ctx, func(ctx context.Context) (bool, error) {
		for _, c := range claims {
			if err := b.hub.Get(ctx, client.ObjectKeyFromObject(c), c); err != nil || len(c.Status.Conditions) == 0 {
				return false, err
			}
		}
		return true, nil
	})
}

func idleCluster(i int) *hivev1.ClusterDeployment {
	return &hivev1.ClusterDeployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: space, Name: fmt.Sprintf("bare-%d", i),
			Annotations: map[string]string{hivev1.AnnotationReconcilePause: "true"},
		},
		Spec: hivev1.ClusterDeploymentSpec{
			ClusterName: fmt.Sprintf("bare-%d", i), BaseDomain: "example.com",
			Provisioning: &hivev1.Provisioning{},
		},
	}
}
