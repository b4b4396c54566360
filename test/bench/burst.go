package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
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

// burst is a number of claims that users create at the same time.
type burst struct {
	// pools are filled with clusters running fake clusters each. The claims are spread over them evenly.
	pools    []string
	clusters int
	claims   int
	// subjects is the number of users whom each claim gives access to its cluster.
	subjects int
	aim      string
}

// measureBurst measures many simultaneous claims on a pool of fake clusters, and compares them with
// a bare loop of the three writes that serving a claim takes, on the same API server.
func (b *bench) measureBurst(ctx context.Context, clusters, claims int) ([]row, error) {
	return b.measureClaims(ctx, "burst", burst{pools: []string{"fake"}, clusters: clusters, claims: claims, aim: "0.8"})
}

// measureMoreBursts measures claims on a pool that they empty, claims with subjects, against a bare loop that creates a
// Role and a RoleBinding in addition, and claims on several pools.
func (b *bench) measureMoreBursts(ctx context.Context) ([]row, error) {
	several := burst{clusters: 100, claims: 1000, aim: "0.8"}
	for i := range 10 {
		several.pools = append(several.pools, fmt.Sprintf("fake-100-%d", i))
	}
	var rows []row
	for _, part := range []struct {
		prefix string
		burst  burst
	}{
		{"all", burst{pools: []string{"fake-200"}, clusters: 200, claims: 200, aim: "0.8"}},
		{"subject", burst{pools: []string{"fake-200"}, clusters: 200, claims: 200, subjects: 1, aim: "0.5"}},
		{"several", several},
	} {
		more, err := b.measureClaims(ctx, part.prefix, part.burst)
		if err != nil {
			return rows, err
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

func (b *bench) measureClaims(ctx context.Context, prefix string, u burst) ([]row, error) {
	filled, err := b.measureCost(ctx, func() error {
		return runConcurrently(len(u.pools), len(u.pools), func(i int) error { return b.ensureFakePool(ctx, u.pools[i], u.clusters) })
	})
	if err != nil {
		return nil, err
	}
	var bareFill cost
	if filled.createdClusters() {
		if bareFill, err = b.measureBareFill(ctx, prefix+"-fill"); err != nil {
			return nil, err
		}
	}
	var all []round
	for n := range b.rounds {
		one, err := b.measureClaimRound(ctx, fmt.Sprintf("%s-%d", prefix, n), u)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return u.formatRows(bareFill, filled, all), nil
}

// measureClaimRound measures the bare loop and then the claims. It leaves the pools as it found them.
func (b *bench) measureClaimRound(ctx context.Context, prefix string, u burst) (round, error) {
	pairs, err := b.createClaimPairs(ctx, prefix+"-bare", u.claims)
	if err != nil {
		return round{}, err
	}
	if err := b.waitForNoWrites(ctx); err != nil {
		return round{}, err
	}
	var r round
	if r.bare, err = b.measureCost(ctx, func() error { return b.writeClaimPairs(ctx, pairs, u.subjects > 0) }); err != nil {
		return round{}, err
	}
	if err := b.waitForNoWrites(ctx); err != nil {
		return round{}, err
	}
	claims := u.newClaims(prefix)
	if r.served, err = b.measureCost(ctx, func() error {
		waits, err := b.createAndTimeClaims(ctx, claims, writers, nil)
		r.waits = sortedDurations(waits)
		return err
	}); err != nil {
		return round{}, err
	}
	if err := b.releaseClaims(ctx, claims); err != nil {
		return round{}, err
	}
	return r, runConcurrently(len(u.pools), len(u.pools), func(i int) error { return b.waitForFullPool(ctx, u.pools[i], u.clusters) })
}

func (b burst) newClaims(prefix string) []*hivev1.ClusterClaim {
	out := make([]*hivev1.ClusterClaim, b.claims)
	for i := range out {
		out[i] = newClaim(b.pools[i%len(b.pools)], fmt.Sprintf("%s-%d", prefix, i))
		for n := range b.subjects {
			out[i].Spec.Subjects = append(out[i].Spec.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: fmt.Sprintf("user-%d", n)})
		}
	}
	return out
}

// ratePerSecond returns how many of n were done in a second.
func (c cost) ratePerSecond(n int) float64 { return float64(n) / c.took.Seconds() }

func (b burst) formatRows(bareFill, filled cost, rounds []round) []row {
	filledWhat, claimsWhat := fmt.Sprintf("pool of %d fake clusters filled", b.clusters), fmt.Sprintf("burst of %d claims on it", b.claims)
	loopWhat := "bare loop of the same three writes"
	if len(b.pools) > 1 {
		filledWhat, claimsWhat = fmt.Sprintf("%d pools of %d fake clusters filled", len(b.pools), b.clusters), fmt.Sprintf("burst of %d claims on them", b.claims)
	}
	if b.subjects > 0 {
		claimsWhat, loopWhat = fmt.Sprintf("burst of %d claims with a subject on it", b.claims), "bare loop of the same five writes"
	}
	var rows []row
	if all := len(b.pools) * b.clusters; filled.createdClusters() {
		rows = []row{
			{filledWhat, fmt.Sprintf("%s, %.0f clusters/s", formatSeconds(filled.took), filled.ratePerSecond(all)), "25/s"},
			{"… requests per cluster", filled.asked.formatRequestsPer(all), ""},
			{"… processor time of the hub per cluster", filled.formatProcessorTime(all), ""},
			{"bare loop of the same ten writes", fmt.Sprintf("%.0f clusters/s", bareFill.ratePerSecond(bareFills)), ""},
			{"… processor time of the hub per cluster", bareFill.formatProcessorTime(bareFills), ""},
			{"… ratio", fmt.Sprintf("%.2f", filled.ratePerSecond(all)/bareFill.ratePerSecond(bareFills)), ""},
		}
	}
	return append(rows, []row{
		{claimsWhat, formatRange(rounds, "%.0f claims/s", func(r round) float64 { return r.served.ratePerSecond(b.claims) }), ""},
		{
			"… wait of a claim, median and 99th percentile",
			formatMillis(medianOf(rounds, func(r round) time.Duration { return quantileOf(r.waits, 0.5) })) + ", " +
				formatMillis(medianOf(rounds, func(r round) time.Duration { return quantileOf(r.waits, 0.99) })), "",
		},
		{"… requests per claim, its creation counted", rounds[0].served.asked.formatRequestsPer(b.claims), ""},
		{"… processor time of the hub per claim", formatRange(rounds, "%.1f ms", func(r round) float64 { return r.served.millisPer(b.claims) }), ""},
		{loopWhat, formatRange(rounds, "%.0f claims/s", func(r round) float64 { return r.bare.ratePerSecond(b.claims) }), ""},
		{"… processor time of the hub per claim", formatRange(rounds, "%.1f ms", func(r round) float64 { return r.bare.millisPer(b.claims) }), ""},
		{"… ratio", formatRange(rounds, "%.2f", func(r round) float64 { return r.served.ratePerSecond(b.claims) / r.bare.ratePerSecond(b.claims) }), b.aim},
	}...)
}

// cost is what a measured operation took.
type cost struct {
	took   time.Duration
	worked time.Duration // processor time of the hub
	asked  requestCounts
}

// createdClusters reports whether clusters were created.
func (c cost) createdClusters() bool { return c.asked["POST clusterdeployments"] > 0 }

// millisPer returns the milliseconds of processor time for each of n.
func (c cost) millisPer(n int) float64 { return c.worked.Seconds() * 1000 / float64(n) }

func (c cost) formatProcessorTime(n int) string { return fmt.Sprintf("%.1f ms", c.millisPer(n)) }

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
func (b *bench) createAndTimeClaims(ctx context.Context, claims []*hivev1.ClusterClaim, atATime int, pace <-chan time.Time) (map[string]time.Duration, error) {
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
		created <- runConcurrently(len(claims), atATime, func(i int) error {
			if pace != nil {
				<-pace
			}
			mu.Lock()
			began[claims[i].Name] = time.Now()
			mu.Unlock()
			return b.hub.Create(ctx, claims[i])
		})
	}()
	took := map[string]time.Duration{}
	for len(took) < len(claims) {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d claims were served: %w", len(took), len(claims), ctx.Err())
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

func (b *bench) createClaimPairs(ctx context.Context, prefix string, n int, finalizers ...string) ([]pair, error) {
	out := make([]pair, n)
	if err := runConcurrently(n, writers, func(i int) error {
		name := fmt.Sprintf("%s-%d", prefix, i)
		out[i] = pair{newIdleCluster(name), newClaim("no-such-pool", name)}
		out[i].cluster.Finalizers, out[i].claim.Finalizers = finalizers, finalizers
		return errors.Join(b.hub.Create(ctx, out[i].cluster), b.hub.Create(ctx, out[i].claim))
	}); err != nil {
		return nil, err
	}
	return out, b.waitForPairStatus(ctx, out)
}

// writeClaimPairs makes, for each pair, the writes that serving a claim takes: of the cluster, of the claim, and of the
// claim's status; with access, also a Role and a RoleBinding.
func (b *bench) writeClaimPairs(ctx context.Context, pairs []pair, access bool) error {
	return runConcurrently(len(pairs), writers, func(i int) error {
		cd, claim := pairs[i].cluster, pairs[i].claim
		if err := b.hub.Patch(ctx, cd, newMergePatch(`{"metadata":{"annotations":{"claim":%q}},"spec":{"powerState":"Running"}}`, claim.Name)); err != nil {
			return err
		}
		if err := b.hub.Patch(ctx, claim, newMergePatch(`{"metadata":{"annotations":{"cluster":%q}}}`, cd.Name)); err != nil {
			return err
		}
		if access {
			if err := b.createAccess(ctx, claim); err != nil {
				return err
			}
		}
		return b.hub.Status().Patch(ctx, claim, newMergePatch(`{"status":{"lifetime":"8h"}}`))
	})
}

func newMergePatch(format string, args ...any) client.Patch {
	return client.RawPatch(types.MergePatchType, fmt.Appendf(nil, format, args...))
}

// createAccess creates a Role and a RoleBinding as a claim with a subject gets them.
func (b *bench) createAccess(ctx context.Context, claim *hivev1.ClusterClaim) error {
	meta := metav1.ObjectMeta{Namespace: claim.Namespace, Name: claim.Name}
	read := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{claim.Name}, Verbs: []string{"get"}}
	role := &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{read}}
	if err := b.hub.Create(ctx, role); err != nil {
		return err
	}
	return b.hub.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: claim.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "user-0"}},
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

func newIdleCluster(name string) *hivev1.ClusterDeployment {
	return &hivev1.ClusterDeployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name,
			Annotations: map[string]string{hivev1.AnnotationReconcilePause: "true"},
		},
		Spec: hivev1.ClusterDeploymentSpec{
			ClusterName: name, BaseDomain: "example.com",
			Provisioning: &hivev1.Provisioning{},
		},
	}
}
