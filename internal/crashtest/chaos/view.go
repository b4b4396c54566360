package chaos

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Indexes collects the field indexes that controllers register; it implements client.FieldIndexer.
type Indexes struct {
	by map[indexKey]client.IndexerFunc
}

type indexKey struct {
	typ   reflect.Type
	field string
}

// IndexField implements client.FieldIndexer.
func (i *Indexes) IndexField(_ context.Context, o client.Object, field string, keys client.IndexerFunc) error {
	if i.by == nil {
		i.by = map[indexKey]client.IndexerFunc{}
	}
	i.by[indexKey{reflect.TypeOf(o), field}] = keys
	return nil
}

// View is one process's cache of a store. It contains only the writes that the test has shown to
// it.
type View struct {
	store   *Store
	indexes *Indexes

	mu    sync.Mutex
	kinds map[*kind]*viewState
}

// viewState is the position of a view in a kind's journal, and the objects at that position.
type viewState struct {
	at      int
	objects map[types.NamespacedName]client.Object
}

// NewView returns an empty cache.
func (s *Store) NewView(ix *Indexes) *View {
	v := &View{store: s, indexes: ix, kinds: map[*kind]*viewState{}}
	for _, k := range s.kinds {
		v.kinds[k] = &viewState{objects: map[types.NamespacedName]client.Object{}}
	}
	return v
}

// CountUnseenWrites returns the number of writes of like's kind that the view has not been shown.
func (v *View) CountUnseenWrites(like client.Object) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	k := v.store.kindFor(like)
	return len(k.journal) - v.kinds[k].at
}

// ShowNextWrites shows the view the next n writes of like's kind.
func (v *View) ShowNextWrites(like client.Object, n int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	k := v.store.kindFor(like)
	at := v.kinds[k]
	for range n {
		if at.at == len(k.journal) {
			return
		}
		ch := k.journal[at.at]
		at.at++
		if ch.obj == nil {
			delete(at.objects, ch.key)
		} else {
			at.objects[ch.key] = ch.obj
		}
	}
}

// ShowAllWrites shows the view all writes, and reports whether any of them was new to it.
func (v *View) ShowAllWrites() bool {
	news := false
	for _, k := range v.store.sortedKinds() {
		like := reflect.New(k.typ).Interface().(client.Object)
		if n := v.CountUnseenWrites(like); n > 0 {
			news = true
			v.ShowNextWrites(like, n)
		}
	}
	return news
}

// ListVisibleKeys returns the keys of the objects of like's kind that the view contains, sorted.
func (v *View) ListVisibleKeys(like client.Object) []types.NamespacedName {
	v.mu.Lock()
	defer v.mu.Unlock()
	var out []types.NamespacedName
	for _, o := range sortedObjects(v.kinds[v.store.kindFor(like)].objects) {
		out = append(out, client.ObjectKeyFromObject(o))
	}
	return out
}

func (v *View) get(k *kind, key types.NamespacedName) client.Object {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.kinds[k].objects[key]
}

func (v *View) list(k *kind) []client.Object {
	v.mu.Lock()
	defer v.mu.Unlock()
	return sortedObjects(v.kinds[k].objects)
}

// source is where a client reads: a view, or the store.
type source interface {
	get(k *kind, key types.NamespacedName) client.Object
	list(k *kind) []client.Object
}

func (s *Store) get(k *kind, key types.NamespacedName) client.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return k.objects[key]
}

func (s *Store) list(k *kind) []client.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sortedObjects(k.objects)
}

// getObject implements client.Reader's Get.
func getObject(from source, k *kind, key types.NamespacedName, into client.Object) error {
	if !k.namespaced {
		key.Namespace = ""
	}
	o := from.get(k, key)
	if o == nil {
		return apierrors.NewNotFound(k.resource, key.Name)
	}
	deepCopyInto(into, o)
	return nil
}

// selectObjects returns the objects that match the options of a list, shared.
func selectObjects(from source, k *kind, ix *Indexes, o client.ListOptions) ([]client.Object, error) {
	var out []client.Object
	for _, obj := range from.list(k) {
		match, err := matchesOptions(obj, ix, o)
		if err != nil {
			return nil, err
		}
		if match {
			out = append(out, obj)
		}
	}
	return out, nil
}

func matchesOptions(obj client.Object, ix *Indexes, o client.ListOptions) (bool, error) {
	if o.Namespace != "" && o.Namespace != obj.GetNamespace() {
		return false, nil
	}
	if o.LabelSelector != nil && !o.LabelSelector.Matches(labels.Set(obj.GetLabels())) {
		return false, nil
	}
	if o.FieldSelector == nil {
		return true, nil
	}
	for _, want := range o.FieldSelector.Requirements() {
		if ix == nil {
			return false, apierrors.NewBadRequest(fmt.Sprintf("field label not supported: %s", want.Field))
		}
		keys := ix.by[indexKey{reflect.TypeOf(obj), want.Field}]
		if keys == nil {
			return false, fmt.Errorf("no index %q of %T", want.Field, obj)
		}
		if !slices.Contains(keys(obj), want.Value) {
			return false, nil
		}
	}
	return true, nil
}

// fillListItems sets the items of a list, as copies unless they may be shared.
func fillListItems(list client.ObjectList, objects []client.Object, o client.ListOptions) {
	items := reflect.ValueOf(list).Elem().FieldByName("Items")
	items.Set(reflect.MakeSlice(items.Type(), len(objects), len(objects)))
	for i, obj := range objects {
		if o.UnsafeDisableDeepCopy == nil || !*o.UnsafeDisableDeepCopy {
			obj = deepCopyObject(obj)
		}
		items.Index(i).Set(reflect.ValueOf(obj).Elem())
	}
}

func sortedObjects(objects map[types.NamespacedName]client.Object) []client.Object {
	keys := slices.SortedFunc(maps.Keys(objects), func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	out := make([]client.Object, len(keys))
	for i, key := range keys {
		out[i] = objects[key]
	}
	return out
}
