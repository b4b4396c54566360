package manager

import (
	"context"
	"fmt"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Rate limits of the client for events. Events inform people, and no controller waits for them.
// They have their own, slow client, so that they do not delay the writes that serve a burst of
// claims: events above the limit are sent a little later.
//
// New Normal events are dropped while maxWaitingEvents new ones wait for that: nobody reads the forty thousand of a pool of ten
// thousand clusters, which would be written for half an hour after everything else is done. Warnings, and repetitions of events
// that were sent, are not dropped.
const (
	eventsQPS        = 25
	eventsBurst      = 10
	maxWaitingEvents = 500
)

// A boundedSink is a sink that drops Normal events while too many wait for it.
type boundedSink struct {
	events.EventSink
	waiting atomic.Int64
}

// Create sends a new event, or drops it.
func (s *boundedSink) Create(ctx context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
	if s.waiting.Add(1) > maxWaitingEvents && e.Type == corev1.EventTypeNormal {
		s.waiting.Add(-1)
		return e, nil
	}
	defer s.waiting.Add(-1)
	return s.EventSink.Create(ctx, e)
}

// newEventRecorders returns a function that creates the event recorder of a controller, and adds
// the broadcaster that sends the events to mgr.
func newEventRecorders(mgr ctrl.Manager, cfg *rest.Config) (func(controller string) events.EventRecorder, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.Burst = eventsQPS, eventsBurst
	client, err := v1.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("creating the client for events: %w", err)
	}
	b := events.NewBroadcaster(&boundedSink{EventSink: &events.EventSinkImpl{Interface: client}})
	err = mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		if err := b.StartRecordingToSinkWithContext(ctx); err != nil {
			return fmt.Errorf("sending events: %w", err)
		}
		<-ctx.Done()
		b.Shutdown()
		return nil
	}))
	return func(controller string) events.EventRecorder { return b.NewRecorder(mgr.GetScheme(), controller) }, err
}
