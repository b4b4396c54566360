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

// DefaultTimeout is the default of --timeout: longer than an install takes.
const DefaultTimeout = time.Hour

// ErrTimedOut is the cause of a context whose wait timeout expired.
var ErrTimedOut = errors.New("timed out")

// WithWaitTimeout returns a context with a timeout; 0 means no timeout.
func WithWaitTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, timeout, ErrTimedOut)
}

// watchRetryDelay is the delay before a broken watch is reopened.
const watchRetryDelay = 500 * time.Millisecond

// ObjectWaiter waits until an object reaches a state.
type ObjectWaiter[T client.Object] struct {
	Hub  *Hub
	View *ProgressView
	// Object has the key of the object to watch, and receives what is read. List is the list
	// type of its kind.
	Object T
	List   client.ObjectList
	// CheckDone is called for each change, and when the object does not exist. It reports
	// whether the wait is over.
	CheckDone func(obj T, exists bool) (done bool, err error)
	// HasAnswered is set once the hub has answered a read of the object.
	HasAnswered bool
}

// WaitUntilDone returns when CheckDone reports done or returns an error, or with the cause of
// ctx. It watches the object. While the API server cannot be reached, it retries: the hub may be
// restarting.
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
			l.View.ShowState(DescribeHubError(err) + "; retrying")
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

// PermanentError is an error of CheckDone, which ends the wait.
type PermanentError struct{ error }

func (r PermanentError) Unwrap() error { return r.error }

// isPermanent reports whether a retry cannot succeed. For some seconds after it starts, an API
// server knows neither RBAC rules nor custom kinds. So an error about them is permanent only if
// the hub has not answered a read before.
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

// DescribeHubError explains why a read from the hub failed.
func DescribeHubError(err error) string {
	switch {
	case isAccessDenied(err):
		return "the hub denies access"
	case IsAPIMissing(err):
		return "the hub does not serve " + hivev1.GroupVersion.String()
	default:
		return "the hub does not answer"
	}
}

// watchObject checks the current object and then each change, until the watch ends. It opens the
// watch before it reads the object, so that it misses no change in between.
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
