package controlplane

import (
	"fmt"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"hotspare.io/hotspare/internal/embedded/controlplane/resourcemetrics"
)

// addResourceMetrics adds the resource metrics API to the API server, if o.IsMeasured is set. The
// aggregator is the outermost of the servers of which the API server consists, and kubernetesAPIs the one of
// Kubernetes' own kinds.
//
// There is no APIService: the aggregator passes requests for which it has none to the server of
// Kubernetes' own APIs. A metrics-server in the cluster therefore replaces this API for as long as its
// APIService exists, without any object to overwrite or to fight about.
func addResourceMetrics(aggregator, kubernetesAPIs *genericapiserver.GenericAPIServer, f files, o Options) error {
	if o.IsMeasured == nil {
		return nil
	}
	collector, err := newMetricsCollector(aggregator.LoopbackClientConfig, f, o)
	if err != nil {
		return err
	}
	if err := collector.Install(kubernetesAPIs); err != nil {
		return err
	}
	return aggregator.AddPostStartHook("hotspare-resource-metrics", func(ctx genericapiserver.PostStartHookContext) error {
		go collector.Run(ctx)
		return nil
	})
}

// newMetricsCollector returns a collector that asks the kubelets as the API server does.
func newMetricsCollector(loopback *rest.Config, f files, o Options) (*resourcemetrics.Collector, error) {
	client, err := kubernetes.NewForConfig(loopback)
	if err != nil {
		return nil, fmt.Errorf("creating a client for the resource metrics API: %w", err)
	}
	objects, err := metadata.NewForConfig(loopback)
	if err != nil {
		return nil, fmt.Errorf("creating a client for the resource metrics API: %w", err)
	}
	return resourcemetrics.New(resourcemetrics.Options{
		Client:   client,
		Metadata: objects,
		Kubelets: rest.Config{
			Dial: o.DialCluster,
			TLSClientConfig: rest.TLSClientConfig{
				CAFile: f.clusterCAPath(), CertFile: f.certificatePath(kubeletClientFile), KeyFile: f.privateKeyPath(kubeletClientFile),
			},
		},
		IsMeasured: o.IsMeasured,
	})
}
