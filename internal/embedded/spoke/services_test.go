package spoke

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"hotspare.io/hotspare/internal/embedded/machine"
)

func TestTheServicesOfTheClusterHaveTheGatewayAsTheirEndpoint(t *testing.T) {
	client := fake.NewClientset(&corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"}}) //nolint:staticcheck // it exists
	for range 2 {
		client.ClearActions()
		if err := ensureServices(t.Context(), client); err != nil {
			t.Fatal(err)
		}
	}
	for _, a := range client.Actions() {
		if a.GetVerb() != "get" {
			t.Errorf("what is as it should be is written: %v", a)
		}
	}
	endpoints, err := client.CoreV1().Endpoints("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	slice, err := client.DiscoveryV1().EndpointSlices("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s := endpoints.Subsets[0]
	if a, b := s.Addresses[0].IP, slice.Endpoints[0].Addresses[0]; a != b || a != machine.Gateway.String() {
		t.Errorf("addresses %s and %s", a, b)
	}
	if a, b := s.Ports[0].Port, *slice.Ports[0].Port; a != b || a != machine.GatewayAPIPort {
		t.Errorf("ports %d and %d", a, b)
	}
}
