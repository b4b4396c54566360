package zone

import (
	"net/netip"
	"strings"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// groupByService returns the EndpointSlices with IP addresses by the namespace/name of their Service.
func groupByService(all []*discoveryv1.EndpointSlice) map[string][]*discoveryv1.EndpointSlice {
	out := map[string][]*discoveryv1.EndpointSlice{}
	for _, s := range all {
		if s.AddressType == discoveryv1.AddressTypeFQDN {
			continue
		}
		key := s.Namespace + "/" + s.Labels[discoveryv1.LabelServiceName]
		out[key] = append(out[key], s)
	}
	return out
}

func (z *Zone) addService(s *corev1.Service, endpoints []*discoveryv1.EndpointSlice) {
	name := strings.ToLower(s.Name+"."+s.Namespace) + ".svc." + z.domain
	switch {
	case s.Spec.Type == corev1.ServiceTypeExternalName:
		z.addExternalName(name, s.Spec.ExternalName)
	case s.Spec.ClusterIP == corev1.ClusterIPNone:
		// The specification wants NXDOMAIN for a headless Service without ready endpoints: only
		// its endpoints create nodes.
		z.addEndpoints(s, endpoints, func(e endpoint) { z.addHeadlessEndpoint(name, e) })
	default:
		z.addClusterIPs(name, s)
		z.addEndpoints(s, endpoints, func(e endpoint) { z.addEndpointName(name, e) })
	}
}

func (z *Zone) addExternalName(name, target string) {
	n := z.ensureNode(name)
	if _, valid := dns.IsDomainName(target); valid && target != "" {
		n.alias = dns.Fqdn(target)
	}
}

func (z *Zone) addClusterIPs(name string, s *corev1.Service) {
	n := z.ensureNode(name)
	for _, ip := range clusterIPs(s) {
		n.addresses = append(n.addresses, ip)
		pointer := z.ensureNode(reverseName(ip))
		pointer.pointers = append(pointer.pointers, name)
		if s.Namespace == serverNamespace && s.Name == serverService {
			own := z.ensureNode(z.nameserver())
			own.addresses = append(own.addresses, ip)
		}
	}
	if len(n.addresses) == 0 {
		return
	}
	for _, p := range s.Spec.Ports {
		z.addServiceRecord(name, servicePort{p.Name, p.Protocol, p.Port}, name)
	}
}

// clusterIPs returns the addresses of the Service; objects from before dual-stack have one only.
func clusterIPs(s *corev1.Service) []netip.Addr {
	texts := s.Spec.ClusterIPs
	if len(texts) == 0 {
		texts = []string{s.Spec.ClusterIP}
	}
	return parseAddresses(texts)
}

// parseAddresses returns the addresses among the texts.
func parseAddresses(texts []string) []netip.Addr {
	var out []netip.Addr
	for _, text := range texts {
		if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
			out = append(out, a.Unmap())
		}
	}
	return out
}

// servicePort is a port of a Service or of an EndpointSlice.
type servicePort struct {
	name     string
	protocol corev1.Protocol
	number   int32
}

// endpoint is one address of an endpoint that is to be published.
type endpoint struct {
	hostname string
	address  netip.Addr
	ports    []servicePort
}

// addEndpoints calls add for each address of the endpoints that the Service publishes.
func (z *Zone) addEndpoints(s *corev1.Service, all []*discoveryv1.EndpointSlice, add func(endpoint)) {
	for _, list := range all {
		ports := namedPorts(list.Ports)
		for i := range list.Endpoints {
			e := &list.Endpoints[i]
			if !s.Spec.PublishNotReadyAddresses && !isReady(e) {
				continue
			}
			for _, address := range parseAddresses(e.Addresses) {
				add(endpoint{endpointHostname(e, address), address, ports})
			}
		}
	}
}

// isReady reports whether the endpoint is ready; the API defines that one of unknown readiness is.
func isReady(e *discoveryv1.Endpoint) bool {
	return e.Conditions.Ready == nil || *e.Conditions.Ready
}

// endpointHostname returns the endpoint's hostname. Without one it is derived from the address, as
// CoreDNS derives it: 10-1-2-3.
func endpointHostname(e *discoveryv1.Endpoint, a netip.Addr) string {
	if e.Hostname != nil && len(validation.IsDNS1123Label(*e.Hostname)) == 0 {
		return *e.Hostname
	}
	return strings.Map(func(r rune) rune {
		if r == '.' || r == ':' {
			return '-'
		}
		return r
	}, a.String())
}

// namedPorts returns the ports with a name and a number.
func namedPorts(all []discoveryv1.EndpointPort) []servicePort {
	var out []servicePort
	for _, p := range all {
		if p.Name == nil || p.Port == nil {
			continue
		}
		protocol := corev1.ProtocolTCP
		if p.Protocol != nil {
			protocol = *p.Protocol
		}
		out = append(out, servicePort{*p.Name, protocol, *p.Port})
	}
	return out
}

func (z *Zone) addHeadlessEndpoint(service string, e endpoint) {
	n := z.ensureNode(service)
	n.addresses = append(n.addresses, e.address)
	name := z.addEndpointName(service, e)
	pointer := z.ensureNode(reverseName(e.address))
	pointer.pointers = append(pointer.pointers, name)
	for _, p := range e.ports {
		z.addServiceRecord(service, p, name)
	}
}

// addEndpointName adds the addresses of the endpoint's hostname, and returns its name. Services with
// a ClusterIP have such names too, which the specification leaves open, because CoreDNS has them
// and the pods of a StatefulSet whose Service is not headless look for them.
func (z *Zone) addEndpointName(service string, e endpoint) string {
	name := e.hostname + "." + service
	n := z.ensureNode(name)
	n.addresses = append(n.addresses, e.address)
	return name
}

// addServiceRecord adds the SRV record of a port. A port without a name has none.
func (z *Zone) addServiceRecord(service string, p servicePort, target string) {
	if p.name == "" || p.number < 0 || p.number > 65535 {
		return
	}
	n := z.ensureNode("_" + p.name + "._" + string(p.protocol) + "." + service)
	n.serviceRecords = append(n.serviceRecords, serviceRecord{target, uint16(p.number)})
}
