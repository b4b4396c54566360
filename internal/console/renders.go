package console

import (
	"context"
	"runtime"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// renderScheduler schedules the rendering of pages so that no viewer takes the processor from the
// hub that runs in the same process. It renders one page at a time for each user. Streams of the
// same page share the result. After a live page, the user's next live page waits idleFactor times
// as long as the rendering took.
type renderScheduler struct {
	clock clock.WithTicker
	slots chan struct{} // shared by all users

	mu        sync.Mutex
	renderers map[string]*renderer
}

// idleFactor limits the live pages of a user to a quarter of one processor.
const idleFactor = 3

// renderer renders the pages of one user.
type renderer struct {
	turn      chan struct{} // contains one element while a page is rendered
	nextStart time.Time     // of the next live page
	users     int           // guarded by renderScheduler.mu
	pages     map[string]renderedPage
}

// renderedPage is a rendered page. changed is closed when its objects change.
type renderedPage struct {
	frame   *pageData
	changed <-chan struct{}
	at      time.Time
}

func newRenderScheduler(c clock.WithTicker) *renderScheduler {
	return &renderScheduler{clock: c, slots: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)), renderers: map[string]*renderer{}}
}

// acquireRenderer returns the renderer of a user. The caller must call leave when it no longer
// needs it.
func (r *renderScheduler) acquireRenderer(person string) (one *renderer, leave func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one = r.renderers[person]
	if one == nil {
		one = &renderer{turn: make(chan struct{}, 1), pages: map[string]renderedPage{}}
		r.renderers[person] = one
	}
	one.users++
	return one, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(r.renderers, person)
		}
	}
}

// renderOnce renders a page that no stream follows.
func (r *renderScheduler) renderOnce(ctx context.Context, person string, build func() (*pageData, error)) (*pageData, error) {
	one, leave := r.acquireRenderer(person)
	defer leave()
	if err := acquireSlot(ctx, one.turn); err != nil {
		return nil, err
	}
	defer func() { <-one.turn }()
	if err := acquireSlot(ctx, r.slots); err != nil {
		return nil, err
	}
	defer func() { <-r.slots }()
	return build()
}

// renderLive returns the page of a key, rendered again if it has changed, and a channel that is
// closed at the next change.
func (r *renderScheduler) renderLive(ctx context.Context, one *renderer, key string, changed func() <-chan struct{},
	build func() (*pageData, error),
) (*pageData, <-chan struct{}, error) {
	if err := acquireSlot(ctx, one.turn); err != nil {
		return nil, nil, err
	}
	defer func() { <-one.turn }()
	if last, ok := one.pages[key]; ok && !isClosed(last.changed) && r.clock.Since(last.at) < refreshInterval/2 {
		return last.frame, last.changed, nil
	}
	delete(one.pages, key)
	if err := r.sleepFor(ctx, one.nextStart.Sub(r.clock.Now())); err != nil {
		return nil, nil, err
	}
	if err := acquireSlot(ctx, r.slots); err != nil {
		return nil, nil, err
	}
	defer func() { <-r.slots }()
	began, news := r.clock.Now(), changed()
	f, err := build()
	now := r.clock.Now()
	one.nextStart = now.Add(idleFactor * now.Sub(began))
	if err != nil {
		return nil, news, err
	}
	if len(one.pages) >= maxLivePages {
		clear(one.pages)
	}
	one.pages[key] = renderedPage{f, news, now}
	return f, news, nil
}

func (r *renderScheduler) sleepFor(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := r.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C():
		return nil
	}
}

// acquireSlot waits until slots has room.
func acquireSlot(ctx context.Context, slots chan struct{}) error {
	select {
	case slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
