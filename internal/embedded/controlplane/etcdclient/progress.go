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
// lists the rights of its creator. This client asks for
// the progress together with the revision.

// cacheWatcher remembers what is known of the watch that fills the cache. An API server has one client for each kind of object.
type cacheWatcher struct {
	clientv3.Watcher
	// prefix is that of the first watch: the one that fills the cache, if there is a cache.
	prefix atomic.Pointer[string]
	// hasCache is set after the first request of the API server, which shows that there is a cache.
	hasCache atomic.Bool
}

// Watch implements clientv3.Watcher.
func (w *cacheWatcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	if strings.HasSuffix(key, "/") {
		w.prefix.CompareAndSwap(nil, &key)
	}
	return w.Watcher.Watch(ctx, key, opts...)
}

// RequestProgress implements clientv3.Watcher.
func (w *cacheWatcher) RequestProgress(ctx context.Context) error {
	w.hasCache.Store(true)
	return w.Watcher.RequestProgress(ctx)
}

// fillsFrom reports whether the cache has the objects whose keys begin with prefix, with or without a slash at its end.
func (w *cacheWatcher) fillsFrom(prefix string) bool {
	watched := w.prefix.Load()
	return w.hasCache.Load() && watched != nil && strings.TrimSuffix(prefix, "/") == strings.TrimSuffix(*watched, "/")
}

// progressClient requests the progress of the watch with each read of the revision.
type progressClient struct {
	*kubernetes.Client
	watcher *cacheWatcher
}

// Get implements kubernetes.Interface. An API server reads the revision as an object whose key is the prefix of
// the objects of its kind. No object has that key.
func (c progressClient) Get(ctx context.Context, key string, opts kubernetes.GetOptions) (kubernetes.GetResponse, error) {
	r, err := c.Client.Get(ctx, key, opts)
	if err == nil && c.watcher.fillsFrom(key) {
		// The context selects the stream of watches, and may outlive the read if the stream has ended: so it is not ctx.
		// If the request is lost, the API server's next one has the same effect.
		_ = c.watcher.Watcher.RequestProgress(clientv3.WithRequireLeader(c.Ctx())) //nolint:contextcheck // see above
	}
	return r, err
}
