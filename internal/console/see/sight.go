package see

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

// fillLimit is how long a page waits for a kind that is looked at for the first time.
const fillLimit = 15 * time.Second

// startLimit is how long a memory may take to be there, with nothing in it.
const startLimit = 5 * time.Second

// A Sight is a client.Reader of the person's memory of one namespace, or of all.
type Sight struct {
	cache cache.Cache
	stop  context.CancelFunc
	bell  *bell

	mu    sync.Mutex
	heard map[schema.GroupVersionKind]bool
	why   error // what the hub said last when it did not let us watch
}

func newSight(p *Person, namespace string) (*Sight, error) {
	s := &Sight{bell: &p.bell, heard: map[schema.GroupVersionKind]bool{}}
	o := cache.Options{
		HTTPClient:       p.via.http,
		Scheme:           scheme,
		Mapper:           mapper,
		DefaultTransform: strip,
		ByObject:         map[client.Object]cache.ByObject{&corev1.Event{}: {Transform: ours}},
		DefaultWatchErrorHandler: func(_ context.Context, _ *toolscache.Reflector, err error) {
			s.mu.Lock()
			s.why = err
			s.mu.Unlock()
			p.noting(err) //nolint:errcheck // it returns what it was given
		},
	}
	if namespace != "" {
		o.DefaultNamespaces = map[string]cache.Config{namespace: {}}
	}
	var err error
	if s.cache, err = cache.New(p.via.cfg, o); err != nil {
		return nil, fmt.Errorf("making a memory of the hub: %w", err)
	}
	ctx, stop := context.WithCancel(p.life)
	s.stop = stop
	go func() {
		// It fails at once or never, and then nothing fills: who waits is told.
		if err := s.cache.Start(ctx); err != nil {
			s.mu.Lock()
			s.why = err
			s.mu.Unlock()
		}
	}()
	// Nothing is in it yet, so this only waits until it can be asked for something.
	soon, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if !s.cache.WaitForCacheSync(soon) {
		stop()
		return nil, s.because(errors.New("the memory of the hub did not start"))
	}
	return s, nil
}

// List lists what is in memory, when that has been filled.
func (s *Sight) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	gvk, err := apiutil.GVKForObject(list, scheme)
	if err != nil {
		return err
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	if err := s.fill(ctx, gvk); err != nil {
		return fmt.Errorf("listing %ss: %w", gvk.Kind, err)
	}
	return s.cache.List(ctx, list, opts...)
}

// Get gets what is in memory, when that has been filled.
func (s *Sight) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	gvk, err := apiutil.GVKForObject(o, scheme)
	if err != nil {
		return err
	}
	if err := s.fill(ctx, gvk); err != nil {
		return fmt.Errorf("reading %s %s: %w", gvk.Kind, key, err)
	}
	return s.cache.Get(ctx, key, o, opts...)
}

// fill waits until the kind is in memory, and has changes of it heard from then on.
func (s *Sight) fill(ctx context.Context, gvk schema.GroupVersionKind) error {
	ctx, cancel := context.WithTimeout(ctx, fillLimit)
	defer cancel()
	informer, err := s.cache.GetInformerForKind(ctx, gvk)
	if err != nil {
		return s.because(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.heard[gvk] {
		return nil
	}
	s.heard[gvk] = true
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { s.bell.ring() },
		UpdateFunc: func(_, _ any) { s.bell.ring() },
		DeleteFunc: func(any) { s.bell.ring() },
	})
	return err
}

// because puts what the hub said in place of that it took too long.
func (s *Sight) because(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.why == nil:
		return err
	case apierrors.IsUnauthorized(s.why):
		return errors.Join(ErrUnknown, s.why)
	default:
		return s.why
	}
}

// applied is a copy of the whole object, for kubectl apply.
const applied = "kubectl.kubernetes.io/last-applied-configuration"

// strip takes off what no page shows.
func strip(o any) (any, error) {
	if m, ok := o.(metav1.Object); ok {
		m.SetManagedFields(nil)
		delete(m.GetAnnotations(), applied)
	}
	return o, nil
}

// ours keeps little more than the name of events that are about other kinds.
func ours(o any) (any, error) {
	e, ok := o.(*corev1.Event)
	if !ok {
		return o, nil // the mark of an object that was missed going
	}
	if !Concerns(e) {
		return &corev1.Event{ObjectMeta: metav1.ObjectMeta{
			Namespace: e.Namespace, Name: e.Name, UID: e.UID, ResourceVersion: e.ResourceVersion,
		}}, nil
	}
	return strip(e)
}

// Concerns reports whether an event is about a kind of hotspare.
func Concerns(e *corev1.Event) bool {
	group, err := schema.ParseGroupVersion(e.InvolvedObject.APIVersion)
	return err == nil && (group.Group == hivev1.GroupVersion.Group || group.Group == v1alpha1.GroupVersion.Group)
}
