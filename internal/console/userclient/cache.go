package userclient

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// cacheFillTimeout is how long a page waits for a kind that is read for the first time.
const cacheFillTimeout = 15 * time.Second

// cacheStartTimeout is how long an empty cache may take to start.
const cacheStartTimeout = 5 * time.Second

// A UserCache is a cached client.Reader of one namespace, or of all, with a user's permissions.
type UserCache struct {
	cache   cache.Cache
	stop    context.CancelFunc
	changes *broadcast

	mu           sync.Mutex
	watchedKinds map[schema.GroupVersionKind]bool
	watchErr     error // last error of a watch
}

func newUserCache(p *User, namespace string) (*UserCache, error) {
	s := &UserCache{changes: &p.changes, watchedKinds: map[schema.GroupVersionKind]bool{}}
	o := cache.Options{
		HTTPClient:       p.transport.http,
		Scheme:           scheme,
		Mapper:           restMapper,
		DefaultTransform: stripMetadata,
		ByObject:         map[client.Object]cache.ByObject{&corev1.Event{}: {Transform: trimForeignEvent}},
		DefaultWatchErrorHandler: func(_ context.Context, _ *toolscache.Reflector, err error) {
			s.mu.Lock()
			s.watchErr = err
			s.mu.Unlock()
			p.recordAuthError(err) //nolint:errcheck // it returns its argument
		},
	}
	if namespace != "" {
		o.DefaultNamespaces = map[string]cache.Config{namespace: {}}
	}
	var err error
	if s.cache, err = cache.New(p.transport.cfg, o); err != nil {
		return nil, fmt.Errorf("creating a cache of the hub: %w", err)
	}
	ctx, stop := context.WithCancel(p.life)
	s.stop = stop
	go func() {
		// Start fails immediately or never. After a failure no kind is filled, and waitForKind
		// returns the error.
		if err := s.cache.Start(ctx); err != nil {
			s.mu.Lock()
			s.watchErr = err
			s.mu.Unlock()
		}
	}()
	// The cache has no informers yet, so this only waits until the cache accepts some.
	soon, cancel := context.WithTimeout(ctx, cacheStartTimeout)
	defer cancel()
	if !s.cache.WaitForCacheSync(soon) {
		stop()
		return nil, s.watchErrorOr(errors.New("the cache of the hub did not start"))
	}
	return s, nil
}

// List waits until the cache has the kind, and lists it.
func (c *UserCache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	gvk, err := apiutil.GVKForObject(list, scheme)
	if err != nil {
		return err
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	if err := c.waitForKind(ctx, gvk); err != nil {
		return fmt.Errorf("listing %ss: %w", gvk.Kind, err)
	}
	return c.cache.List(ctx, list, opts...)
}

// Get waits until the cache has the kind, and gets an object.
func (c *UserCache) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	gvk, err := apiutil.GVKForObject(o, scheme)
	if err != nil {
		return err
	}
	if err := c.waitForKind(ctx, gvk); err != nil {
		return fmt.Errorf("reading %s %s: %w", gvk.Kind, key, err)
	}
	return c.cache.Get(ctx, key, o, opts...)
}

// waitForKind waits until the cache has a kind, and signals its changes from then on.
func (c *UserCache) waitForKind(ctx context.Context, gvk schema.GroupVersionKind) error {
	ctx, cancel := context.WithTimeout(ctx, cacheFillTimeout)
	defer cancel()
	informer, err := c.cache.GetInformerForKind(ctx, gvk)
	if err != nil {
		return c.watchErrorOr(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watchedKinds[gvk] {
		return nil
	}
	c.watchedKinds[gvk] = true
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { c.changes.notifyAll() },
		UpdateFunc: func(_, _ any) { c.changes.notifyAll() },
		DeleteFunc: func(any) { c.changes.notifyAll() },
	})
	return err
}

// watchErrorOr returns the hub's error instead of a timeout.
func (c *UserCache) watchErrorOr(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.watchErr == nil:
		return err
	case apierrors.IsUnauthorized(c.watchErr):
		return errors.Join(ErrUnknown, c.watchErr)
	default:
		return c.watchErr
	}
}

// lastAppliedAnnotation contains a copy of the whole object for kubectl apply.
const lastAppliedAnnotation = "kubectl.kubernetes.io/last-applied-configuration"

// stripMetadata removes metadata that no page shows.
func stripMetadata(o any) (any, error) {
	if m, ok := o.(metav1.Object); ok {
		m.SetManagedFields(nil)
		delete(m.GetAnnotations(), lastAppliedAnnotation)
	}
	return o, nil
}

// trimForeignEvent reduces events about other kinds to their identity.
func trimForeignEvent(o any) (any, error) {
	e, ok := o.(*corev1.Event)
	if !ok {
		return o, nil // a tombstone of an object whose deletion the watch missed
	}
	if !IsHotspareEvent(e) {
		return &corev1.Event{ObjectMeta: metav1.ObjectMeta{
			Namespace: e.Namespace, Name: e.Name, UID: e.UID, ResourceVersion: e.ResourceVersion,
		}}, nil
	}
	return stripMetadata(e)
}

// IsHotspareEvent reports whether an event is about one of hotspare's kinds.
func IsHotspareEvent(e *corev1.Event) bool {
	group, err := schema.ParseGroupVersion(e.InvolvedObject.APIVersion)
	return err == nil && (group.Group == hivev1.GroupVersion.Group || group.Group == v1alpha1.GroupVersion.Group)
}
