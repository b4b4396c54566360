// Package loadbalancer gives the Services of type LoadBalancer of a local cluster whose workers run
// containers addresses on this computer's loopback network.
//
// This process listens on the ports of a Service at its address, and forwards connections to ready
// endpoints through the network of pods: not to node ports, which a Service may lack, whose nodes
// may be gone, and which take a second path through the network. Nothing outlives the process;
// therefore a Service needs no finalizer. Package plan decides about the addresses.
package loadbalancer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	discoveryinformers "k8s.io/client-go/informers/discovery/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"hotspare.io/hotspare/internal/embedded/spoke/loadbalancer/plan"
)

// ConditionType is the type of the condition of a Service of type LoadBalancer: whether this computer
// listens on all its ports, and otherwise why not.
const ConditionType = "LoadBalancerReady"

// Delays before a failed pass is repeated: the first, and the maximum.
const (
	firstRetryDelay = 100 * time.Millisecond
	maxRetryDelay   = 10 * time.Second
)

// Options describe the cluster.
type Options struct {
	// Cluster is a name of the cluster that no other one on this computer has.
	Cluster string
	// Dial connects to an endpoint of a Service, by "tcp" or "udp". A TCP connection is a
	// podnetwork.HalfCloser.
	Dial func(ctx context.Context, network string, to netip.AddrPort) (net.Conn, error)
}

// Run gives the Services of the cluster addresses until ctx ends. When it returns, nothing is listened on
// any more.
func Run(ctx context.Context, client kubernetes.Interface, o Options) error {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithName("loadbalancer"))
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	defer broadcaster.Shutdown()
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return fmt.Errorf("sending events: %w", err)
	}
	c, err := newController(client, o, clock.RealClock{}, broadcaster.NewRecorder(scheme.Scheme, "loadbalancer"))
	if err != nil {
		return err
	}
	return c.run(ctx)
}

// controller reconciles all Services of the cluster in each pass: no two may have the same address.
type controller struct {
	options   Options
	client    kubernetes.Interface
	events    events.EventRecorder
	clock     clock.WithTicker
	services  cache.SharedIndexInformer
	slices    cache.SharedIndexInformer
	queue     workqueue.TypedRateLimitingInterface[struct{}] // the pass
	listeners *listeners
	failures  map[types.NamespacedName]plan.Failure
}

func newController(client kubernetes.Interface, o Options, now clock.WithTicker, recorder events.EventRecorder) (*controller, error) {
	c := &controller{
		options: o, client: client, events: recorder, clock: now,
		services: coreinformers.NewServiceInformer(client, metav1.NamespaceAll, 0, cache.Indexers{}),
		slices:   discoveryinformers.NewEndpointSliceInformer(client, metav1.NamespaceAll, 0, cache.Indexers{byService: indexByService}),
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[struct{}](firstRetryDelay, maxRetryDelay),
			workqueue.TypedRateLimitingQueueConfig[struct{}]{Clock: now},
		),
		failures: map[types.NamespacedName]plan.Failure{},
	}
	c.listeners = &listeners{open: newOpener(), newBalancer: c.newBalancer, services: map[types.NamespacedName]*listener{}}
	enqueue := func() { c.queue.Add(struct{}{}) }
	_, err := c.services.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { enqueue() }, UpdateFunc: func(_, _ any) { enqueue() }, DeleteFunc: func(any) { enqueue() },
	})
	return c, errors.Join(err, c.services.SetTransform(trim), c.slices.SetTransform(trim))
}

func (c *controller) newBalancer(service types.NamespacedName, port plan.Port) *balancer {
	return &balancer{find: func() endpoints { return c.findEndpoints(service, port) }, dial: c.options.Dial, clock: c.clock}
}

// run reconciles whenever a Service has changed, or a retry is due, until ctx ends. It ignores
// EndpointSlices: a connection reads the current ones.
func (c *controller) run(ctx context.Context) error {
	defer c.listeners.stopAll()
	go c.services.RunWithContext(ctx)
	go c.slices.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), c.services.HasSynced, c.slices.HasSynced) {
		return nil // stopped before
	}
	context.AfterFunc(ctx, c.queue.ShutDown)
	for {
		item, down := c.queue.Get()
		if down {
			return nil
		}
		retryAt, err := c.reconcile(ctx)
		c.finishPass(ctx, item, retryAt, err)
	}
}

func (c *controller) finishPass(ctx context.Context, item struct{}, retryAt time.Time, err error) {
	defer c.queue.Done(item)
	if err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "will retry")
		c.queue.AddRateLimited(item)
	} else {
		c.queue.Forget(item)
	}
	if !retryAt.IsZero() {
		c.queue.AddAfter(item, retryAt.Sub(c.clock.Now()))
	}
}
