package cli

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// errTimedOut is why a context ended that was given a time to wait.
var errTimedOut = errors.New("timed out")

// within bounds a wait; 0 is no bound.
func within(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, timeout, errTimedOut)
}

// reopen is the pause before a watch that broke is opened again.
const reopen = 500 * time.Millisecond

// lookout waits for something to become of one object.
type lookout[T client.Object] struct {
	hub  *hub
	view *view
	// object names what to look at and takes what is read; list is its kind's list.
	object T
	list   client.ObjectList
	// look is told of every change, and of the object's absence. It says whether that will do.
	look func(obj T, exists bool) (done bool, err error)
	// known is set once the hub has told of the object.
	known bool
}

// wait returns when look is satisfied or errs, or with the cause of ctx. It sees
// a change as soon as the API server tells of it. When that cannot be reached, it
// tries until it can: a hub may be restarted meanwhile.
func (l *lookout[T]) wait(ctx context.Context) error {
	for {
		done, err := l.follow(ctx)
		switch {
		case done:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && l.hopeless(err):
			return err
		case err != nil:
			l.view.show(trouble(err) + "; trying again")
		}
		if err := l.pause(ctx); err != nil {
			return err
		}
	}
}

func (l *lookout[T]) pause(ctx context.Context) error {
	timer := l.view.clock.NewTimer(reopen)
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// refusal is an error of look: the end of waiting.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// hopeless reports whether trying again cannot help. An API server that has just
// started knows neither rights nor kinds for some seconds: to who was served
// before, that is no final answer.
func (l *lookout[T]) hopeless(err error) bool {
	var no refusal
	if errors.As(err, &no) {
		return true
	}
	return !l.known && (denied(err) || noSuchAPI(err))
}

func denied(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) }

// trouble says what keeps us from looking.
func trouble(err error) string {
	switch {
	case denied(err):
		return "the hub does not let you look"
	case noSuchAPI(err):
		return "the hub has no " + hivev1.GroupVersion.String()
	default:
		return "the hub does not answer"
	}
}

// follow looks at the object as it is, and then at each change, until the watch
// ends. The watch is opened first, so that nothing falls between the two.
func (l *lookout[T]) follow(ctx context.Context) (done bool, err error) {
	key := client.ObjectKeyFromObject(l.object)
	changes, err := l.hub.Watch(ctx, l.list, client.InNamespace(key.Namespace),
		client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", key.Name)})
	if err != nil {
		return false, err
	}
	defer changes.Stop()
	err = l.hub.Get(ctx, key, l.object)
	if client.IgnoreNotFound(err) != nil || noSuchAPI(err) {
		return false, err
	}
	l.known = true
	if done, err := l.judge(l.object, err == nil); done || err != nil {
		return done, err
	}
	for {
		select {
		case change, open := <-changes.ResultChan():
			if !open || change.Type == watch.Error {
				return false, nil
			}
			if done, err := l.hear(change, key); done || err != nil {
				return done, err
			}
		case <-l.view.ticks:
			l.view.redraw()
		case <-ctx.Done():
			return false, nil
		}
	}
}

func (l *lookout[T]) hear(change watch.Event, key client.ObjectKey) (bool, error) {
	obj, ok := change.Object.(T)
	if !ok || client.ObjectKeyFromObject(obj) != key {
		return false, nil
	}
	return l.judge(obj, change.Type != watch.Deleted)
}

func (l *lookout[T]) judge(obj T, exists bool) (bool, error) {
	done, err := l.look(obj, exists)
	if err != nil {
		return false, refusal{err}
	}
	return done, nil
}
