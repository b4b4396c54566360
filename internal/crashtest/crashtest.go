// Package crashtest tests the crash tolerance of controllers: it runs a scenario against an in-memory
// API and stops the controllers right after a write, or lets them read from a cache that is one
// write behind. It is for tests.
//
// A scenario that writes N times is run 3N+2 times: unmodified; with a stop after each write; with
// a stop after each write and a new process whose cache does not contain that write yet; with each
// write hidden from the cache until the next one; and with all of them hidden in this way.
//
// The API, its cache and the order of calls come from package chaos, which runs controllers through
// random histories instead.
package crashtest

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

	"hotspare.io/hotspare/internal/crashtest/chaos"
)

// Scenario is the scenario to test. Each run has its own synctest bubble, in which time stands
// still. Namespaces must be created before the objects in them.
type Scenario struct {
	Scheme *runtime.Scheme
	// Kinds are the kinds of all objects in the scenario.
	Kinds []client.Object
	// Indexes are the indexes of the cache.
	Indexes *chaos.Indexes
	// Start returns new controllers, as a new process would. cached may be some writes behind the
	// API, live is not; both write to the API.
	Start func(cached, live client.Client) []Controller
	// Acts are the actions of users, in order; the controllers settle after each.
	Acts []func(ctx context.Context, api client.Client) error
	// World acts for the other controllers: it is called in every round and reports whether it
	// changed anything. It does not need to sweep namespaces that are being deleted.
	World func(ctx context.Context, api client.Client) (bool, error)
	// Always is checked after every write of the controllers, Finally when everything has settled.
	Always, Finally func(ctx context.Context, api client.Client) error
}

// Controller reconciles every object of its kind once.
type Controller func(ctx context.Context) error

// maxRounds is the number of rounds after which a scenario counts as one that never settles.
const maxRounds = 300

// Run runs the scenario in all modes.
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

// mode defines when to stop the controllers, and which writes to hide from the cache.
type mode struct {
	stopAfter int
	hide      int
	hideAll   bool
}

// attempt is one run of the scenario.
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

// runScenarioOnce runs the scenario once, and returns the number of writes.
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

func (a *attempt) runActs(t *testing.T) {
	t.Helper()
	ctx, controllers := t.Context(), a.startControllers()
	for i, act := range a.Acts {
		if err := act(ctx, a.store.NewClient()); err != nil {
			t.Fatalf("act %d: %v", i+1, err)
		}
		controllers = a.runUntilSettled(ctx, t, controllers)
	}
	if err := a.Finally(ctx, a.store.NewClient()); err != nil {
		t.Errorf("in the end: %v", err)
	}
}

// startControllers starts a process. It reuses the cache of the previous process, which is
// equivalent to a new one.
func (a *attempt) startControllers() []Controller {
	a.process = &chaos.Process{}
	return a.Start(a.cache.NewClient(), a.store.NewClient())
}

// runUntilSettled runs everything in rounds until nothing changes; it restarts stopped controllers.
func (a *attempt) runUntilSettled(ctx context.Context, t *testing.T, controllers []Controller) []Controller {
	t.Helper()
	var last error
	for range maxRounds {
		before := a.writes
		changed, err := a.World(ctx, a.store.NewClient())
		if err != nil {
			t.Fatalf("the world: %v", err)
		}
		changed = a.sweepNamespaces(ctx) || changed
		last = a.runControllers(ctx, t, controllers)
		if a.violation != nil {
			t.Fatalf("after write %d: %v", a.writes, a.violation)
		}
		if errors.Is(last, chaos.ErrPanic) {
			t.Fatal(last)
		}
		if a.stopAfter > 0 && a.writes >= a.stopAfter {
			a.stopAfter = 0
			controllers = a.startControllers()
			continue
		}
		if changed || a.writes != before || a.showHiddenWrites() {
			continue
		}
		if last == nil {
			return controllers
		}
	}
	t.Fatalf("it does not settle; the last error: %v", last)
	return nil
}

// sweepNamespaces deletes the namespaces that are being deleted, with their contents.
func (a *attempt) sweepNamespaces(ctx context.Context) bool {
	changed := false
	for _, space := range a.store.ListSharedObjects(&corev1.Namespace{}) {
		changed = a.store.SweepNamespace(ctx, space.GetName()) || changed
	}
	return changed
}

// runControllers runs each controller until it returns, one call at a time.
func (a *attempt) runControllers(ctx context.Context, t *testing.T, controllers []Controller) error {
	t.Helper()
	var errs []error
	for _, c := range controllers {
		task := a.scheduler.StartTask(ctx, a.process, "", c)
		for {
			waiting, ended := a.scheduler.WaitForCalls()
			if len(ended) > 0 {
				break
			}
			if len(waiting) == 0 {
				t.Fatal("a controller waits for something that is not the API")
			}
			a.scheduler.ReleaseCall(waiting[0])
		}
		errs = append(errs, task.Err)
	}
	return errors.Join(errs...)
}

// observeWrite is called after every write. Writes of users and other controllers are not counted,
// and are shown to the cache at once, unless an earlier write is hidden.
func (a *attempt) observeWrite(ctx context.Context, w chaos.Write) {
	if chaos.TaskFromContext(ctx) == nil {
		if !a.hidden {
			a.cache.ShowAllWrites()
		}
		return
	}
	a.writes++
	a.hidden = a.hideAll || a.writes == a.hide
	for _, like := range a.Kinds {
		n := a.cache.CountUnseenWrites(like)
		if a.hidden && reflect.TypeOf(like) == reflect.TypeOf(w.After) {
			n--
		}
		a.cache.ShowNextWrites(like, n)
	}
	if a.Always != nil {
		a.violation = a.Always(chaos.WithoutTask(ctx), a.store.NewClient())
	}
	if a.writes == a.stopAfter || a.violation != nil {
		a.scheduler.KillProcess(a.process)
	}
}

// showHiddenWrites shows the hidden writes to the cache. It reports whether there were any.
func (a *attempt) showHiddenWrites() bool {
	a.hidden = false
	return a.cache.ShowAllWrites()
}
