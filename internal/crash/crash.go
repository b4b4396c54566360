// Package crash tries controllers the hard way: it runs a scenario over an
// in-memory API and stops the controllers right after a write, or lets them read
// from a cache that is one write behind. It is for tests.
//
// A scenario that writes N times is run 3N+2 times: as it is; with a stop after
// each write; with a stop after each write and a new process whose cache does not
// show that write yet; with each write hidden from the cache until the next one;
// and with all of them hidden so.
//
// The API, its cache and the order of calls are package chaos's, which runs
// controllers through random histories instead.
package crash

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hotspare.io/hotspare/internal/crash/chaos"
)

// Scenario is what is tried. Each try is a synctest bubble of its own: time stands
// still in it. Namespaces must be made before what is in them.
type Scenario struct {
	Scheme *runtime.Scheme
	// Kinds are the kinds of all objects in it.
	Kinds []client.Object
	// Indexes are those of the cache.
	Indexes *chaos.Indexes
	// Start makes fresh controllers, as a new process would. cached is behind the
	// API by some writes, live is not; writes go through both to the API.
	Start func(cached, live client.Client) []Controller
	// Acts are what users do, one after the other; the controllers settle in between.
	Acts []func(ctx context.Context, api client.Client) error
	// World is what other controllers do: it is called in every round and reports
	// whether it changed anything. Namespaces that are being deleted are swept without it.
	World func(ctx context.Context, api client.Client) (bool, error)
	// Always is checked after every write of the controllers, Finally when all is settled.
	Always, Finally func(ctx context.Context, api client.Client) error
}

// Controller reconciles every object of its kind once.
type Controller func(ctx context.Context) error

// maxRounds is when a scenario counts as one that never settles.
const maxRounds = 300

// Run tries the scenario in all ways.
func Run(t *testing.T, s Scenario) {
	t.Helper()
	total := s.runScenarioOnce(t, mode{})
	if total == 0 {
		t.Fatal("the scenario writes nothing")
	}
	t.Logf("%d writes", total)
	for n := 1; n <= total; n++ {
		t.Run(fmt.Sprintf("stopped after write %d", n), func(t *testing.T) { s.runScenarioOnce(t, mode{stopAfter: n}) })
		t.Run(fmt.Sprintf("stopped after write %d, and it is not seen at once", n), func(t *testing.T) { s.runScenarioOnce(t, mode{stopAfter: n, hide: n}) })
		t.Run(fmt.Sprintf("write %d is not seen at once", n), func(t *testing.T) { s.runScenarioOnce(t, mode{hide: n}) })
	}
	t.Run("every write is seen one write late", func(t *testing.T) { s.runScenarioOnce(t, mode{hideAll: true}) })
}

// mode says when to stop, and what to hide from the cache.
type mode struct {
	stopAfter int
	hide      int
	hideAll   bool
}

// attempt is one try.
type attempt struct {
	Scenario
	mode
	store     *chaos.Store
	cache     *chaos.View
	scheduler chaos.Scheduler
	process   *chaos.Process

	writes    int
	hidden    bool // the last write is not in the cache yet
	violation error
}

// runScenarioOnce runs the scenario once, and reports how many writes that took.
func (s Scenario) runScenarioOnce(t *testing.T, m mode) int {
	t.Helper()
	var writes int
	synctest.Test(t, func(t *testing.T) {
		r := &attempt{Scenario: s, mode: m, store: chaos.New(s.Scheme, clock.RealClock{}, s.Kinds...)}
		r.cache = r.store.NewView(s.Indexes)
		r.store.Wrote = r.observeWrite
		r.runActs(t)
		writes = r.writes
	})
	return writes
}

func (r *attempt) runActs(t *testing.T) {
	t.Helper()
	ctx, controllers := t.Context(), r.startControllers()
	for i, act := range r.Acts {
		if err := act(ctx, r.store.NewClient()); err != nil {
			t.Fatalf("act %d: %v", i+1, err)
		}
		controllers = r.runUntilSettled(ctx, t, controllers)
	}
	if err := r.Finally(ctx, r.store.NewClient()); err != nil {
		t.Errorf("in the end: %v", err)
	}
}

// startControllers starts a process. The cache of the one before it is as good as its own.
func (r *attempt) startControllers() []Controller {
	r.process = &chaos.Process{}
	return r.Start(r.cache.NewClient(), r.store.NewClient())
}

// runUntilSettled runs everything in rounds until nothing changes; stopped controllers
// are started anew.
func (r *attempt) runUntilSettled(ctx context.Context, t *testing.T, controllers []Controller) []Controller {
	t.Helper()
	var last error
	for range maxRounds {
		before := r.writes
		changed, err := r.World(ctx, r.store.NewClient())
		if err != nil {
			t.Fatalf("the world: %v", err)
		}
		changed = r.sweepNamespaces(ctx) || changed
		last = r.runControllers(ctx, t, controllers)
		if r.violation != nil {
			t.Fatalf("after write %d: %v", r.writes, r.violation)
		}
		if errors.Is(last, chaos.ErrPanic) {
			t.Fatal(last)
		}
		if r.stopAfter > 0 && r.writes >= r.stopAfter {
			r.stopAfter = 0
			controllers = r.startControllers()
			continue
		}
		if changed || r.writes != before || r.showHiddenWrites() {
			continue
		}
		if last == nil {
			return controllers
		}
	}
	t.Fatalf("it does not settle; the last error: %v", last)
	return nil
}

// sweepNamespaces lets namespaces that are being deleted go, with what is in them.
func (r *attempt) sweepNamespaces(ctx context.Context) bool {
	changed := false
	for _, space := range r.store.ListSharedObjects(&corev1.Namespace{}) {
		changed = r.store.SweepNamespace(ctx, space.GetName()) || changed
	}
	return changed
}

// runControllers runs each controller to its end, one call at a time.
func (r *attempt) runControllers(ctx context.Context, t *testing.T, controllers []Controller) error {
	t.Helper()
	var errs []error
	for _, c := range controllers {
		task := r.scheduler.StartTask(ctx, r.process, "", c)
		for {
			waiting, ended := r.scheduler.WaitForCalls()
			if len(ended) > 0 {
				break
			}
			if len(waiting) == 0 {
				t.Fatal("a controller waits for something that is not the API")
			}
			r.scheduler.ReleaseCall(waiting[0])
		}
		errs = append(errs, task.Err)
	}
	return errors.Join(errs...)
}

// observeWrite is told of every write. Those of users and other controllers are not
// counted, and seen at once, unless one before them is hidden.
func (r *attempt) observeWrite(ctx context.Context, w chaos.Write) {
	if chaos.TaskFromContext(ctx) == nil {
		if !r.hidden {
			r.cache.ShowAllWrites()
		}
		return
	}
	r.writes++
	r.hidden = r.hideAll || r.writes == r.hide
	for _, like := range r.Kinds {
		n := r.cache.CountUnseenWrites(like)
		if r.hidden && reflect.TypeOf(like) == reflect.TypeOf(w.After) {
			n--
		}
		r.cache.ShowNextWrites(like, n)
	}
	if r.Always != nil {
		r.violation = r.Always(chaos.WithoutTask(ctx), r.store.NewClient())
	}
	if r.writes == r.stopAfter || r.violation != nil {
		r.scheduler.KillProcess(r.process)
	}
}

// showHiddenWrites shows the cache what is hidden from it. It reports whether that was anything.
func (r *attempt) showHiddenWrites() bool {
	r.hidden = false
	return r.cache.ShowAllWrites()
}
