// Package crash tries controllers the hard way: it runs a scenario over an
// in-memory API and stops the controllers right after a write, or lets them read
// from a cache that is one write behind. It is for tests.
//
// A scenario that writes N times is run 3N+2 times: as it is; with a stop after
// each write; with a stop after each write and a new process whose cache does not
// show that write yet; with each write hidden from the cache until the next one;
// and with all of them hidden so.
package crash

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// ErrStopped is what every call answers after the controllers were stopped.
var ErrStopped = errors.New("the process has been stopped")

// Scenario is what is tried.
type Scenario struct {
	Scheme  *runtime.Scheme
	Indexes []Index
	// Start makes fresh controllers, as a new process would. cached is behind the
	// API by some writes, live is not; writes go through both to the API.
	Start func(cached, live client.Client) []Controller
	// Acts are what users do, one after the other; the controllers settle in between.
	Acts []func(ctx context.Context, api client.Client) error
	// World is what other controllers do: it is called in every round and reports
	// whether it changed anything.
	World func(ctx context.Context, api client.Client) (bool, error)
	// Always is checked after every write, Finally when all is settled.
	Always, Finally func(ctx context.Context, api client.Client) error
}

// Index is a field index of the cache.
type Index struct {
	Object client.Object
	Field  string
	Keys   client.IndexerFunc
}

// Controller reconciles every object of its kind once.
type Controller func(ctx context.Context) error

// maxRounds is when a scenario counts as one that never settles.
const maxRounds = 300

// Run tries the scenario in all ways.
func Run(t *testing.T, s Scenario) {
	t.Helper()
	total := s.try(t, mode{})
	if total == 0 {
		t.Fatal("the scenario writes nothing")
	}
	t.Logf("%d writes", total)
	for n := 1; n <= total; n++ {
		t.Run(fmt.Sprintf("stopped after write %d", n), func(t *testing.T) { s.try(t, mode{stopAfter: n}) })
		t.Run(fmt.Sprintf("stopped after write %d, and it is not seen at once", n), func(t *testing.T) { s.try(t, mode{stopAfter: n, hide: n}) })
		t.Run(fmt.Sprintf("write %d is not seen at once", n), func(t *testing.T) { s.try(t, mode{hide: n}) })
	}
	t.Run("every write is seen one write late", func(t *testing.T) { s.try(t, mode{hideAll: true}) })
}

// mode says when to stop, and what to hide from the cache.
type mode struct {
	stopAfter int
	hide      int
	hideAll   bool
}

// run is one try.
type run struct {
	Scenario
	mode
	api   client.WithWatch
	cache *cache

	mu      sync.Mutex // one write at a time, with what follows from it
	writes  int
	stopped bool
	broken  error
}

func (s Scenario) try(t *testing.T, m mode) int {
	t.Helper()
	ctx := t.Context()
	r := &run{Scenario: s, mode: m}
	b := fake.NewClientBuilder().WithScheme(s.Scheme).WithStatusSubresource(subresources(s.Scheme)...)
	for _, ix := range s.Indexes {
		b = b.WithIndex(ix.Object, ix.Field, ix.Keys)
	}
	r.api = b.Build()
	r.cache = newCache(s.Scheme, s.Indexes)
	controllers := s.Start(r.client(r.cache), r.client(r.api))
	for i, act := range s.Acts {
		if err := act(ctx, r.outside()); err != nil {
			t.Fatalf("act %d: %v", i+1, err)
		}
		controllers = r.settle(ctx, t, controllers)
	}
	if err := s.Finally(ctx, r.api); err != nil {
		t.Errorf("in the end: %v", err)
	}
	return r.writes
}

// settle runs everything in rounds until nothing changes; stopped controllers
// are started anew.
func (r *run) settle(ctx context.Context, t *testing.T, controllers []Controller) []Controller {
	t.Helper()
	var last error
	for range maxRounds {
		before := r.writes
		changed, err := r.World(ctx, r.outside())
		if err != nil {
			t.Fatalf("the world: %v", err)
		}
		last = r.round(ctx, controllers)
		if r.broken != nil {
			t.Fatalf("after write %d: %v", r.writes, r.broken)
		}
		if r.stopped {
			r.stopped, r.stopAfter = false, 0
			controllers = r.Start(r.client(r.cache), r.client(r.api))
			continue
		}
		if changed || r.writes != before || r.cache.catchUp() {
			continue
		}
		if last == nil {
			return controllers
		}
	}
	t.Fatalf("it does not settle; the last error: %v", last)
	return nil
}

func (r *run) round(ctx context.Context, controllers []Controller) error {
	var errs []error
	for _, c := range controllers {
		errs = append(errs, c(ctx))
	}
	return errors.Join(errs...)
}

// outside is the API for users and other controllers: their writes are not
// counted, and seen at once, unless one before them is hidden.
func (r *run) outside() client.Client {
	return r.intercept(r.api, func() error { return nil }, func(ctx context.Context, o client.Object) {
		hidden := r.cache.behind()
		r.cache.put(ctx, r.api, o)
		if !hidden {
			r.cache.catchUp()
		}
	})
}

// client is the API for the controllers, with reads from reader.
func (r *run) client(reader client.Reader) client.Client {
	dead := false
	return r.intercept(reader, func() error {
		if r.stopped {
			dead = true
		}
		if dead {
			return ErrStopped
		}
		return nil
	}, func(ctx context.Context, o client.Object) {
		r.writes++
		r.cache.catchUp()
		r.cache.put(ctx, r.api, o)
		if !r.hideAll && r.writes != r.hide {
			r.cache.catchUp()
		}
		if r.writes == r.stopAfter {
			r.stopped = true
		}
		if r.Always != nil && r.broken == nil {
			r.broken = r.Always(ctx, r.api)
		}
	})
}

func (r *run) intercept(reader client.Reader, alive func() error, wrote func(context.Context, client.Object)) client.Client {
	after := func(ctx context.Context, o client.Object, write func() error) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if err := alive(); err != nil {
			return err
		}
		if err := write(); err != nil {
			return err
		}
		wrote(ctx, o)
		return alive()
	}
	living := func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		return alive()
	}
	return interceptor.NewClient(r.api, interceptor.Funcs{
		Get: func(ctx context.Context, _ client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if err := living(); err != nil {
				return err
			}
			return reader.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := living(); err != nil {
				return err
			}
			return reader.List(ctx, list, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return after(ctx, o, func() error { return c.Create(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return after(ctx, o, func() error { return c.Patch(ctx, o, p, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return after(ctx, o, func() error { return c.Delete(ctx, o, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return after(ctx, o, func() error { return c.Update(ctx, o, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return after(ctx, o, func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
	})
}

// subresources are all kinds of the scheme that have a status of Hive's.
func subresources(s *runtime.Scheme) []client.Object {
	var out []client.Object
	for gvk := range s.AllKnownTypes() {
		if gvk.Group != "hive.openshift.io" {
			continue
		}
		if o, err := s.New(gvk); err == nil {
			if obj, ok := o.(client.Object); ok {
				out = append(out, obj)
			}
		}
	}
	return out
}
