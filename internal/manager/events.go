package manager

import (
	"context"
	"fmt"

	"k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Rate limits of the client for events. Events inform people, and no controller waits for them.
// They have their own, slow client, so that they do not delay the writes that serve a burst of
// claims: events above the limit are sent a little later.
const (
	eventsQPS   = 25
	eventsBurst = 10
)

// newEventRecorders returns a function that creates the event recorder of a controller, and adds
// the broadcaster that sends the events to mgr.
func newEventRecorders(mgr ctrl.Manager, cfg *rest.Config) (func(controller string) events.EventRecorder, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.Burst = eventsQPS, eventsBurst
	client, err := v1.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("creating the client for events: %w", err)
	}
	b := events.NewBroadcaster(&events.EventSinkImpl{Interface: client})
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
