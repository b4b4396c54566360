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

// Indexes gathers the field indexes that controllers ask for; it is their client.FieldIndexer.
type Indexes struct{ by map[index]client.IndexerFunc }

type index struct {
	typ   reflect.Type
	field string
}

// IndexField is client.FieldIndexer's.
func (ix *Indexes) IndexField(_ context.Context, o client.Object, field string, keys client.IndexerFunc) error {
	if ix.by == nil {
		ix.by = map[index]client.IndexerFunc{}
	}
	ix.by[index{reflect.TypeOf(o), field}] = keys
	return nil
}

// View is one process's cache of a store. It knows of nothing until it is shown.
type View struct {
	store   *Store
	indexes *Indexes

	mu    sync.Mutex
	kinds map[*kind]*seen
}

// seen is how much of a kind's journal a view has been shown.
type seen struct {
	at      int
	objects map[types.NamespacedName]client.Object
}

// View makes a cache that knows nothing yet.
func (s *Store) View(ix *Indexes) *View {
	v := &View{store: s, indexes: ix, kinds: map[*kind]*seen{}}
	for _, k := range s.kinds {
		v.kinds[k] = &seen{objects: map[types.NamespacedName]client.Object{}}
	}
	return v
}

// Behind is how many writes of like's kind the view has not been shown.
func (v *View) Behind(like client.Object) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	k := v.store.kind(like)
	return len(k.journal) - v.kinds[k].at
}

// Show shows the view the next n writes of like's kind.
func (v *View) Show(like client.Object, n int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	k := v.store.kind(like)
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

// ShowAll shows the view everything, and reports whether that was anything new.
func (v *View) ShowAll() bool {
	news := false
	for _, k := range v.store.sortedKinds() {
		like := reflect.New(k.typ).Interface().(client.Object)
		if n := v.Behind(like); n > 0 {
			news = true
			v.Show(like, n)
		}
	}
	return news
}

// Keys are the keys of the objects of like's kind that the view shows, sorted.
func (v *View) Keys(like client.Object) []types.NamespacedName {
	v.mu.Lock()
	defer v.mu.Unlock()
	var out []types.NamespacedName
	for _, o := range sorted(v.kinds[v.store.kind(like)].objects) {
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
	return sorted(v.kinds[k].objects)
}

// source is where a reader reads: a view, or the store.
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
	return sorted(k.objects)
}

// read is client.Reader's Get.
func read(from source, k *kind, key types.NamespacedName, into client.Object) error {
	if !k.namespaced {
		key.Namespace = ""
	}
	o := from.get(k, key)
	if o == nil {
		return apierrors.NewNotFound(k.resource, key.Name)
	}
	copyInto(into, o)
	return nil
}

// pick are the objects that a list's options ask for, shared.
func pick(from source, k *kind, ix *Indexes, o client.ListOptions) ([]client.Object, error) {
	var out []client.Object
	for _, obj := range from.list(k) {
		match, err := matches(obj, ix, o)
		if err != nil {
			return nil, err
		}
		if match {
			out = append(out, obj)
		}
	}
	return out, nil
}

func matches(obj client.Object, ix *Indexes, o client.ListOptions) (bool, error) {
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
		keys := ix.by[index{reflect.TypeOf(obj), want.Field}]
		if keys == nil {
			return false, fmt.Errorf("no index %q of %T", want.Field, obj)
		}
		if !slices.Contains(keys(obj), want.Value) {
			return false, nil
		}
	}
	return true, nil
}

// fill puts objects into a list, as copies unless they may be shared.
func fill(list client.ObjectList, objects []client.Object, o client.ListOptions) {
	items := reflect.ValueOf(list).Elem().FieldByName("Items")
	items.Set(reflect.MakeSlice(items.Type(), len(objects), len(objects)))
	for i, obj := range objects {
		if o.UnsafeDisableDeepCopy == nil || !*o.UnsafeDisableDeepCopy {
			obj = clone(obj)
		}
		items.Index(i).Set(reflect.ValueOf(obj).Elem())
	}
}

func sorted(objects map[types.NamespacedName]client.Object) []client.Object {
	keys := slices.SortedFunc(maps.Keys(objects), func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	out := make([]client.Object, len(keys))
	for i, key := range keys {
		out[i] = objects[key]
	}
	return out
}
