// Package mutationcache lets a controller read its own writes.
//
// A cache always lags slightly: a pass right after another would decide on state that the other
// one has already changed. Writes remembers what was written until the cache has it. This saves
// work and conflicts. It is not what prevents a cluster from being assigned or created twice: the
// optimistic lock does that, and names that are recorded before they are used.
package mutationcache

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// writeTTL is how long a write is remembered that the cache never shows, because the object was
// deleted in the meantime.
const writeTTL = time.Minute

// Writes remembers written objects of one kind. The zero value is ready for use by several
// goroutines.
type Writes[T client.Object] struct {
	mu      sync.Mutex
	written map[types.NamespacedName]writeEntry[T]
	// sweptAt is when the writes that are too old were last removed.
	sweptAt time.Time
}

type writeEntry[T client.Object] struct {
	obj T
	at  time.Time
}

// RecordWrite remembers obj as the API server returned it. The caller must not change it
// afterwards.
func (w *Writes[T]) RecordWrite(obj T, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.written == nil {
		w.written, w.sweptAt = map[types.NamespacedName]writeEntry[T]{}, now
	}
	if now.Sub(w.sweptAt) > writeTTL { // nobody asked for these any more
		maps.DeleteFunc(w.written, func(_ types.NamespacedName, e writeEntry[T]) bool { return now.Sub(e.at) > writeTTL })
		w.sweptAt = now
	}
	w.written[client.ObjectKeyFromObject(obj)] = writeEntry[T]{obj, now}
}

// NewestVersion returns the written version of the object if the cache does not have it yet;
// otherwise cached.
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

// ForgetWrite removes obj, which was deleted.
func (w *Writes[T]) ForgetWrite(obj T) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := client.ObjectKeyFromObject(obj)
	if e, ok := w.written[key]; ok && e.obj.GetUID() == obj.GetUID() {
		delete(w.written, key)
	}
}

// ForgetKey removes the object of that name, which the cache does not show any more.
func (w *Writes[T]) ForgetKey(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.written, key)
}

// AheadOfCache returns the remembered objects that mine accepts and for which the cache is stale:
// newer ones, whose version is newer than the one that cached returns, and unseen ones, which
// were created and are not in the cache yet. It does what NewestVersion does for many objects, of
// which few have been written.
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

// isOlderVersion reports whether a is an earlier version than b. Versions that cannot be compared
// count as not older: the cached object is used.
func isOlderVersion(a, b client.Object) bool {
	c, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && c < 0
}
