package crash

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// cache is what informers would hold: a copy of the API that learns of a write
// when it is let catch up.
type cache struct {
	mu      sync.Mutex
	scheme  *runtime.Scheme
	indexes []Index
	objects map[schema.GroupKind]map[types.NamespacedName]client.Object
	unseen  []change
}

type change struct {
	kind schema.GroupKind
	key  types.NamespacedName
	obj  client.Object // nil: deleted
}

func newCache(s *runtime.Scheme, indexes []Index) *cache {
	return &cache{scheme: s, indexes: indexes, objects: map[schema.GroupKind]map[types.NamespacedName]client.Object{}}
}

// put queues the state that the API has of an object.
func (c *cache) put(ctx context.Context, api client.Reader, o client.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	gvk, err := apiutil.GVKForObject(o, c.scheme)
	if err != nil {
		panic(err) // a kind that is not in the scenario's scheme
	}
	key := client.ObjectKeyFromObject(o)
	now := o.DeepCopyObject().(client.Object)
	if err := api.Get(ctx, key, now); err != nil {
		now = nil
	}
	c.unseen = append(c.unseen, change{gvk.GroupKind(), key, now})
}

// catchUp shows everything that was queued. It reports whether there was anything.
func (c *cache) catchUp() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	any := len(c.unseen) > 0
	for _, ch := range c.unseen {
		if c.objects[ch.kind] == nil {
			c.objects[ch.kind] = map[types.NamespacedName]client.Object{}
		}
		if ch.obj == nil {
			delete(c.objects[ch.kind], ch.key)
			continue
		}
		c.objects[ch.kind][ch.key] = ch.obj
	}
	c.unseen = nil
	return any
}

// behind reports whether there is a change that is not shown yet.
func (c *cache) behind() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.unseen) > 0
}

// Get is client.Reader's.
func (c *cache) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	gvk, err := apiutil.GVKForObject(into, c.scheme)
	if err != nil {
		return err
	}
	o, ok := c.objects[gvk.GroupKind()][key]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, key.Name)
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(o.DeepCopyObject()).Elem())
	return nil
}

// List is client.Reader's, with namespaces, label selectors and one exact field.
func (c *cache) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	gvk, err := apiutil.GVKForObject(into, c.scheme)
	if err != nil {
		return err
	}
	kind := schema.GroupKind{Group: gvk.Group, Kind: gvk.Kind[:len(gvk.Kind)-len("List")]}
	var o client.ListOptions
	o.ApplyOptions(opts)
	var items []runtime.Object
	keys := slices.SortedFunc(maps.Keys(c.objects[kind]), func(a, b types.NamespacedName) int {
		return cmp.Compare(a.String(), b.String())
	})
	for _, key := range keys {
		obj := c.objects[kind][key]
		match, err := c.matches(obj, o)
		if err != nil {
			return err
		}
		if match {
			items = append(items, obj.DeepCopyObject())
		}
	}
	return meta.SetList(into, items)
}

func (c *cache) matches(obj client.Object, o client.ListOptions) (bool, error) {
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
		has, err := c.keys(obj, want)
		if err != nil || !slices.Contains(has, want.Value) {
			return false, err
		}
	}
	return true, nil
}

func (c *cache) keys(obj client.Object, want fields.Requirement) ([]string, error) {
	for _, ix := range c.indexes {
		if ix.Field == want.Field && reflect.TypeOf(ix.Object) == reflect.TypeOf(obj) {
			return ix.Keys(obj), nil
		}
	}
	return nil, fmt.Errorf("no index %q of %T", want.Field, obj)
}
