// Package chaos runs controllers through random histories. It is for tests.
//
// A Store is an in-memory API server with the features that controllers of pools and claims use. A
// View is the cache of one process: it receives writes in order, kind by kind, when the test shows
// them to it. A Scheduler releases the processes' calls one at a time, in the order that a test
// chooses: the same choices produce the same history. Package crash, which stops the controllers
// after each write in turn, is built on these types, too.
package chaos

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Store keeps objects as an API server does: with resource versions from one counter, generations,
// finalizers, a separate status, and namespaces that must exist. It does not check schemas. Objects
// that it passes to views and to Wrote are shared and must not be changed.
type Store struct {
	// Wrote, if set, is called after each write, by the goroutine that wrote.
	Wrote func(ctx context.Context, w Write)

	scheme *runtime.Scheme
	clock  clock.PassiveClock
	kinds  map[reflect.Type]*kind

	mu              sync.Mutex
	version, serial int64
}

// Write is one write to the store.
type Write struct {
	// Before is nil for a creation.
	Before client.Object
	// After is the object as written. If Gone is true, the object was deleted in this last state.
	After client.Object
	Gone  bool
}

// kind contains all objects of one kind.
type kind struct {
	name       string
	resource   schema.GroupResource
	namespaced bool
	typ        reflect.Type
	objects    map[types.NamespacedName]client.Object
	journal    []change
}

// change is an event of a watch; a nil object is a deletion.
type change struct {
	key types.NamespacedName
	obj client.Object
}

// clusterScoped are the kinds without a namespace that the controllers under test use.
var clusterScoped = []string{"Namespace", "ClusterImageSet", "InstanceType"}

// New returns an empty store for objects of these kinds.
func New(s *runtime.Scheme, c clock.PassiveClock, kinds ...client.Object) *Store {
	st := &Store{scheme: s, clock: c, kinds: map[reflect.Type]*kind{}}
	for _, o := range kinds {
		gvk, err := apiutil.GVKForObject(o, s)
		if err != nil {
			panic(err) // a kind that is not in the test's scheme
		}
		st.kinds[reflect.TypeOf(o)] = &kind{
			name:       gvk.Kind,
			resource:   schema.GroupResource{Group: gvk.Group, Resource: strings.ToLower(gvk.Kind) + "s"},
			namespaced: !slices.Contains(clusterScoped, gvk.Kind),
			typ:        reflect.TypeOf(o).Elem(),
			objects:    map[types.NamespacedName]client.Object{},
		}
	}
	return st
}

func (s *Store) kindFor(o client.Object) *kind {
	k := s.kinds[reflect.TypeOf(o)]
	if k == nil {
		panic(fmt.Sprintf("chaos: no objects of %T are kept here: name it in chaos.New", o))
	}
	return k
}

// kindForList returns the kind of a list's items.
func (s *Store) kindForList(l client.ObjectList) *kind {
	items, ok := reflect.TypeOf(l).Elem().FieldByName("Items")
	if ok {
		if k := s.kinds[reflect.PointerTo(items.Type.Elem())]; k != nil {
			return k
		}
	}
	panic(fmt.Sprintf("chaos: no objects of %T are kept here: name their kind in chaos.New", l))
}

func (k *kind) objectKey(o client.Object) types.NamespacedName {
	key := client.ObjectKeyFromObject(o)
	if !k.namespaced {
		key.Namespace = ""
	}
	return key
}

// CountWrites returns the number of writes so far.
func (s *Store) CountWrites() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// GetSharedObject returns the object of like's kind, shared, or nil.
func (s *Store) GetSharedObject(like client.Object, key types.NamespacedName) client.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o, ok := s.kindFor(like).objects[key]; ok {
		return o
	}
	return nil
}

// ListSharedObjects returns all objects of like's kind, shared, sorted by key.
func (s *Store) ListSharedObjects(like client.Object) []client.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sortedObjects(s.kindFor(like).objects)
}

// Create stores a new object, and sets in o the fields that the server adds.
func (s *Store) Create(ctx context.Context, o client.Object) error {
	k := s.kindFor(o)
	s.mu.Lock()
	w, err := s.createObject(k, o)
	s.mu.Unlock()
	return s.notifyWrite(ctx, w, err)
}

func (s *Store) createObject(k *kind, o client.Object) (Write, error) {
	key := k.objectKey(o)
	if o.GetResourceVersion() != "" {
		return Write{}, apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	}
	if err := s.checkNamespace(k, key); err != nil {
		return Write{}, err
	}
	if _, exists := k.objects[key]; exists {
		return Write{}, apierrors.NewAlreadyExists(k.resource, key.Name)
	}
	obj := deepCopyObject(o)
	clearStatus(obj)
	s.serial++
	obj.SetUID(types.UID("u" + strconv.FormatInt(s.serial, 10)))
	obj.SetCreationTimestamp(metav1.NewTime(s.clock.Now()))
	obj.SetDeletionTimestamp(nil)
	obj.SetGeneration(1)
	s.storeObject(k, key, obj)
	deepCopyInto(o, obj)
	return Write{After: obj}, nil
}

// checkNamespace rejects objects in namespaces that do not exist or are being deleted.
func (s *Store) checkNamespace(k *kind, key types.NamespacedName) error {
	if !k.namespaced {
		return nil
	}
	spaces := s.kindFor(&corev1.Namespace{})
	space, ok := spaces.objects[types.NamespacedName{Name: key.Namespace}]
	if !ok {
		return apierrors.NewNotFound(spaces.resource, key.Namespace)
	}
	if space.GetDeletionTimestamp() == nil {
		return nil
	}
	err := apierrors.NewForbidden(k.resource, key.Name, fmt.Errorf("namespace %s is being terminated", key.Namespace))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	return err
}

// EditObject calls change to edit a copy of an object and stores the result, including the status,
// without optimistic locking: tests use it for writes from outside of the controllers under test.
// It reports whether the object exists and has changed.
func (s *Store) EditObject(ctx context.Context, o client.Object, change func()) bool {
	k := s.kindFor(o)
	s.mu.Lock()
	before, ok := k.objects[k.objectKey(o)]
	if !ok {
		s.mu.Unlock()
		return false
	}
	deepCopyInto(o, before)
	change()
	w := s.replaceObject(k, before, deepCopyObject(o))
	s.mu.Unlock()
	return s.notifyWrite(ctx, w, nil) == nil && w.After != nil
}

// Patch applies a JSON merge patch, either to the status or to everything except the status, and
// updates o with the result. A resource version in the patch is a precondition.
func (s *Store) Patch(ctx context.Context, o client.Object, data []byte, status bool) error {
	k := s.kindFor(o)
	s.mu.Lock()
	w, err := s.patchObject(k, o, data, status)
	s.mu.Unlock()
	return s.notifyWrite(ctx, w, err)
}

func (s *Store) patchObject(k *kind, o client.Object, data []byte, status bool) (Write, error) {
	key := k.objectKey(o)
	before, ok := k.objects[key]
	if !ok {
		return Write{}, apierrors.NewNotFound(k.resource, key.Name)
	}
	after, err := applyMergePatch(before, data)
	if err != nil {
		return Write{}, err
	}
	if after.GetResourceVersion() != before.GetResourceVersion() {
		return Write{}, newConflictError(k, key, "the object has been modified; please apply your changes to the latest version and try again")
	}
	if status {
		whole := deepCopyObject(before)
		shareStatus(whole, after)
		after = whole
	} else {
		shareStatus(after, before)
	}
	after.SetUID(before.GetUID())
	after.SetCreationTimestamp(before.GetCreationTimestamp())
	after.SetDeletionTimestamp(before.GetDeletionTimestamp())
	if added := addedFinalizers(after.GetFinalizers(), before.GetFinalizers()); len(added) > 0 && before.GetDeletionTimestamp() != nil {
		return Write{}, apierrors.NewInvalid(schema.GroupKind{Group: k.resource.Group, Kind: k.name}, key.Name, field.ErrorList{
			field.Forbidden(field.NewPath("metadata", "finalizers"), fmt.Sprintf("no new finalizers can be added if the object is being deleted, found new finalizers %v", added)),
		})
	}
	w := s.replaceObject(k, before, after)
	deepCopyInto(o, after)
	return w, nil
}

// replaceObject stores after in place of before, if they differ, and deletes an object whose
// deletion no finalizer blocks any longer.
func (s *Store) replaceObject(k *kind, before, after client.Object) Write {
	after.SetGeneration(before.GetGeneration())
	after.SetResourceVersion(before.GetResourceVersion())
	if equality.Semantic.DeepEqual(before, after) {
		return Write{}
	}
	if !hasSameSpec(before, after) {
		after.SetGeneration(before.GetGeneration() + 1)
	}
	key := k.objectKey(after)
	if after.GetDeletionTimestamp() != nil && len(after.GetFinalizers()) == 0 && k.name != "Namespace" {
		s.storeObject(k, key, nil)
		return Write{Before: before, After: after, Gone: true}
	}
	s.storeObject(k, key, after)
	return Write{Before: before, After: after}
}

// Delete deletes an object, or sets its deletion timestamp while it has finalizers. The deletion of
// a namespace always waits for its contents: see SweepNamespace.
func (s *Store) Delete(ctx context.Context, o client.Object, pre *metav1.Preconditions) error {
	k := s.kindFor(o)
	s.mu.Lock()
	w, err := s.removeObject(k, k.objectKey(o), pre)
	s.mu.Unlock()
	return s.notifyWrite(ctx, w, err)
}

func (s *Store) removeObject(k *kind, key types.NamespacedName, pre *metav1.Preconditions) (Write, error) {
	before, ok := k.objects[key]
	if !ok {
		return Write{}, apierrors.NewNotFound(k.resource, key.Name)
	}
	if pre != nil && pre.UID != nil && *pre.UID != before.GetUID() {
		return Write{}, newConflictError(k, key, fmt.Sprintf("Precondition failed: UID in precondition: %v, UID in object meta: %v", *pre.UID, before.GetUID()))
	}
	if pre != nil && pre.ResourceVersion != nil && *pre.ResourceVersion != before.GetResourceVersion() {
		return Write{}, newConflictError(k, key, fmt.Sprintf(
			"Precondition failed: ResourceVersion in precondition: %v, ResourceVersion in object meta: %v", *pre.ResourceVersion, before.GetResourceVersion()))
	}
	held := len(before.GetFinalizers()) > 0 || k.name == "Namespace"
	if !held {
		s.storeObject(k, key, nil)
		return Write{Before: before, After: before, Gone: true}, nil
	}
	if before.GetDeletionTimestamp() != nil {
		return Write{}, nil
	}
	after, now := deepCopyObject(before), metav1.NewTime(s.clock.Now())
	after.SetDeletionTimestamp(&now)
	after.SetGeneration(before.GetGeneration() + 1)
	s.storeObject(k, key, after)
	return Write{Before: before, After: after}, nil
}

// SweepNamespace acts as the namespace controller of Kubernetes: it deletes the contents of a
// namespace that is being deleted, and then the namespace. It reports whether it changed anything.
func (s *Store) SweepNamespace(ctx context.Context, namespace string) bool {
	s.mu.Lock()
	spaces := s.kindFor(&corev1.Namespace{})
	key := types.NamespacedName{Name: namespace}
	space, ok := spaces.objects[key]
	if !ok || space.GetDeletionTimestamp() == nil {
		s.mu.Unlock()
		return false
	}
	var writes []Write
	left := 0
	for _, k := range s.sortedKinds() {
		for _, o := range sortedObjects(k.objects) {
			if o.GetNamespace() != namespace {
				continue
			}
			if w, err := s.removeObject(k, k.objectKey(o), nil); err == nil && w.After != nil {
				writes = append(writes, w)
			}
			if _, still := k.objects[k.objectKey(o)]; still {
				left++
			}
		}
	}
	if left == 0 {
		s.storeObject(spaces, key, nil)
		writes = append(writes, Write{Before: space, After: space, Gone: true})
	}
	s.mu.Unlock()
	for _, w := range writes {
		_ = s.notifyWrite(ctx, w, nil) // it only returns the error that it is given
	}
	return len(writes) > 0
}

func (s *Store) sortedKinds() []*kind {
	var out []*kind
	for _, k := range s.kinds {
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b *kind) int { return strings.Compare(a.name, b.name) })
	return out
}

// storeObject stores a new version, or deletes the object if obj is nil.
func (s *Store) storeObject(k *kind, key types.NamespacedName, obj client.Object) {
	s.version++
	if obj == nil {
		delete(k.objects, key)
	} else {
		obj.SetResourceVersion(strconv.FormatInt(s.version, 10))
		k.objects[key] = obj
	}
	k.journal = append(k.journal, change{key, obj})
}

func (s *Store) notifyWrite(ctx context.Context, w Write, err error) error {
	if err == nil && w.After != nil && s.Wrote != nil {
		s.Wrote(ctx, w)
	}
	return err
}

func newConflictError(k *kind, key types.NamespacedName, why string) error {
	return apierrors.NewConflict(k.resource, key.Name, fmt.Errorf("%s", why))
}

func addedFinalizers(after, before []string) []string {
	return slices.DeleteFunc(slices.Clone(after), func(f string) bool { return slices.Contains(before, f) })
}

func deepCopyObject(o client.Object) client.Object { return o.DeepCopyObject().(client.Object) }

// deepCopyInto makes *into a deep copy of o.
func deepCopyInto(into, o client.Object) {
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(deepCopyObject(o)).Elem())
}

func structField(o client.Object, name string) reflect.Value {
	return reflect.ValueOf(o).Elem().FieldByName(name)
}

// shareStatus sets the status of into to the status of o, without a copy; the two may share it
// afterwards.
func shareStatus(into, o client.Object) {
	if f := structField(into, "Status"); f.IsValid() {
		f.Set(structField(o, "Status"))
	}
}

func clearStatus(o client.Object) {
	if f := structField(o, "Status"); f.IsValid() {
		f.SetZero()
	}
}

func hasSameSpec(a, b client.Object) bool {
	f := structField(a, "Spec")
	return !f.IsValid() || equality.Semantic.DeepEqual(f.Interface(), structField(b, "Spec").Interface())
}
