package console

import (
	"context"
	"runtime"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// renders makes pages for those who look at them, so that no viewer takes the computer
// from the hub beside the console: one page at a time is made for each person, streams of
// one page share it, and after a live page the person's next one waits for idleFactor
// times as long as it took.
type renders struct {
	clock clock.WithTicker
	slots chan struct{} // of all persons

	mu sync.Mutex
	of map[string]*renderer
}

// idleFactor leaves a person a quarter of one processor for live pages.
const idleFactor = 3

// renderer makes the pages of one person.
type renderer struct {
	turn  chan struct{} // holds one element while a page is made
	next  time.Time     // of the next live page
	users int           // of renders.mu
	made  map[string]rendered
}

// rendered is a page that was made, and what is closed when it has changed since.
type rendered struct {
	frame   *frame
	changed <-chan struct{}
	at      time.Time
}

func newRenders(c clock.WithTicker) *renders {
	return &renders{clock: c, slots: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)), of: map[string]*renderer{}}
}

// join returns the renderer of a person; leave is called when it is not needed any more.
func (r *renders) join(person string) (one *renderer, leave func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one = r.of[person]
	if one == nil {
		one = &renderer{turn: make(chan struct{}, 1), made: map[string]rendered{}}
		r.of[person] = one
	}
	one.users++
	return one, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(r.of, person)
		}
	}
}

// once makes a page that is not followed.
func (r *renders) once(ctx context.Context, person string, build func() (*frame, error)) (*frame, error) {
	one, leave := r.join(person)
	defer leave()
	if err := take(ctx, one.turn); err != nil {
		return nil, err
	}
	defer func() { <-one.turn }()
	if err := take(ctx, r.slots); err != nil {
		return nil, err
	}
	defer func() { <-r.slots }()
	return build()
}

// live returns the page key, made anew if it has changed since it was made, and what is
// closed when it changes again.
func (r *renders) live(ctx context.Context, one *renderer, key string, changed func() <-chan struct{}, build func() (*frame, error)) (*frame, <-chan struct{}, error) {
	if err := take(ctx, one.turn); err != nil {
		return nil, nil, err
	}
	defer func() { <-one.turn }()
	if last, ok := one.made[key]; ok && !closed(last.changed) && r.clock.Since(last.at) < slow/2 {
		return last.frame, last.changed, nil
	}
	delete(one.made, key)
	if err := r.sleep(ctx, one.next.Sub(r.clock.Now())); err != nil {
		return nil, nil, err
	}
	if err := take(ctx, r.slots); err != nil {
		return nil, nil, err
	}
	defer func() { <-r.slots }()
	began, news := r.clock.Now(), changed()
	f, err := build()
	now := r.clock.Now()
	one.next = now.Add(idleFactor * now.Sub(began))
	if err != nil {
		return nil, news, err
	}
	if len(one.made) >= mostLive {
		clear(one.made)
	}
	one.made[key] = rendered{f, news, now}
	return f, news, nil
}

func (r *renders) sleep(ctx context.Context, d time.Duration) error {
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

// take waits for a place in slots.
func take(ctx context.Context, slots chan struct{}) error {
	select {
	case slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
