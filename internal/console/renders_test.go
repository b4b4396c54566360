package console

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

func TestStreamsOfOnePageShareIt(t *testing.T) {
	r := newRenderScheduler(clocktesting.NewFakeClock(start))
	var built atomic.Int32
	news := make(chan struct{})
	all := func() {
		t.Helper()
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				one, leave := r.acquireRenderer("alice")
				defer leave()
				f, _, err := r.renderLive(t.Context(), one, "page", func() <-chan struct{} { return news }, func() (*pageData, error) {
					built.Add(1)
					return &pageData{Digest: "d"}, nil
				})
				if err != nil || f.Digest != "d" {
					t.Errorf("got %v, %v", f, err)
				}
			})
		}
		wg.Wait()
	}
	_, stay := r.acquireRenderer("alice")
	defer stay()
	all()
	if n := built.Load(); n != 1 {
		t.Errorf("50 streams made the page %d times", n)
	}
	old := news
	news = make(chan struct{})
	close(old)
	all()
	if n := built.Load(); n != 2 {
		t.Errorf("after a change it was made %d times", n)
	}
}

func TestOnePersonsPagesTakeAQuarterOfAProcessor(t *testing.T) {
	clock := clocktesting.NewFakeClock(start)
	r := newRenderScheduler(clock)
	build := func() (*pageData, error) { clock.Step(time.Second); return &pageData{}, nil }
	changed := func() <-chan struct{} { c := make(chan struct{}); close(c); return c }
	alice, leave := r.acquireRenderer("alice")
	defer leave()
	if _, _, err := r.renderLive(t.Context(), alice, "a", changed, build); err != nil {
		t.Fatal(err)
	}
	done := make(chan time.Time, 1)
	go func() {
		_, _, err := r.renderLive(t.Context(), alice, "b", changed, func() (*pageData, error) { done <- clock.Now(); return &pageData{}, nil })
		if err != nil {
			t.Error(err)
		}
	}()
	for !clock.HasWaiters() {
		time.Sleep(time.Millisecond) //nolint:forbidigo // the clock tells nobody that it is waited for
	}
	bob, leaveBob := r.acquireRenderer("bob")
	defer leaveBob()
	if _, _, err := r.renderLive(t.Context(), bob, "a", changed, func() (*pageData, error) { return &pageData{}, nil }); err != nil {
		t.Errorf("bob waits for alice: %v", err)
	}
	clock.Step(idleFactor*time.Second - time.Millisecond)
	select {
	case <-done:
		t.Error("her next page is made too soon")
	case <-time.After(20 * time.Millisecond):
	}
	clock.Step(time.Millisecond)
	<-done
}

func TestWhoGoesDoesNotWait(t *testing.T) {
	r := newRenderScheduler(clocktesting.NewFakeClock(start))
	one, leave := r.acquireRenderer("alice")
	defer leave()
	one.turn <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := r.renderLive(ctx, one, "a", nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := r.renderOnce(ctx, "alice", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
