// Package resourcemetrics is the resource metrics API (metrics.k8s.io): the CPU and memory that nodes and
// pods use, which kubectl top prints and by which HorizontalPodAutoscalers scale.
//
// It is metrics-server without its server: the packages of metrics-server ask the kubelets, compute the
// use from two measurements, and serve it in the API server to which Install adds them.
package resourcemetrics

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"
	"sigs.k8s.io/metrics-server/pkg/api"
	"sigs.k8s.io/metrics-server/pkg/scraper"
	"sigs.k8s.io/metrics-server/pkg/scraper/client"
	"sigs.k8s.io/metrics-server/pkg/scraper/client/resource"
	"sigs.k8s.io/metrics-server/pkg/storage"
)

const (
	// interval is how often the kubelets are asked. metrics-server asks them every 15 s.
	interval = 5 * time.Second
	// answerTimeout is how long a kubelet may take to answer, as in metrics-server.
	answerTimeout = 10 * time.Second
	// youngAge is the age until which one measurement of a container is enough, because it had used
	// nothing when it started. It is metrics-server's interval.
	youngAge = 15 * time.Second
)

// Options configure a Collector.
type Options struct {
	// Client and Metadata are clients of the API that may list and watch nodes and pods.
	Client   kubernetes.Interface
	Metadata metadata.Interface
	// Kubelets configures the client of the kubelets. It must authenticate a user that may get
	// nodes/metrics.
	Kubelets rest.Config
	// IsMeasured reports whether the kubelet of a node measures what its pods use. Other nodes and
	// their pods have no metrics.
	IsMeasured func(*corev1.Node) bool
}

// Collector has the metrics of a cluster: it collects them while Run runs.
type Collector struct {
	nodes   cache.SharedIndexInformer
	pods    informers.GenericInformer
	scraper scraper.Scraper
	store   storage.Storage
}

// New returns a Collector without metrics.
func New(o Options) (*Collector, error) {
	kubelets, err := resource.NewForConfig(&client.KubeletClientConfig{
		Client:              o.Kubelets,
		AddressTypePriority: []corev1.NodeAddressType{corev1.NodeInternalIP},
		Scheme:              "https",
		UseNodeStatusPort:   true,
	})
	if err != nil {
		return nil, fmt.Errorf("creating a client of the kubelets: %w", err)
	}
	c := &Collector{
		nodes: coreinformers.NewNodeInformer(o.Client, 0, cache.Indexers{}),
		pods: metadatainformer.NewFilteredMetadataInformer(o.Metadata, corev1.SchemeGroupVersion.WithResource("pods"), metav1.NamespaceAll, 0,
			cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}, selectRunningPods),
		store: storage.NewStorage(youngAge),
	}
	for _, informer := range c.informers() {
		if err := informer.SetTransform(trim); err != nil {
			return nil, fmt.Errorf("watching nodes and pods: %w", err)
		}
	}
	c.scraper = scraper.NewScraper(measuredNodes{c.nodeLister(), o.IsMeasured}, kubelets, answerTimeout, nil)
	return c, nil
}

func selectRunningPods(o *metav1.ListOptions) {
	o.FieldSelector = fields.OneTermEqualSelector("status.phase", string(corev1.PodRunning)).String()
}

func (c *Collector) informers() []cache.SharedIndexInformer {
	return []cache.SharedIndexInformer{c.nodes, c.pods.Informer()}
}

func (c *Collector) nodeLister() corelisters.NodeLister {
	return corelisters.NewNodeLister(c.nodes.GetIndexer())
}

// Install adds the API to a server that does not serve yet.
func (c *Collector) Install(server *genericapiserver.GenericAPIServer) error {
	if err := api.Install(c.store, c.pods.Lister(), c.nodeLister(), server, nil); err != nil {
		return fmt.Errorf("adding API %s: %w", v1beta1.SchemeGroupVersion, err)
	}
	return nil
}

// Run collects metrics until ctx ends.
func (c *Collector) Run(ctx context.Context) {
	var watches sync.WaitGroup
	defer watches.Wait()
	for _, informer := range c.informers() {
		watches.Go(func() { informer.RunWithContext(ctx) })
	}
	if !cache.WaitForCacheSync(ctx.Done(), c.nodes.HasSynced) {
		return
	}
	wait.UntilWithContext(ctx, c.collect, interval)
}

// collect asks all kubelets once.
func (c *Collector) collect(ctx context.Context) { c.store.Store(c.scraper.Scrape(ctx)) }
