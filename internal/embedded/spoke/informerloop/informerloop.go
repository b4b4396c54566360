// Package informerloop calls a function for each object of a kind that is new, has changed, or is due for
// another reconciliation: a minimal controller.
package informerloop

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// Delays before a failed call is retried: the first, and the maximum.
const (
	firstRetryDelay = 100 * time.Millisecond
	maxRetryDelay   = 10 * time.Second
)

// A ReconcileFunc brings one object, which it must not change, to its desired state. It is called
// again after the returned duration, if that is not zero.
type ReconcileFunc[T runtime.Object] func(ctx context.Context, object T) (again time.Duration, err error)

type queue = workqueue.TypedRateLimitingInterface[string]

// Run calls f for the objects that source lists, one at a time, until ctx ends. It logs and retries
// a failed call. It does not report deletions.
func Run[T runtime.Object](ctx context.Context, source cache.ListerWatcher, example T, f ReconcileFunc[T]) {
	RunWithDeletions(ctx, source, example, f, nil)
}

// RunWithDeletions is like Run, and calls gone, if it is not nil, with the key (namespace/name) of
// each deleted object.
func RunWithDeletions[T runtime.Object](ctx context.Context, source cache.ListerWatcher, example T, f ReconcileFunc[T], gone func(key string)) {
	q := workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstRetryDelay, maxRetryDelay))
	store, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: source,
		ObjectType:    example,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { enqueueObject(q, o) },
			UpdateFunc: func(_, o any) { enqueueObject(q, o) },
			DeleteFunc: func(o any) {
				if gone != nil {
					enqueueObject(q, o)
				}
			},
		},
	})
	go informer.RunWithContext(ctx)
	context.AfterFunc(ctx, q.ShutDown)
	for {
		key, down := q.Get()
		if down {
			return
		}
		again, err := reconcileKey(ctx, store, key, f, gone)
		finishReconcile(ctx, q, key, again, err)
	}
}

func enqueueObject(q queue, object any) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
	if err != nil {
		klog.ErrorS(err, "ignored an object without a name")
		return
	}
	q.Add(key)
}

func reconcileKey[T runtime.Object](ctx context.Context, store cache.Store, key string, f ReconcileFunc[T], gone func(string)) (time.Duration, error) {
	object, exists, err := store.GetByKey(key)
	if err != nil {
		return 0, fmt.Errorf("reading %s: %w", key, err)
	}
	if !exists {
		if gone != nil {
			gone(key)
		}
		return 0, nil
	}
	return f(ctx, object.(T))
}

func finishReconcile(ctx context.Context, q queue, key string, again time.Duration, err error) {
	defer q.Done(key)
	if err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "will retry", "object", key)
		q.AddRateLimited(key)
		return
	}
	q.Forget(key)
	if again > 0 && ctx.Err() == nil {
		q.AddAfter(key, again)
	}
}
