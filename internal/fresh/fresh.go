// Package fresh lets a controller read its own writes.
//
// A cache is always a little behind: a pass that begins right after another
// would decide on what that one has changed already. Writes remembers what was
// written until the cache has it. This saves work and conflicts; it is not what
// keeps a cluster from being assigned or made twice: that is the optimistic
// lock, and names that are recorded before they are used.
package fresh

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// writeTTL is when a write is no longer remembered though the cache never showed
// it: the object was deleted in between.
const writeTTL = time.Minute

// Writes remembers written objects of one kind. The zero value is ready for use
// by several goroutines.
type Writes[T client.Object] struct {
	mu      sync.Mutex
	written map[types.NamespacedName]writeEntry[T]
}

type writeEntry[T client.Object] struct {
	obj T
	at  time.Time
}

// RecordWrite remembers obj as the API server returned it. It must not be changed afterwards.
func (w *Writes[T]) RecordWrite(obj T, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.written == nil {
		w.written = map[types.NamespacedName]writeEntry[T]{}
	}
	w.written[client.ObjectKeyFromObject(obj)] = writeEntry[T]{obj, now}
}

// NewestVersion returns what was written of the object that the cache shows as cached,
// if the cache does not have it yet; else cached.
func (w *Writes[T]) NewestVersion(cached T) T {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := client.ObjectKeyFromObject(cached)
	e, ok := w.written[key]
	if !ok {
		return cached
	}
	if cached.GetUID() != e.obj.GetUID() || !isOlderVersion(cached, e.obj) {
		delete(w.written, key)
		return cached
	}
	return e.obj
}

// ForgetWrite no longer remembers obj, which is gone.
func (w *Writes[T]) ForgetWrite(obj T) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := client.ObjectKeyFromObject(obj)
	if e, ok := w.written[key]; ok && e.obj.GetUID() == obj.GetUID() {
		delete(w.written, key)
	}
}

// AheadOfCache returns the remembered objects that mine accepts and a cache is behind of: newer
// than the version that cached returns, or unseen, that is created and not in it yet. It
// is Newest for many objects at once, of which few have been written.
func (w *Writes[T]) AheadOfCache(cached func(T) (T, bool), mine func(T) bool, now time.Time) (newer, unseen []T) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, e := range w.written {
		if now.Sub(e.at) > writeTTL {
			delete(w.written, key)
			continue
		}
		if !mine(e.obj) {
			continue
		}
		switch c, found := cached(e.obj); {
		case !found:
			unseen = append(unseen, e.obj)
		case c.GetUID() == e.obj.GetUID() && isOlderVersion(c, e.obj):
			newer = append(newer, e.obj)
		default:
			delete(w.written, key)
		}
	}
	return newer, unseen
}

// isOlderVersion reports whether a is an earlier version than b. Versions that cannot be
// compared count as not older: the cache is believed.
func isOlderVersion(a, b client.Object) bool {
	c, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && c < 0
}
