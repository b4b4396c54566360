package loadbalancer

import (
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/embedded/spoke/loadbalancer/plan"
)

// observe returns the snapshot of the cluster. It forgets the failures of Services that do not exist.
func (c *controller) observe() plan.Snapshot {
	s := plan.Snapshot{Now: c.clock.Now(), Cluster: c.options.Cluster, Listening: c.listeners.snapshot(), Failures: c.failures}
	exists := map[types.NamespacedName]bool{}
	for _, object := range c.services.GetStore().List() {
		service := newPlanService(object.(*corev1.Service))
		exists[service.Key] = true
		if service.Wanted || service.Reported {
			s.Services = append(s.Services, service)
		}
	}
	maps.DeleteFunc(c.failures, func(key types.NamespacedName, _ plan.Failure) bool { return !exists[key] })
	return s
}

// newPlanService returns a Service as the decider sees it.
func newPlanService(s *corev1.Service) plan.Service {
	managed := isManaged(s)
	own := apimeta.FindStatusCondition(s.Status.Conditions, ConditionType)
	out := plan.Service{
		Key:       keyOf(s),
		Created:   s.CreationTimestamp.Time,
		Wanted:    managed && s.DeletionTimestamp.IsZero(),
		Reported:  own != nil || managed && len(s.Status.LoadBalancer.Ingress) > 0,
		Requested: s.Spec.LoadBalancerIP,
	}
	for _, p := range s.Spec.Ports {
		out.Ports = append(out.Ports, plan.Port{Number: uint16(p.Port), Protocol: p.Protocol})
	}
	for _, ingress := range s.Status.LoadBalancer.Ingress {
		if a, err := netip.ParseAddr(ingress.IP); err == nil {
			out.Recorded = a
			break
		}
	}
	out.Exact = slices.EqualFunc(s.Status.LoadBalancer.Ingress, newIngress(out.Recorded), func(a, b corev1.LoadBalancerIngress) bool {
		return a.IP == b.IP && a.Hostname == b.Hostname && ptr.Equal(a.IPMode, b.IPMode) && len(a.Ports) == 0
	})
	if own != nil {
		out.Condition = condition.Value{Status: corev1.ConditionStatus(own.Status), Reason: own.Reason, Message: own.Message}
	}
	return out
}

// isManaged reports whether status.loadBalancer of the Service is this controller's to write.
func isManaged(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeLoadBalancer && s.Spec.LoadBalancerClass == nil
}

func keyOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// newIngress returns status.loadBalancer.ingress for an address, which may be invalid for none. With
// ipMode Proxy, kube-proxy makes no rules for the address: in a node, it is the node's own loopback.
func newIngress(a netip.Addr) []corev1.LoadBalancerIngress {
	if !a.IsValid() {
		return nil
	}
	return []corev1.LoadBalancerIngress{{IP: a.String(), IPMode: ptr.To(corev1.LoadBalancerIPModeProxy)}}
}

// byService is the name of the index of EndpointSlices by the key of their Service.
const byService = "service"

func indexByService(object any) ([]string, error) {
	slice := object.(*discoveryv1.EndpointSlice)
	name := slice.Labels[discoveryv1.LabelServiceName]
	if name == "" {
		return nil, nil
	}
	return []string{types.NamespacedName{Namespace: slice.Namespace, Name: name}.String()}, nil
}

// findEndpoints returns the endpoints of a port of a Service. It is safe for concurrent use.
func (c *controller) findEndpoints(service types.NamespacedName, port plan.Port) endpoints {
	object, exists, err := c.services.GetStore().GetByKey(service.String())
	if !exists || err != nil {
		return endpoints{}
	}
	found, err := c.slices.GetIndexer().ByIndex(byService, service.String())
	if err != nil {
		return endpoints{}
	}
	slices := make([]*discoveryv1.EndpointSlice, len(found))
	for n := range found {
		slices[n] = found[n].(*discoveryv1.EndpointSlice)
	}
	s := object.(*corev1.Service)
	for _, p := range s.Spec.Ports {
		if p.Port == int32(port.Number) && p.Protocol == port.Protocol {
			return findEndpoints(s, p, slices)
		}
	}
	return endpoints{}
}

// trim is a cache.TransformFunc that removes the managed fields, which are most of the memory of an
// object.
func trim(object any) (any, error) {
	switch o := object.(type) {
	case *corev1.Service:
		trimmed := *o
		trimmed.ManagedFields = nil
		return &trimmed, nil
	case *discoveryv1.EndpointSlice:
		trimmed := *o
		trimmed.ManagedFields = nil
		return &trimmed, nil
	}
	return object, nil // a cache.DeletedFinalStateUnknown
}
