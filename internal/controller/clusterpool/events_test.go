package clusterpool_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/controller/clusterclaim"
	"hotspare.io/hotspare/internal/controller/clusterpool"
	"hotspare.io/hotspare/internal/controller/namespace"
	"hotspare.io/hotspare/internal/crashtest"
	"hotspare.io/hotspare/internal/metrics"
	"hotspare.io/hotspare/internal/pool"
)

// diary remembers events as the hub counts them: by reason and by the objects
// that they are about, whatever they say.
type diary struct {
	mu      sync.Mutex
	entries map[string]int
}

func (d *diary) Eventf(regarding, related runtime.Object, _, reason, _, _ string, _ ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	entry := reason + " " + regarding.(client.Object).GetName()
	if related != nil {
		entry += " " + related.(client.Object).GetName()
	}
	d.entries[entry]++
}

// of counts the events with that reason.
func (d *diary) of(reason string) float64 {
	n := 0
	for entry, times := range d.entries {
		if strings.HasPrefix(entry, reason+" ") {
			n += times
		}
	}
	return float64(n)
}

// ledger is what one run of a scenario tells, and what it has made.
type ledger struct {
	diary
	starts   int
	clusters map[string]bool
	registry *prometheus.Registry
}

// Each thing that happens to a pool has one event and is counted once: not again
// when a pass is repeated, whatever the cache shows. What a crash cuts off may
// lack its event.
func TestOneEventAndOneCountForEachStep(t *testing.T) {
	t.Parallel()
	l := &ledger{}
	s := stage(t, func(context.Context, client.Client) error {
		l.starts, l.clusters, l.entries = 1, map[string]bool{}, map[string]int{}
		return nil
	}, create(imageSet(), newPool(1, 0)), create(claim("a")), remove(claim("a")))
	serial, always := 0, s.Always
	s.Start = func(cached, live client.Client) []crashtest.Controller {
		l.starts++
		l.registry = prometheus.NewRegistry()
		now := clocktesting.NewFakePassiveClock(time.Now())
		counts := metrics.New(l.registry, now)
		pools := &clusterpool.Reconciler{
			Client: cached, Live: live, Clock: now, Events: l, Metrics: counts,
			Suffix: func() string { serial++; return fmt.Sprintf("%05d", serial) },
		}
		claims := &clusterclaim.Reconciler{Client: cached, Live: live, Clock: now, Events: l, Metrics: counts}
		return []crashtest.Controller{
			every(cached, &hivev1.ClusterPoolList{}, pools), every(cached, &hivev1.ClusterClaimList{}, claims),
			every(cached, &corev1.NamespaceList{}, &namespace.Reconciler{Client: cached, Live: live}),
		}
	}
	s.Always = func(ctx context.Context, api client.Client) error {
		return errors.Join(always(ctx, api), l.watch(ctx, api))
	}
	s.Finally = func(ctx context.Context, api client.Client) error {
		return errors.Join(expect(1)(ctx, api), l.check(ctx, api))
	}
	crashtest.Run(t, s)
}

// watch remembers every cluster that there ever was.
func (l *ledger) watch(ctx context.Context, api client.Client) error {
	var list hivev1.ClusterDeploymentList
	err := api.List(ctx, &list)
	for _, cd := range list.Items {
		l.clusters[cd.Name] = true
	}
	return err
}

func (l *ledger) check(ctx context.Context, api client.Client) error {
	for entry, times := range l.entries {
		if times > 1 {
			return fmt.Errorf("%d events say %q", times, entry)
		}
	}
	if l.starts > 1 {
		return nil // a crash has cut off an event, and the counts
	}
	var left hivev1.ClusterDeploymentList
	if err := api.List(ctx, &left); err != nil {
		return err
	}
	made := float64(len(l.clusters))
	for reason, c := range map[string]struct {
		want float64
		verb pool.Verb
	}{
		"Created": {made, pool.Create}, "Deleting": {made - float64(len(left.Items)), pool.Delete}, "Assigned": {1, pool.Bind}, "Resuming": {1, pool.Start},
	} {
		counted, err := l.counted("hotspare_pool_steps_total", string(c.verb))
		if err != nil {
			return err
		}
		if l.of(reason) != c.want || counted != c.want {
			return fmt.Errorf("%s: %v events, and %v counted, want %v", reason, l.of(reason), counted, c.want)
		}
	}
	n, err := l.counted("hotspare_claim_wait_seconds", "p")
	if err == nil && n != 1 {
		err = fmt.Errorf("the wait of the claim was measured %v times, want once", n)
	}
	return err
}

// counted is how often a metric was moved, of all its series whose labels have that value.
func (l *ledger) counted(name, value string) (n float64, err error) {
	families, err := l.registry.Gather()
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetValue() == value {
					n += m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
				}
			}
		}
	}
	return n, err
}

func TestB25ThePassOverAPoolThatIsGoneForgetsItsCounts(t *testing.T) {
	l := &ledger{registry: prometheus.NewRegistry()}
	clock := clocktesting.NewFakePassiveClock(time.Now())
	r := &clusterpool.Reconciler{Client: cacheOf(t), Clock: clock, Events: l, Metrics: metrics.New(l.registry, clock)}
	gone := client.ObjectKey{Namespace: "pools", Name: "p"}
	r.Metrics.RecordPoolStep(gone, pool.Step{Verb: pool.Create})
	if n, err := l.counted("hotspare_pool_steps_total", "create"); n != 1 || err != nil {
		t.Fatalf("counted %v, %v", n, err)
	}
	if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: gone}); err != nil {
		t.Fatal(err)
	}
	if n, err := l.counted("hotspare_pool_steps_total", "create"); n != 0 || err != nil {
		t.Errorf("still counted: %v, %v", n, err)
	}
}
