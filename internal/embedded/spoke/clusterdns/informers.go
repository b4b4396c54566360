package clusterdns

import (
	"context"
	"net"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	discoveryinformers "k8s.io/client-go/informers/discovery/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"hotspare.io/hotspare/internal/embedded/spoke/clusterdns/zone"
)

// Run serves the DNS of the cluster of the client at the sockets until ctx ends: see Serve. It answers at
// once; questions about the cluster with SERVFAIL until it has read all objects. o.Source is ignored.
func Run(ctx context.Context, client kubernetes.Interface, o Options, packets net.PacketConn, connections net.Listener) error {
	source, err := newInformerSource(client)
	if err != nil {
		return err
	}
	o.Source = source
	s, err := New(o)
	if err != nil {
		return err
	}
	work, ctx := errgroup.WithContext(ctx)
	for _, informer := range source.informers() {
		work.Go(func() error { informer.RunWithContext(ctx); return nil })
	}
	work.Go(func() error { return s.Serve(ctx, packets, connections) })
	return work.Wait()
}

// informerSource is a Source that watches the cluster.
type informerSource struct {
	namespaces, services, endpointSlices cache.SharedIndexInformer

	generation atomic.Uint64
}

func newInformerSource(client kubernetes.Interface) (*informerSource, error) {
	s := &informerSource{
		namespaces:     coreinformers.NewNamespaceInformer(client, 0, cache.Indexers{}),
		services:       coreinformers.NewServiceInformer(client, metav1.NamespaceAll, 0, cache.Indexers{}),
		endpointSlices: discoveryinformers.NewEndpointSliceInformer(client, metav1.NamespaceAll, 0, cache.Indexers{}),
	}
	changed := func() { s.generation.Add(1) }
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { changed() },
		UpdateFunc: func(_, _ any) { changed() },
		DeleteFunc: func(any) { changed() },
	}
	for _, informer := range s.informers() {
		if err := informer.SetTransform(trim); err != nil {
			return nil, err
		}
		if _, err := informer.AddEventHandler(handler); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *informerSource) informers() []cache.SharedIndexInformer {
	return []cache.SharedIndexInformer{s.namespaces, s.services, s.endpointSlices}
}

// Generation implements Source. The informers change their stores before they count.
func (s *informerSource) Generation() (uint64, bool) {
	for _, informer := range s.informers() {
		if !informer.HasSynced() {
			return 0, false
		}
	}
	return s.generation.Load(), true
}

// Objects implements Source.
func (s *informerSource) Objects() zone.Snapshot {
	return zone.Snapshot{
		Namespaces:     listStore[*corev1.Namespace](s.namespaces),
		Services:       listStore[*corev1.Service](s.services),
		EndpointSlices: listStore[*discoveryv1.EndpointSlice](s.endpointSlices),
	}
}

func listStore[T any](informer cache.SharedIndexInformer) []T {
	var out []T
	for _, object := range informer.GetStore().List() {
		out = append(out, object.(T))
	}
	return out
}
