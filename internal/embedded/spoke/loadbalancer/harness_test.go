package loadbalancer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

// harness is a cluster whose API is in memory. Its endpoints are servers of this process; the addresses of
// its Services are real.
type harness struct {
	t       *testing.T
	client  *fake.Clientset
	clock   *clocktesting.FakeClock
	events  *events.FakeRecorder
	cluster string
	// open, if not nil, replaces that of the listeners.
	open func(netip.AddrPort, corev1.Protocol) (socket, error)

	mu      sync.Mutex
	servers map[netip.AddrPort]string // the address of the server that is an endpoint
	dialed  []string
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has all addresses in 127.0.0.0/8")
	}
	return &harness{
		t: t, client: fake.NewClientset(), clock: clocktesting.NewFakeClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)),
		events: events.NewFakeRecorder(100), cluster: t.Name(), servers: map[netip.AddrPort]string{},
	}
}

func (h *harness) dial(ctx context.Context, network string, to netip.AddrPort) (net.Conn, error) {
	h.mu.Lock()
	server := h.servers[to]
	h.dialed = append(h.dialed, to.String())
	h.mu.Unlock()
	if server == "" {
		return nil, fmt.Errorf("connecting to %s: %w", to, syscall.ECONNREFUSED)
	}
	return new(net.Dialer).DialContext(ctx, network, server)
}

// start starts a controller, as a process of a control plane does, and returns a function that ends it.
func (h *harness) start() (stop func()) {
	h.t.Helper()
	c, err := newController(h.client, Options{Cluster: h.cluster, Dial: h.dial}, h.clock, h.events)
	if err != nil {
		h.t.Fatal(err)
	}
	if h.open != nil {
		c.listeners.open = h.open
	}
	ctx, cancel := context.WithCancel(h.t.Context())
	done := make(chan error, 1)
	go func() { done <- c.run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			h.t.Error(err)
		}
	})
	h.t.Cleanup(stop)
	return stop
}

// newService returns a Service with a TCP port.
func newService(name string, port uint16) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: corev1.ServiceSpec{
			Type:  corev1.ServiceTypeLoadBalancer,
			Ports: []corev1.ServicePort{{Name: "main", Protocol: corev1.ProtocolTCP, Port: int32(port)}},
		},
	}
}

func (h *harness) create(s *corev1.Service) {
	h.t.Helper()
	if _, err := h.client.CoreV1().Services(s.Namespace).Create(h.t.Context(), s, metav1.CreateOptions{}); err != nil {
		h.t.Fatal(err)
	}
}

// change changes a Service as a user does.
func (h *harness) change(name string, f func(*corev1.Service)) {
	h.t.Helper()
	services := h.client.CoreV1().Services("default")
	s, err := services.Get(h.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
	f(s)
	if _, err := services.Update(h.t.Context(), s, metav1.UpdateOptions{}); err != nil {
		h.t.Fatal(err)
	}
}

func (h *harness) delete(name string) {
	h.t.Helper()
	if err := h.client.CoreV1().Services("default").Delete(h.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		h.t.Fatal(err)
	}
}

// setEndpoints sets the ready endpoints of a Service's port "main".
func (h *harness) setEndpoints(service string, protocol corev1.Protocol, ready ...netip.AddrPort) {
	h.t.Helper()
	slice := newSlice(service, protocol, ready...)
	slices := h.client.DiscoveryV1().EndpointSlices("default")
	_ = slices.Delete(h.t.Context(), slice.Name, metav1.DeleteOptions{}) // if there is one
	if _, err := slices.Create(h.t.Context(), slice, metav1.CreateOptions{}); err != nil {
		h.t.Fatal(err)
	}
}

func newSlice(service string, protocol corev1.Protocol, ready ...netip.AddrPort) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "default", Name: service, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("main"), Protocol: ptr.To(protocol), Port: ptr.To[int32](8080)}},
	}
	for _, e := range ready {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{e.Addr().String()}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)},
		})
	}
	return slice
}

// endpoint returns the n-th endpoint.
func endpoint(n int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 128, 2, byte(n)}), 8080)
}

// serve makes the endpoint answer each line with its address and the line.
func (h *harness) serve(e netip.AddrPort) {
	h.t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for lines := bufio.NewScanner(conn); lines.Scan(); {
					fmt.Fprintf(conn, "%s: %s\n", e.Addr(), lines.Text())
				}
				fmt.Fprint(conn, "end\n")
			}()
		}
	}()
	h.setServer(e, l.Addr().String())
}

func (h *harness) setServer(e netip.AddrPort, address string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.servers[e] = address
}

// waitFor waits until the Service is as f wants it.
func (h *harness) waitFor(name, what string, f func(*corev1.Service) bool) *corev1.Service {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), 20*time.Second)
	defer cancel()
	services := h.client.CoreV1().Services("default")
	w, err := services.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
	defer w.Stop()
	s, err := services.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
	for !f(s) {
		select {
		case event := <-w.ResultChan():
			if changed, ok := event.Object.(*corev1.Service); ok && changed.Name == name {
				s = changed
			}
		case <-ctx.Done():
			h.t.Fatalf("the Service is not %s: %+v", what, s.Status)
		}
	}
	return s
}

func addressOf(s *corev1.Service) netip.Addr {
	if len(s.Status.LoadBalancer.Ingress) != 1 {
		return netip.Addr{}
	}
	a, _ := netip.ParseAddr(s.Status.LoadBalancer.Ingress[0].IP)
	return a
}

// waitForAddress waits until all ports of the Service are listened on, and returns its address.
func (h *harness) waitForAddress(name string) netip.Addr {
	h.t.Helper()
	return addressOf(h.waitFor(name, "ready", func(s *corev1.Service) bool {
		return addressOf(s).IsValid() && apimeta.IsStatusConditionTrue(s.Status.Conditions, ConditionType)
	}))
}

// stepUntilAddress steps the clock until a Service that failed is tried again and is ready.
func (h *harness) stepUntilAddress(name string) {
	h.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; <-time.After(5 * time.Millisecond) {
		s, err := h.client.CoreV1().Services("default").Get(h.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			h.t.Fatal(err)
		}
		if addressOf(s).IsValid() && apimeta.IsStatusConditionTrue(s.Status.Conditions, ConditionType) {
			return
		}
		if time.Now().After(deadline) {
			h.t.Fatalf("the Service is not ready: %+v", s.Status)
		}
		h.clock.Step(time.Second)
	}
}

// waitForReason waits until the condition of the Service has the reason, and returns its message.
func (h *harness) waitForReason(name, reason string) string {
	h.t.Helper()
	s := h.waitFor(name, reason, func(s *corev1.Service) bool {
		c := apimeta.FindStatusCondition(s.Status.Conditions, ConditionType)
		return c != nil && c.Reason == reason
	})
	return apimeta.FindStatusCondition(s.Status.Conditions, ConditionType).Message
}

// waitForEvent waits for an event whose text begins as given.
func (h *harness) waitForEvent(beginning string) {
	h.t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		select {
		case e := <-h.events.Events:
			if strings.HasPrefix(e, beginning) {
				return
			}
			h.t.Logf("event: %s", e)
		case <-deadline:
			h.t.Fatalf("no event %q", beginning)
		}
	}
}

// ask sends a line to the address and returns the answer.
func ask(t *testing.T, address netip.AddrPort, line string) (string, error) {
	t.Helper()
	conn, err := net.DialTimeout("tcp4", address.String(), 5*time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := fmt.Fprintln(conn, line); err != nil {
		return "", err
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}

// freePort returns a port that is free at all addresses.
func freePort(t *testing.T) uint16 {
	t.Helper()
	l, err := net.Listen("tcp4", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).AddrPort().Port()
}

// checkRefused checks that soon nothing listens at the address, and that nobody is answered there before.
func checkRefused(t *testing.T, address netip.AddrPort) {
	t.Helper()
	for {
		answer, err := ask(t, address, "hello")
		switch {
		case errors.Is(err, syscall.ECONNREFUSED):
			return
		case err == nil:
			t.Errorf("%s answers %q", address, answer)
			return
		case t.Context().Err() != nil:
			t.Fatal(err)
		}
	}
}
