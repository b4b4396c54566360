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
func (w *ObjectWaiter[T]) WaitUntilDone(ctx context.Context) error {
	for {
		done, err := w.watchObject(ctx)
		switch {
		case done:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && w.isPermanent(err):
			return err
		case err != nil:
			w.View.ShowState(DescribeHubError(err) + "; retrying")
		}
		if err := w.waitBeforeRetry(ctx); err != nil {
			return err
		}
	}
}

func (w *ObjectWaiter[T]) waitBeforeRetry(ctx context.Context) error {
	timer := w.View.Clock.NewTimer(watchRetryDelay)
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

func (e PermanentError) Unwrap() error { return e.error }

// isPermanent reports whether a retry cannot succeed. For some seconds after it starts, an API
// server knows neither RBAC rules nor custom kinds. So an error about them is permanent only if
// the hub has not answered a read before.
func (w *ObjectWaiter[T]) isPermanent(err error) bool {
	var no PermanentError
	if errors.As(err, &no) {
		return true
	}
	return !w.HasAnswered && (isAccessDenied(err) || IsAPIMissing(err))
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
func (w *ObjectWaiter[T]) watchObject(ctx context.Context) (done bool, err error) {
	key := client.ObjectKeyFromObject(w.Object)
	changes, err := w.Hub.Watch(ctx, w.List, client.InNamespace(key.Namespace),
		client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", key.Name)})
	if err != nil {
		return false, err
	}
	defer changes.Stop()
	err = w.Hub.Get(ctx, key, w.Object)
	if client.IgnoreNotFound(err) != nil || IsAPIMissing(err) {
		return false, err
	}
	w.HasAnswered = true
	if done, err := w.checkObject(w.Object, err == nil); done || err != nil {
		return done, err
	}
	for {
		select {
		case change, open := <-changes.ResultChan():
			if !open || change.Type == watch.Error {
				return false, nil
			}
			if done, err := w.handleEvent(change, key); done || err != nil {
				return done, err
			}
		case <-w.View.ticks:
			w.View.redrawLine()
		case <-ctx.Done():
			return false, nil
		}
	}
}

func (w *ObjectWaiter[T]) handleEvent(change watch.Event, key client.ObjectKey) (bool, error) {
	obj, ok := change.Object.(T)
	if !ok || client.ObjectKeyFromObject(obj) != key {
		return false, nil
	}
	return w.checkObject(obj, change.Type != watch.Deleted)
}

func (w *ObjectWaiter[T]) checkObject(obj T, exists bool) (bool, error) {
	done, err := w.CheckDone(obj, exists)
	if err != nil {
		return false, PermanentError{err}
	}
	return done, nil
}
