package etcdclient

import (
	"context"
	"strings"
	"sync/atomic"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
)

// An API server answers a consistent list from its cache, when the watch that fills the cache has reached the revision
// that etcd had when the list arrived. A write of another kind of object raises that revision without an event for
// the watch. For this case the API server asks etcd for the progress of the watch, at most ten times a second: on a hub where
// something is always written, each list waits for that, and so does each creation of a Role or a RoleBinding, which
// lists the rights of its creator.

// prefixWatcher remembers the prefix of the first watch, which is the one that fills the cache: an API server has one
// client for each kind of object.
type prefixWatcher struct {
	clientv3.Watcher
	prefix atomic.Pointer[string]
}

// Watch implements clientv3.Watcher.
func (w *prefixWatcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	if strings.HasSuffix(key, "/") {
		w.prefix.CompareAndSwap(nil, &key)
	}
	return w.Watcher.Watch(ctx, key, opts...)
}

// isPrefix reports whether key, with or without a slash at its end, is the watched prefix.
func (w *prefixWatcher) isPrefix(key string) bool {
	prefix := w.prefix.Load()
	return prefix != nil && strings.TrimSuffix(key, "/") == strings.TrimSuffix(*prefix, "/")
}

// progressClient requests the progress of the watch with each read of the revision.
type progressClient struct {
	*kubernetes.Client
	watcher *prefixWatcher
}

// Get implements kubernetes.Interface. An API server reads the revision as an object whose key is the prefix of
// the objects of its kind. No object has that key.
func (c progressClient) Get(ctx context.Context, key string, opts kubernetes.GetOptions) (kubernetes.GetResponse, error) {
	r, err := c.Client.Get(ctx, key, opts)
	if err == nil && c.watcher.isPrefix(key) {
		// The context selects the stream of watches: that of the API server's own. If the request is lost, the API
		// server's next one has the same effect.
		_ = c.watcher.RequestProgress(clientv3.WithRequireLeader(ctx))
	}
	return r, err
}
