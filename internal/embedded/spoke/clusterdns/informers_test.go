package clusterdns

import (
	"context"
	"net"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"hotspare.io/hotspare/internal/embedded/spoke/clusterdns/zone"
)

func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, clusterIP("default", "a", "10.96.0.7"))
		ctx, stop := context.WithCancel(t.Context())
		pipe, socket := net.Pipe()
		s := &served{t: t, packets: pipe, streams: newPipeListener(), stop: stop, ended: make(chan error, 1)}
		go func() { s.ended <- Run(ctx, client, Options{}, packetPipe{socket}, s.streams) }()
		expect := func(name, want string) {
			t.Helper()
			synctest.Wait() // until the informers have seen everything
			if got := summary(s.ask(query(dns.TypeA, name))); got != want {
				t.Errorf("%s: got %s, want %s", name, got, want)
			}
		}
		expect("a.default.svc.cluster.local", "NOERROR aa a.default.svc.cluster.local. A 10.96.0.7")
		expect("new.svc.cluster.local", "NXDOMAIN aa SOA cluster.local.")
		create(t, client.CoreV1().Namespaces().Create, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "new"}})
		expect("new.svc.cluster.local", "NOERROR aa SOA cluster.local.")
		create(t, client.CoreV1().Services("default").Create, clusterIP("default", "b", corev1.ClusterIPNone))
		expect("b.default.svc.cluster.local", "NXDOMAIN aa SOA cluster.local.")
		create(t, client.DiscoveryV1().EndpointSlices("default").Create, &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b-1", Labels: map[string]string{discoveryv1.LabelServiceName: "b"}},
			Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{"10.244.0.1"}}},
		})
		expect("b.default.svc.cluster.local", "NOERROR aa b.default.svc.cluster.local. A 10.244.0.1")
		if _, err := client.CoreV1().Services("default").Update(ctx, clusterIP("default", "a", "10.96.0.8"), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		expect("a.default.svc.cluster.local", "NOERROR aa a.default.svc.cluster.local. A 10.96.0.8")
		if err := client.CoreV1().Services("default").Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		expect("a.default.svc.cluster.local", "NXDOMAIN aa SOA cluster.local.")
		stop()
		if err := <-s.ended; err != nil {
			t.Errorf("Run returned %v", err)
		}
	})
}

func create[T any](t *testing.T, f func(context.Context, T, metav1.CreateOptions) (T, error), object T) {
	t.Helper()
	if _, err := f(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestRunReportsInvalidOptions(t *testing.T) {
	if err := Run(t.Context(), fake.NewClientset(), Options{Upstreams: []string{"x"}}, packetPipe{}, newPipeListener()); err == nil {
		t.Error("an invalid upstream is no error")
	}
}

// A zone of trimmed objects answers as one of the whole objects, and nothing else is left of them.
func TestTrim(t *testing.T) {
	yes, name, number, protocol, node := true, "http", int32(80), corev1.ProtocolTCP, "node"
	meta := metav1.ObjectMeta{
		Namespace: "default", Name: "a", UID: "1", ResourceVersion: "2", Annotations: map[string]string{"a": "b"},
		Labels: map[string]string{discoveryv1.LabelServiceName: "a", "x": "y"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
	}
	kept := metav1.ObjectMeta{Namespace: "default", Name: "a", UID: "1", ResourceVersion: "2"}
	labeled := kept
	labeled.Labels = map[string]string{discoveryv1.LabelServiceName: "a"}
	unlabeled := meta
	unlabeled.Labels = nil
	for what, c := range map[string]struct{ in, want any }{
		"a Namespace": {&corev1.Namespace{ObjectMeta: meta, Status: corev1.NamespaceStatus{Phase: corev1.NamespaceActive}}, &corev1.Namespace{ObjectMeta: kept}},
		"a Service": {
			&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
				Type: corev1.ServiceTypeNodePort, ClusterIP: "10.96.0.1", ClusterIPs: []string{"10.96.0.1"}, ExternalName: "e", PublishNotReadyAddresses: true,
				Selector: map[string]string{"a": "b"}, Ports: []corev1.ServicePort{{Name: "http", Protocol: "TCP", Port: 80, NodePort: 30000}},
			}},
			&corev1.Service{ObjectMeta: kept, Spec: corev1.ServiceSpec{
				Type: corev1.ServiceTypeNodePort, ClusterIP: "10.96.0.1", ClusterIPs: []string{"10.96.0.1"}, ExternalName: "e", PublishNotReadyAddresses: true,
				Ports: []corev1.ServicePort{{Name: "http", Protocol: "TCP", Port: 80}},
			}},
		},
		"an EndpointSlice": {
			&discoveryv1.EndpointSlice{
				ObjectMeta: meta, AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: &name, Port: &number, Protocol: &protocol}},
				Endpoints: []discoveryv1.Endpoint{{
					Addresses: []string{"10.244.0.1"}, Hostname: &name, NodeName: &node, TargetRef: &corev1.ObjectReference{},
					Conditions: discoveryv1.EndpointConditions{Ready: &yes, Serving: &yes},
				}},
			},
			&discoveryv1.EndpointSlice{
				ObjectMeta: labeled, AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: &name, Port: &number, Protocol: &protocol}},
				Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.244.0.1"}, Hostname: &name, Conditions: discoveryv1.EndpointConditions{Ready: &yes}}},
			},
		},
		"an EndpointSlice of no Service": {&discoveryv1.EndpointSlice{ObjectMeta: unlabeled}, &discoveryv1.EndpointSlice{ObjectMeta: kept}},
		"the key of a deleted object":    {cache.DeletedFinalStateUnknown{Key: "a/b"}, cache.DeletedFinalStateUnknown{Key: "a/b"}},
	} {
		for range 2 { // it must be idempotent
			got, err := trim(c.in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s:\n%s", what, diff)
			}
			c.in = got
		}
	}
}

func TestAnInformerSourceKeepsTrimmedObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := clusterIP("default", "a", "10.96.0.7")
		service.Annotations = map[string]string{"a": "b"}
		source, err := newInformerSource(fake.NewClientset(service))
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var work sync.WaitGroup
		for _, informer := range source.informers() {
			work.Go(func() { informer.RunWithContext(ctx) })
		}
		synctest.Wait()
		got := source.Objects().Services
		if len(got) != 1 || got[0].Name != "a" || got[0].Annotations != nil {
			t.Errorf("got %v, want one Service without annotations", got)
		}
		stop()
		work.Wait()
	})
}

func TestAnInformerSourceWaitsForAllKinds(t *testing.T) {
	source, err := newInformerSource(fake.NewClientset())
	if err != nil {
		t.Fatal(err)
	}
	if _, synced := source.Generation(); synced {
		t.Error("it says that it has read everything, and has read nothing")
	}
	if diff := cmp.Diff(zone.Snapshot{}, source.Objects()); diff != "" {
		t.Error(diff)
	}
}
