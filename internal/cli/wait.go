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

// withWaitTimeout bounds a wait; 0 is no bound.
func withWaitTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, timeout, errTimedOut)
}

// watchRetryDelay is the pause before a watch that broke is opened again.
const watchRetryDelay = 500 * time.Millisecond

// objectWaiter waits for something to become of one object.
type objectWaiter[T client.Object] struct {
	hub  *hub
	view *progressView
	// object names what to look at and takes what is read; list is its kind's list.
	object T
	list   client.ObjectList
	// checkDone is told of every change, and of the object's absence. It says whether that will do.
	checkDone func(obj T, exists bool) (done bool, err error)
	// hasAnswered is set once the hub has told of the object.
	hasAnswered bool
}

// waitUntilDone returns when look is satisfied or errs, or with the cause of ctx. It sees
// a change as soon as the API server tells of it. When that cannot be reached, it
// tries until it can: a hub may be restarted meanwhile.
func (l *objectWaiter[T]) waitUntilDone(ctx context.Context) error {
	for {
		done, err := l.watchObject(ctx)
		switch {
		case done:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && l.isPermanent(err):
			return err
		case err != nil:
			l.view.showState(describeHubError(err) + "; trying again")
		}
		if err := l.waitBeforeRetry(ctx); err != nil {
			return err
		}
	}
}

func (l *objectWaiter[T]) waitBeforeRetry(ctx context.Context) error {
	timer := l.view.clock.NewTimer(watchRetryDelay)
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// permanentError is an error of look: the end of waiting.
type permanentError struct{ error }

func (r permanentError) Unwrap() error { return r.error }

// isPermanent reports whether trying again cannot help. An API server that has just
// started knows neither rights nor kinds for some seconds: to who was served
// before, that is no final answer.
func (l *objectWaiter[T]) isPermanent(err error) bool {
	var no permanentError
	if errors.As(err, &no) {
		return true
	}
	return !l.hasAnswered && (isAccessDenied(err) || isAPIMissing(err))
}

func isAccessDenied(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
}

// describeHubError says what keeps us from looking.
func describeHubError(err error) string {
	switch {
	case isAccessDenied(err):
		return "the hub does not let you look"
	case isAPIMissing(err):
		return "the hub has no " + hivev1.GroupVersion.String()
	default:
		return "the hub does not answer"
	}
}

// watchObject looks at the object as it is, and then at each change, until the watch
// ends. The watch is opened first, so that nothing falls between the two.
func (l *objectWaiter[T]) watchObject(ctx context.Context) (done bool, err error) {
	key := client.ObjectKeyFromObject(l.object)
	changes, err := l.hub.Watch(ctx, l.list, client.InNamespace(key.Namespace),
		client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", key.Name)})
	if err != nil {
		return false, err
	}
	defer changes.Stop()
	err = l.hub.Get(ctx, key, l.object)
	if client.IgnoreNotFound(err) != nil || isAPIMissing(err) {
		return false, err
	}
	l.hasAnswered = true
	if done, err := l.checkObject(l.object, err == nil); done || err != nil {
		return done, err
	}
	for {
		select {
		case change, open := <-changes.ResultChan():
			if !open || change.Type == watch.Error {
				return false, nil
			}
			if done, err := l.handleEvent(change, key); done || err != nil {
				return done, err
			}
		case <-l.view.ticks:
			l.view.redrawLine()
		case <-ctx.Done():
			return false, nil
		}
	}
}

func (l *objectWaiter[T]) handleEvent(change watch.Event, key client.ObjectKey) (bool, error) {
	obj, ok := change.Object.(T)
	if !ok || client.ObjectKeyFromObject(obj) != key {
		return false, nil
	}
	return l.checkObject(obj, change.Type != watch.Deleted)
}

func (l *objectWaiter[T]) checkObject(obj T, exists bool) (bool, error) {
	done, err := l.checkDone(obj, exists)
	if err != nil {
		return false, permanentError{err}
	}
	return done, nil
}
