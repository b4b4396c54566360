package spoke

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"hotspare.io/hotspare/internal/embedded/machine"
)

// clusterDNSIP is the address of the cluster's DNS server, as on OpenShift.
const clusterDNSIP = "172.30.0.10"

// serviceInterval is how often the Services of the cluster itself are checked.
const serviceInterval = 10 * time.Second

// maintainServices maintains the Services whose servers are not pods but the gateway of the network
// of pods, until ctx ends: the API and DNS.
func maintainServices(ctx context.Context, root *rest.Config) error {
	config := rest.CopyConfig(root)
	config.WarningHandler = rest.NoWarnings{} // Endpoints are deprecated
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("creating a client of the API: %w", err)
	}
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := ensureServices(ctx, client); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "will retry")
		}
	}, serviceInterval)
	return nil
}

func ensureServices(ctx context.Context, client kubernetes.Interface) error {
	dns := newDNSService()
	if err := ensureService(ctx, client, dns); err != nil {
		return err
	}
	for _, slice := range []*discoveryv1.EndpointSlice{
		newGatewaySlice(metav1.NamespaceDefault, "kubernetes", gatewayPort("https", machine.GatewayAPIPort, corev1.ProtocolTCP)),
		newGatewaySlice(dns.Namespace, dns.Name, gatewayPort("dns", dnsPort, corev1.ProtocolUDP), gatewayPort("dns-tcp", dnsPort, corev1.ProtocolTCP)),
	} {
		if err := ensureSlice(ctx, client, slice); err != nil {
			return err
		}
	}
	return ensureAPIEndpoints(ctx, client)
}

// ensureAPIEndpoints creates or replaces the Endpoints of the API, which older programs read, and each conformant cluster has.
func ensureAPIEndpoints(ctx context.Context, client kubernetes.Interface) error {
	const name = "kubernetes"
	wanted := &corev1.Endpoints{ //nolint:staticcheck // as older programs expect
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{discoveryv1.LabelSkipMirror: "true"}}, // there is a slice
		Subsets: []corev1.EndpointSubset{{ //nolint:staticcheck // as above
			Addresses: []corev1.EndpointAddress{{IP: machine.Gateway.String()}},
			Ports:     []corev1.EndpointPort{{Name: "https", Port: machine.GatewayAPIPort, Protocol: corev1.ProtocolTCP}},
		}},
	}
	endpoints := client.CoreV1().Endpoints(metav1.NamespaceDefault)
	old, err := endpoints.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = endpoints.Create(ctx, wanted, metav1.CreateOptions{})
		return ignoreAlreadyExists(err, "endpoints", name)
	case err != nil:
		return fmt.Errorf("getting endpoints %s: %w", name, err)
	case equality.Semantic.DeepEqual(old.Subsets, wanted.Subsets) && old.Labels[discoveryv1.LabelSkipMirror] == "true":
		return nil
	}
	wanted.ResourceVersion = old.ResourceVersion
	if _, err := endpoints.Update(ctx, wanted, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("updating endpoints %s: %w", name, err)
	}
	return nil
}

// ensureService creates a Service, unless it exists. A request to create it again would fail for its
// address.
func ensureService(ctx context.Context, client kubernetes.Interface, service *corev1.Service) error {
	services := client.CoreV1().Services(service.Namespace)
	_, err := services.Get(ctx, service.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = services.Create(ctx, service, metav1.CreateOptions{})
	}
	return ignoreAlreadyExists(err, "service", service.Name)
}

// ensureSlice creates or replaces an EndpointSlice.
func ensureSlice(ctx context.Context, client kubernetes.Interface, slice *discoveryv1.EndpointSlice) error {
	slices := client.DiscoveryV1().EndpointSlices(slice.Namespace)
	old, err := slices.Get(ctx, slice.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = slices.Create(ctx, slice, metav1.CreateOptions{})
		return ignoreAlreadyExists(err, "endpoint slice", slice.Name)
	case err != nil:
		return fmt.Errorf("getting endpoint slice %s: %w", slice.Name, err)
	case hasSameEndpoints(old, slice):
		return nil
	}
	slice.ResourceVersion = old.ResourceVersion
	if _, err := slices.Update(ctx, slice, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("updating endpoint slice %s: %w", slice.Name, err)
	}
	return nil
}

func hasSameEndpoints(a, b *discoveryv1.EndpointSlice) bool {
	return len(a.Endpoints) == 1 && len(a.Ports) == len(b.Ports) &&
		len(a.Endpoints[0].Addresses) == 1 && a.Endpoints[0].Addresses[0] == b.Endpoints[0].Addresses[0] &&
		a.Labels[discoveryv1.LabelServiceName] == b.Labels[discoveryv1.LabelServiceName]
}

const dnsPort = 53

// newDNSService returns the Service of DNS. It has the name and the label that tools look for.
func newDNSService() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceSystem, Name: "kube-dns", Labels: map[string]string{"k8s-app": "kube-dns"},
		},
		Spec: corev1.ServiceSpec{
			ClusterIP: clusterDNSIP,
			Ports: []corev1.ServicePort{
				{Name: "dns", Protocol: corev1.ProtocolUDP, Port: dnsPort, TargetPort: intstr.FromInt32(dnsPort)},
				{Name: "dns-tcp", Protocol: corev1.ProtocolTCP, Port: dnsPort, TargetPort: intstr.FromInt32(dnsPort)},
			},
		},
	}
}

// newGatewaySlice returns the endpoints of a Service that the gateway serves.
func newGatewaySlice(namespace, service string, ports ...discoveryv1.EndpointPort) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: service,
			Labels: map[string]string{discoveryv1.LabelServiceName: service, discoveryv1.LabelManagedBy: "hotspare.io"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{
			Addresses:  []string{machine.Gateway.String()},
			Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)},
		}},
		Ports: ports,
	}
}

func gatewayPort(name string, port int32, protocol corev1.Protocol) discoveryv1.EndpointPort {
	return discoveryv1.EndpointPort{Name: ptr.To(name), Port: ptr.To(port), Protocol: ptr.To(protocol)}
}
