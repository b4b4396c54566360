package base

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

// DefaultTimeout is how long commands wait unless told otherwise: longer than
// an install takes.
const DefaultTimeout = time.Hour

// ErrTimedOut is why a context ended that was given a time to wait.
var ErrTimedOut = errors.New("timed out")

// WithWaitTimeout bounds a wait; 0 is no bound.
func WithWaitTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, timeout, ErrTimedOut)
}

// watchRetryDelay is the pause before a watch that broke is opened again.
const watchRetryDelay = 500 * time.Millisecond

// ObjectWaiter waits for something to become of one object.
type ObjectWaiter[T client.Object] struct {
	Hub  *Hub
	View *ProgressView
	// Object names what to look at and takes what is read; list is its kind's list.
	Object T
	List   client.ObjectList
	// CheckDone is told of every change, and of the object's absence. It says whether that will do.
	CheckDone func(obj T, exists bool) (done bool, err error)
	// HasAnswered is set once the hub has told of the object.
	HasAnswered bool
}

// WaitUntilDone returns when look is satisfied or errs, or with the cause of ctx. It sees
// a change as soon as the API server tells of it. When that cannot be reached, it
// tries until it can: a hub may be restarted meanwhile.
func (l *ObjectWaiter[T]) WaitUntilDone(ctx context.Context) error {
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
			l.View.ShowState(DescribeHubError(err) + "; trying again")
		}
		if err := l.waitBeforeRetry(ctx); err != nil {
			return err
		}
	}
}

func (l *ObjectWaiter[T]) waitBeforeRetry(ctx context.Context) error {
	timer := l.View.Clock.NewTimer(watchRetryDelay)
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// PermanentError is an error of look: the end of waiting.
type PermanentError struct{ error }

func (r PermanentError) Unwrap() error { return r.error }

// isPermanent reports whether trying again cannot help. An API server that has just
// started knows neither rights nor kinds for some seconds: to who was served
// before, that is no final answer.
func (l *ObjectWaiter[T]) isPermanent(err error) bool {
	var no PermanentError
	if errors.As(err, &no) {
		return true
	}
	return !l.HasAnswered && (isAccessDenied(err) || IsAPIMissing(err))
}

func isAccessDenied(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
}

// DescribeHubError says what keeps us from looking.
func DescribeHubError(err error) string {
	switch {
	case isAccessDenied(err):
		return "the hub does not let you look"
	case IsAPIMissing(err):
		return "the hub has no " + hivev1.GroupVersion.String()
	default:
		return "the hub does not answer"
	}
}

// watchObject looks at the object as it is, and then at each change, until the watch
// ends. The watch is opened first, so that nothing falls between the two.
func (l *ObjectWaiter[T]) watchObject(ctx context.Context) (done bool, err error) {
	key := client.ObjectKeyFromObject(l.Object)
	changes, err := l.Hub.Watch(ctx, l.List, client.InNamespace(key.Namespace),
		client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", key.Name)})
	if err != nil {
		return false, err
	}
	defer changes.Stop()
	err = l.Hub.Get(ctx, key, l.Object)
	if client.IgnoreNotFound(err) != nil || IsAPIMissing(err) {
		return false, err
	}
	l.HasAnswered = true
	if done, err := l.checkObject(l.Object, err == nil); done || err != nil {
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
		case <-l.View.ticks:
			l.View.redrawLine()
		case <-ctx.Done():
			return false, nil
		}
	}
}

func (l *ObjectWaiter[T]) handleEvent(change watch.Event, key client.ObjectKey) (bool, error) {
	obj, ok := change.Object.(T)
	if !ok || client.ObjectKeyFromObject(obj) != key {
		return false, nil
	}
	return l.checkObject(obj, change.Type != watch.Deleted)
}

func (l *ObjectWaiter[T]) checkObject(obj T, exists bool) (bool, error) {
	done, err := l.CheckDone(obj, exists)
	if err != nil {
		return false, PermanentError{err}
	}
	return done, nil
}
