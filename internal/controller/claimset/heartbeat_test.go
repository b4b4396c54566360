package claimset_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	controller "hotspare.io/hotspare/internal/controller/claimset"
	"hotspare.io/hotspare/internal/crashtest"
	"hotspare.io/hotspare/internal/crashtest/chaos"
)

var (
	noon     = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	aboutSet = client.ObjectKey{Namespace: "pools", Name: "a"}
)

// newBeatingSet is set a of two claims, with a heartbeat of 90 s.
func newBeatingSet() *v1alpha1.ClaimSet {
	set := newSet("a", 2, "dev")
	set.Annotations = map[string]string{hivev1.AnnotationHeartbeatTimeout: "90s", hivev1.AnnotationHeartbeat: "first"}
	return set
}

// renew renews the heartbeat of set a.
func renew(ctx context.Context, api client.Client, value string) error {
	var set v1alpha1.ClaimSet
	if err := api.Get(ctx, aboutSet, &set); err != nil {
		return err
	}
	before := set.DeepCopy()
	set.Annotations[hivev1.AnnotationHeartbeat] = value
	return api.Patch(ctx, &set, client.MergeFrom(before))
}

// isReleased reports whether set a does not exist, or is being deleted.
func isReleased(ctx context.Context, api client.Client) (bool, error) {
	var set v1alpha1.ClaimSet
	err := api.Get(ctx, aboutSet, &set)
	return err != nil || set.DeletionTimestamp != nil, client.IgnoreNotFound(err)
}

// life is set a, the process that renews its heartbeat, a hub that comes and goes, and a controller that is restarted.
// Time passes in steps of a second.
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
	sets   *controller.Reconciler
	events *events.FakeRecorder
	// beforeDelete runs before each deletion; nil means nothing.
	beforeDelete func()
	// due is when the controller reconciles the set, renewal when the process renews the heartbeat.
	due, renewal time.Time
	dead         bool
	// since is when the process died, the hub came back, or the controller was started: the latest of these.
	since time.Time
}

var errAway = errors.New("connection refused")

// hubClient is a client of the hub of a life. Caches can be read while the hub is away; live is set for a client
// that reads from the hub.
type hubClient struct {
	client.Client
	*life
	live bool
}

func (c hubClient) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if c.live && c.away {
		return errAway
	}
	return c.Client.Get(ctx, key, o, opts...)
}

func (c hubClient) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	if c.away {
		return errAway
	}
	return c.Client.Create(ctx, o, opts...)
}

func (c hubClient) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	if c.away {
		return errAway
	}
	return c.Client.Patch(ctx, o, p, opts...)
}

func (c hubClient) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	if c.away {
		return errAway
	}
	if c.beforeDelete != nil {
		c.beforeDelete()
	}
	return c.Client.Delete(ctx, o, opts...)
}

func (c hubClient) Status() client.SubResourceWriter { return hubStatus{c.Client.Status(), c.life} }

type hubStatus struct {
	client.SubResourceWriter
	life *life
}

func (s hubStatus) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	if s.life.away {
		return errAway
	}
	return s.SubResourceWriter.Patch(ctx, o, p, opts...)
}

func newLife(t *testing.T, seed uint64) *life {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), hivev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	l := &life{t: t, rng: rand.New(rand.NewPCG(seed, 1)), clock: clocktesting.NewFakePassiveClock(noon), events: events.NewFakeRecorder(1000)}
	l.store = chaos.New(scheme, l.clock, &corev1.Namespace{}, &hivev1.ClusterPool{}, &hivev1.ClusterClaim{}, &v1alpha1.ClaimPolicy{}, &v1alpha1.ClaimSet{})
	l.api = l.store.NewClient()
	l.view = l.store.NewView(&chaos.Indexes{})
	if err := create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "pools"}}, newPool("dev", 0, nil), newBeatingSet())(t.Context(), l.api); err != nil {
		t.Fatal(err)
	}
	l.view.ShowAllWrites()
	l.start()
	return l
}

// start starts a controller, which knows nothing of the one before.
func (l *life) start() {
	l.sets = &controller.Reconciler{Client: hubClient{l.view.NewClient(), l, false}, Live: hubClient{l.api, l, true}, Clock: l.clock, Events: l.events}
	l.due, l.since = l.clock.Now(), l.clock.Now()
}

// step passes a second.
func (l *life) step() {
	l.clock.SetTime(l.clock.Now().Add(time.Second))
	now := l.clock.Now()
	if !now.Before(l.toggle) {
		l.away = !l.away && l.rng.IntN(2) == 0
		l.toggle = now.Add(time.Duration(10+l.rng.IntN(200)) * time.Second)
		l.since = now
	}
	if l.rng.IntN(300) == 0 {
		l.start()
	}
	if !l.dead && !now.Before(l.renewal) { // as claim run: 22.5 s, and 7.5 s after a failure
		l.renewal = now.Add(23 * time.Second)
		if l.away {
			l.renewal = now.Add(8 * time.Second)
		} else if err := renew(l.t.Context(), l.api, now.String()); err != nil {
			l.t.Fatal(err)
		}
	}
	if !l.away && l.rng.IntN(4) > 0 && l.view.ShowAllWrites() {
		l.due = now
	}
	if !l.due.IsZero() && !now.Before(l.due) {
		again, err := l.sets.Reconcile(l.t.Context(), ctrl.Request{NamespacedName: aboutSet})
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
	l.t.Helper()
	released, err := isReleased(l.t.Context(), l.api)
	if err != nil {
		l.t.Fatal(err)
	}
	return released
}

// A process that lives keeps its set, whatever the hub and the controller do. The set of a process that has died is
// released in under two minutes, once hub and controller are there.
func TestASetEndsWithTheProcessThatUsesIt(t *testing.T) {
	t.Parallel()
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
				t.Fatalf("seed %d: the set was released after %d s, and its process lives", seed, second)
			case l.dead && !l.away && waited > 110*time.Second && !l.released():
				t.Fatalf("seed %d: the set is there %s after its process has died", seed, waited)
			}
		}
		said := ""
		for len(l.events.Events) > 0 {
			if e := <-l.events.Events; strings.HasPrefix(e, "Warning ") {
				said = e
			}
		}
		if want := "Warning HeartbeatMissing released: its heartbeat was missing for 90s, annotation hotspare.io/heartbeat"; said != want {
			t.Errorf("seed %d: the event is %q, want %q", seed, said, want)
		}
	}
}

// Of a renewal and the end of the set, one wins: a renewal that the cache does not show yet, and one that comes after the set was
// read from the hub.
func TestARenewalAtTheLastMomentWins(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]bool{"the cache does not show it": false, "after the set was read": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t, 1)
			pass := func(after time.Duration) {
				t.Helper()
				l.clock.SetTime(l.clock.Now().Add(after))
				if _, err := l.sets.Reconcile(t.Context(), ctrl.Request{NamespacedName: aboutSet}); err != nil {
					t.Fatal(err)
				}
			}
			missing := func() bool {
				set := l.store.GetSharedObject(&v1alpha1.ClaimSet{}, aboutSet).(*v1alpha1.ClaimSet)
				return meta.IsStatusConditionTrue(set.Status.Conditions, v1alpha1.ClaimSetHeartbeatMissing)
			}
			renewNow := func() {
				if err := renew(t.Context(), l.api, "at the last moment"); err != nil {
					t.Fatal(err)
				}
			}
			pass(0)
			l.view.ShowAllWrites()
			pass(0) // its claims exist
			l.view.ShowAllWrites()
			pass(time.Minute)
			l.view.ShowAllWrites()
			if !missing() {
				t.Fatal("a heartbeat that is overdue is not reported")
			}
			if late {
				l.beforeDelete = renewNow
			} else {
				renewNow()
			}
			pass(31 * time.Second)
			if l.beforeDelete = nil; l.released() {
				t.Fatal("the set was released although its heartbeat had been renewed")
			}
			l.view.ShowAllWrites()
			pass(0)
			if missing() {
				t.Error("a heartbeat that was renewed is reported as missing")
			}
			l.view.ShowAllWrites()
			pass(time.Minute)
			l.view.ShowAllWrites()
			pass(31 * time.Second)
			if !l.released() {
				t.Error("the set was not released, and nobody has renewed its heartbeat")
			}
		})
	}
}

func TestCrashWhileAHeartbeatIsMissing(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(noon)
	var renewedAt time.Time
	begin := func(ctx context.Context, api client.Client) error {
		clock.SetTime(noon)
		renewedAt = noon
		return create(newPool("dev", 0, nil), newBeatingSet())(ctx, api)
	}
	pass := func(d time.Duration) act {
		return func(context.Context, client.Client) error { clock.SetTime(clock.Now().Add(d)); return nil }
	}
	renewNow := func(ctx context.Context, api client.Client) error {
		renewedAt = clock.Now()
		return renew(ctx, api, "second")
	}
	s := stage(t, begin, pass(60*time.Second), renewNow,
		pass(60*time.Second), pass(31*time.Second), pass(60*time.Second), pass(31*time.Second), pass(31*time.Second))
	s.Start = func(cached, live client.Client) []crashtest.Controller {
		return []crashtest.Controller{
			every(cached, &v1alpha1.ClaimSetList{}, &controller.Reconciler{Client: cached, Live: live, Clock: clock, Events: events.NewFakeRecorder(10000)}),
		}
	}
	s.Always = func(ctx context.Context, api client.Client) error {
		if released, err := isReleased(ctx, api); clock.Now().Sub(renewedAt) < 90*time.Second && released && !renewedAt.IsZero() {
			return fmt.Errorf("released %s after a heartbeat: %w", clock.Now().Sub(renewedAt), err)
		}
		return nil
	}
	s.Finally = gone
	crashtest.Run(t, s)
}
