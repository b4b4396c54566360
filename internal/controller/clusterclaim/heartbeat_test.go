package clusterclaim_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/controller/clusterclaim"
	"hotspare.io/hotspare/internal/crashtest"
	"hotspare.io/hotspare/internal/crashtest/chaos"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// newBeatingClaim is claim x with a heartbeat of 90 s.
func newBeatingClaim() *hivev1.ClusterClaim {
	c := newClaim()
	c.Annotations = map[string]string{hivev1.AnnotationHeartbeatTimeout: "90s", hivev1.AnnotationHeartbeat: "first"}
	return c
}

func renew(value string) act {
	return edit(newClaim(), func(c *hivev1.ClusterClaim) { c.Annotations[hivev1.AnnotationHeartbeat] = value })
}

// life is claim x, the process that renews its heartbeat, a hub that comes and goes, and a controller that is
// restarted. Time passes in steps of a second.
type life struct {
	t     *testing.T
	rng   *rand.Rand
	clock *clocktesting.FakePassiveClock
	store *chaos.Store
	api   client.Client
	view  *chaos.View
	// away is set while the hub answers nobody, until toggle.
	away   bool
	toggle time.Time
	claims *clusterclaim.Reconciler
	events *events.FakeRecorder
	// due is when the controller reconciles the claim, renewal when the process renews the heartbeat.
	due, renewal time.Time
	dead         bool
	// since is when the process died, the hub came back, or the controller was started: the latest of
	// these.
	since time.Time
}

// awayClient is a client of a hub that may be away: caches can be read, and writes fail.
type awayClient struct {
	client.Client
	away *bool
}

var errAway = errors.New("connection refused")

func (c awayClient) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	if *c.away {
		return errAway
	}
	return c.Client.Patch(ctx, o, p, opts...)
}

func (c awayClient) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	if *c.away {
		return errAway
	}
	return c.Client.Delete(ctx, o, opts...)
}

func (c awayClient) Status() client.SubResourceWriter { return awayStatus{c.Client.Status(), c.away} }

type awayStatus struct {
	client.SubResourceWriter
	away *bool
}

func (s awayStatus) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	if *s.away {
		return errAway
	}
	return s.SubResourceWriter.Patch(ctx, o, p, opts...)
}

func newLife(t *testing.T, seed uint64) *life {
	t.Helper()
	l := &life{t: t, rng: rand.New(rand.NewPCG(seed, 1)), clock: clocktesting.NewFakePassiveClock(noon), events: events.NewFakeRecorder(100)}
	l.store = chaos.New(newScheme(t), l.clock, kinds...)
	l.api = l.store.NewClient()
	var ix chaos.Indexes
	if err := clusterclaim.AddIndexes(t.Context(), &ix); err != nil {
		t.Fatal(err)
	}
	l.view = l.store.NewView(&ix)
	pools := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "pools"}}
	if err := create(pools, home(), &hivev1.ClusterPool{ObjectMeta: metav1.ObjectMeta{Namespace: "pools", Name: "p"}}, newCluster(), newBeatingClaim())(t.Context(), l.api); err != nil {
		t.Fatal(err)
	}
	l.view.ShowAllWrites()
	l.start()
	return l
}

// start starts a controller, which knows nothing of the one before.
func (l *life) start() {
	l.claims = &clusterclaim.Reconciler{Client: awayClient{l.view.NewClient(), &l.away}, Live: l.api, Clock: l.clock, Events: l.events}
	l.due, l.since = l.clock.Now(), l.clock.Now()
}

func (l *life) upTo(n int) time.Duration { return time.Duration(l.rng.IntN(n)+1) * time.Second }

// step passes a second.
func (l *life) step() {
	l.clock.SetTime(l.clock.Now().Add(time.Second))
	now := l.clock.Now()
	if !now.Before(l.toggle) {
		l.away = !l.away && l.rng.IntN(2) == 0
		l.toggle = now.Add(9*time.Second + l.upTo(200))
		l.since = now
	}
	if l.rng.IntN(300) == 0 {
		l.start()
	}
	if !l.dead && !now.Before(l.renewal) { // as claim run: 22.5 s, and 7.5 s after a failure
		l.renewal = now.Add(23 * time.Second)
		if l.away {
			l.renewal = now.Add(8 * time.Second)
		} else if err := renew(now.String())(l.t.Context(), l.api); err != nil {
			l.t.Fatal(err)
		}
	}
	if !l.away && l.rng.IntN(4) > 0 && l.view.ShowAllWrites() {
		l.due = now
	}
	if !l.due.IsZero() && !now.Before(l.due) {
		again, err := l.claims.Reconcile(l.t.Context(), ctrl.Request{NamespacedName: about})
		switch {
		case err != nil:
			l.due = now.Add(time.Second)
		case again.RequeueAfter > 0:
			l.due = now.Add(again.RequeueAfter)
		default:
			l.due = time.Time{}
		}
	}
}

func (l *life) released() bool {
	c, _ := l.store.GetSharedObject(&hivev1.ClusterClaim{}, about).(*hivev1.ClusterClaim)
	return c == nil || c.DeletionTimestamp != nil
}

// A process that lives keeps its claim, whatever the hub and the controller do. The claim of a process that
// has died is released in under two minutes, once hub and controller are there.
func TestAClaimEndsWithTheProcessThatUsesIt(t *testing.T) {
	for range 40 {
		seed := rand.Uint64()
		l := newLife(t, seed)
		dies := 50 + l.rng.IntN(1500)
		for second := 0; !l.dead || !l.released(); second++ {
			if second == dies {
				l.dead, l.since = true, l.clock.Now()
			}
			l.step()
			switch waited := l.clock.Now().Sub(l.since); {
			case !l.dead && l.released():
				t.Fatalf("seed %d: the claim was released after %d s, and its process lives", seed, second)
			case l.dead && !l.away && waited > 110*time.Second && !l.released():
				t.Fatalf("seed %d: the claim is there %s after its process has died", seed, waited)
			}
		}
		if said := <-l.events.Events; !strings.HasPrefix(said, "Warning HeartbeatMissing released: ") {
			t.Errorf("seed %d: the event is %q", seed, said)
		}
	}
}

// What the cache does not show yet counts: of a renewal and the end of the claim, one wins.
func TestARenewalAtTheLastMomentWins(t *testing.T) {
	l := newLife(t, 1)
	pass := func() {
		t.Helper()
		if _, err := l.claims.Reconcile(t.Context(), ctrl.Request{NamespacedName: about}); err != nil {
			t.Fatal(err)
		}
	}
	missing := func() bool {
		c := l.store.GetSharedObject(&hivev1.ClusterClaim{}, about).(*hivev1.ClusterClaim)
		return condition.IsTrue(c.Status.Conditions, hivev1.ClaimHeartbeatMissing)
	}
	after := func(d time.Duration) { l.clock.SetTime(l.clock.Now().Add(d)) }
	pass()
	l.view.ShowAllWrites()
	after(time.Minute)
	pass()
	l.view.ShowAllWrites()
	if !missing() {
		t.Fatal("a heartbeat that is overdue is not reported")
	}
	after(31 * time.Second)
	if err := renew("at the last moment")(t.Context(), l.api); err != nil {
		t.Fatal(err)
	}
	pass() // the cache does not show the renewal
	if l.released() {
		t.Fatal("the claim was released although its heartbeat had been renewed")
	}
	l.view.ShowAllWrites()
	pass()
	if missing() {
		t.Error("a heartbeat that was renewed is reported as missing")
	}
	after(time.Minute)
	l.view.ShowAllWrites()
	pass()
	l.view.ShowAllWrites()
	after(31 * time.Second)
	pass()
	if !l.released() {
		t.Error("the claim was not released, and nobody has renewed its heartbeat")
	}
}

func TestCrashWhileAHeartbeatIsMissing(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(noon)
	var renewedAt time.Time
	begin := func(ctx context.Context, api client.Client) error {
		clock.SetTime(noon)
		renewedAt = noon
		return create(home(), newCluster(), newBeatingClaim())(ctx, api)
	}
	pass := func(d time.Duration) act {
		return func(context.Context, client.Client) error { clock.SetTime(clock.Now().Add(d)); return nil }
	}
	renewNow := func(ctx context.Context, api client.Client) error {
		renewedAt = clock.Now()
		return renew("second")(ctx, api)
	}
	s := stage(t, begin, pass(60*time.Second), renewNow,
		pass(60*time.Second), pass(31*time.Second), pass(60*time.Second), pass(31*time.Second), pass(31*time.Second))
	s.Start = func(cached, live client.Client) []crashtest.Controller {
		claims := &clusterclaim.Reconciler{Client: cached, Live: live, Clock: clock, Events: events.NewFakeRecorder(10000)}
		return []crashtest.Controller{func(ctx context.Context) error {
			_, err := claims.Reconcile(ctx, ctrl.Request{NamespacedName: about})
			return err
		}}
	}
	s.Always = func(ctx context.Context, api client.Client) error {
		var c hivev1.ClusterClaim
		err := api.Get(ctx, about, &c)
		if early := clock.Now().Sub(renewedAt) < 90*time.Second; early && (err != nil || c.DeletionTimestamp != nil) {
			return fmt.Errorf("released %s after a heartbeat: %w", clock.Now().Sub(renewedAt), err)
		}
		return nil
	}
	s.Finally = func(ctx context.Context, api client.Client) error {
		var c hivev1.ClusterClaim
		if err := api.Get(ctx, about, &c); client.IgnoreNotFound(err) != nil || err == nil && c.DeletionTimestamp == nil {
			return fmt.Errorf("the claim is there without a heartbeat: %w", err)
		}
		return nil
	}
	crashtest.Run(t, s)
}
