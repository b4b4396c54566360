package manager

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/client-go/tools/events"
)

// slowSink sends nothing until it is released.
type slowSink struct {
	events.EventSink
	released chan struct{}
	sent     atomic.Int64
}

func (s *slowSink) Create(_ context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
	<-s.released
	s.sent.Add(1)
	return e, nil
}

// TestFewEventsWait records many events while none can be sent: those beyond the limit are dropped, except for warnings, and later ones are
// sent again.
func TestFewEventsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowSink{released: make(chan struct{})}
		sink := &boundedSink{EventSink: slow}
		record := func(n int, typ string) {
			for range n {
				go func() {
					if _, err := sink.Create(t.Context(), &eventsv1.Event{Type: typ}); err != nil {
						t.Error(err)
					}
				}()
			}
			synctest.Wait()
		}
		record(maxWaitingEvents+300, corev1.EventTypeNormal)
		record(7, corev1.EventTypeWarning)
		record(5, corev1.EventTypeNormal)
		close(slow.released)
		synctest.Wait()
		if n := slow.sent.Load(); n != maxWaitingEvents+7 {
			t.Errorf("%d events were sent, want %d", n, maxWaitingEvents+7)
		}
		record(5, corev1.EventTypeNormal)
		if n := slow.sent.Load(); n != maxWaitingEvents+12 {
			t.Errorf("%d events were sent, want those after the others, too", n)
		}
	})
}
