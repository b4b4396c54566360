package clusterdns

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// trim is a cache.TransformFunc that keeps of an object what package zone reads: the rest, above all the
// managed fields, is most of the memory.
func trim(object any) (any, error) {
	switch o := object.(type) {
	case *corev1.Namespace:
		return &corev1.Namespace{ObjectMeta: trimMeta(&o.ObjectMeta)}, nil
	case *corev1.Service:
		return trimService(o), nil
	case *discoveryv1.EndpointSlice:
		return trimEndpointSlice(o), nil
	}
	return object, nil // a cache.DeletedFinalStateUnknown
}

// trimMeta keeps what informers need.
func trimMeta(m *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: m.Name, Namespace: m.Namespace, UID: m.UID, ResourceVersion: m.ResourceVersion}
}

func trimService(s *corev1.Service) *corev1.Service {
	out := &corev1.Service{
		ObjectMeta: trimMeta(&s.ObjectMeta),
		Spec: corev1.ServiceSpec{
			Type: s.Spec.Type, ClusterIP: s.Spec.ClusterIP, ClusterIPs: s.Spec.ClusterIPs,
			ExternalName: s.Spec.ExternalName, PublishNotReadyAddresses: s.Spec.PublishNotReadyAddresses,
		},
	}
	for _, p := range s.Spec.Ports {
		out.Spec.Ports = append(out.Spec.Ports, corev1.ServicePort{Name: p.Name, Protocol: p.Protocol, Port: p.Port})
	}
	return out
}

func trimEndpointSlice(s *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	out := &discoveryv1.EndpointSlice{ObjectMeta: trimMeta(&s.ObjectMeta), AddressType: s.AddressType, Ports: s.Ports}
	if service, ok := s.Labels[discoveryv1.LabelServiceName]; ok {
		out.Labels = map[string]string{discoveryv1.LabelServiceName: service}
	}
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		out.Endpoints = append(out.Endpoints, discoveryv1.Endpoint{
			Addresses: e.Addresses, Hostname: e.Hostname,
			Conditions: discoveryv1.EndpointConditions{Ready: e.Conditions.Ready},
		})
	}
	return out
}
