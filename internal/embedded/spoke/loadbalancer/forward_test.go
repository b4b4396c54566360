package loadbalancer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

// testBalancer returns a balancer for the endpoints of the harness, and a function that changes them.
func (h *harness) testBalancer(found endpoints) *balancer {
	return &balancer{find: func() endpoints { return found }, dial: h.dial, clock: h.clock}
}

// serveTCP serves a port with the balancer and returns its address.
func serveTCP(t *testing.T, b *balancer, connections slots) netip.AddrPort {
	t.Helper()
	s, err := openTCP(netip.MustParseAddrPort("127.0.0.1:0"), connections)
	if err != nil {
		t.Fatal(err)
	}
	serveUntilEnd(t, s, b)
	return s.Addr().(*net.TCPAddr).AddrPort()
}

func serveUntilEnd(t *testing.T, s socket, b *balancer) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); s.serve(ctx, b) }()
	t.Cleanup(func() { cancel(); <-done })
}

func TestAConnectionThatCannotBeForwardedIsResetAtOnce(t *testing.T) {
	h := newHarness(t)
	for name, found := range map[string]endpoints{
		"no endpoint is ready":            {},
		"no endpoint accepts connections": {ready: []netip.AddrPort{endpoint(1), endpoint(2)}},
	} {
		t.Run(name, func(t *testing.T) {
			address := serveTCP(t, h.testBalancer(found), make(slots, 10))
			conn, err := net.Dial("tcp4", address.String())
			if err == nil {
				defer conn.Close()
				_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
				_, err = conn.Read(make([]byte, 1)) // it has sent nothing that could cause a reset
			}
			if !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func TestAnEndpointThatDoesNotAcceptIsPassedOver(t *testing.T) {
	h := newHarness(t)
	h.serve(endpoint(2))
	address := serveTCP(t, h.testBalancer(endpoints{ready: []netip.AddrPort{endpoint(1), endpoint(2), endpoint(3)}}), make(slots, 10))
	for range 6 {
		if answer, err := ask(t, address, "hello"); err != nil || !strings.HasPrefix(answer, "10.128.2.2: hello") {
			t.Errorf("the answer is %q: %v", answer, err)
		}
	}
}

func TestConnectionsAreLimited(t *testing.T) {
	h := newHarness(t)
	h.serve(endpoint(1))
	connections := make(slots, 1)
	address := serveTCP(t, h.testBalancer(endpoints{ready: []netip.AddrPort{endpoint(1)}}), connections)
	conn, err := net.Dial("tcp4", address.String())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(conn, "hello")
	if _, err := conn.Read(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	if answer, err := ask(t, address, "hello"); err == nil {
		t.Errorf("a connection above the limit is answered: %q", answer)
	}
	_ = conn.Close()
	connections <- struct{}{} // waits until the first connection has ended
	connections.release()
	if answer, err := ask(t, address, "hello"); err != nil {
		t.Errorf("the answer is %q: %v", answer, err)
	}
}

// TestConnectionsAreDistributed tests the order of endpoints: in turn, or by session.
func TestConnectionsAreDistributed(t *testing.T) {
	h := newHarness(t)
	ready := []netip.AddrPort{endpoint(1), endpoint(2), endpoint(3)}
	for _, e := range ready {
		h.serve(e)
	}
	found := endpoints{ready: ready}
	b := &balancer{find: func() endpoints { return found }, dial: h.dial, clock: h.clock}
	connect := func(client string) int {
		conn, err := b.connect(t.Context(), "tcp", netip.MustParseAddr(client))
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
		return int(conn.endpoint.Addr().As4()[3])
	}
	counts := map[int]int{}
	for range 30 {
		counts[connect("127.0.0.1")]++
	}
	if counts[1] != 10 || counts[2] != 10 || counts[3] != 10 {
		t.Errorf("the endpoints have these connections: %v", counts)
	}

	found.affinity = time.Minute
	own := connect("127.0.0.1")
	if connect("127.0.0.2") == own {
		t.Error("another client has the same endpoint")
	}
	for range 10 {
		h.clock.Step(50 * time.Second) // each connection begins the time anew
		if e := connect("127.0.0.1"); e != own {
			t.Fatalf("the client had endpoint %d and has %d", own, e)
		}
	}
	found.ready = []netip.AddrPort{ready[own%3], ready[(own+1)%3]} // without its own
	moved := connect("127.0.0.1")
	found.ready = ready
	if e := connect("127.0.0.1"); e != moved || moved == own {
		t.Errorf("the client had endpoint %d, then %d, and has %d", own, moved, e)
	}
	h.clock.Step(time.Minute)
	counts = map[int]int{}
	for range 3 {
		counts[connect("127.0.0.1")]++
		h.clock.Step(time.Minute)
	}
	if len(counts) != 3 {
		t.Errorf("a session that has ended continues: %v", counts)
	}
}

func TestSessionsAreLimited(t *testing.T) {
	b := &balancer{clock: clocktesting.NewFakeClock(time.Unix(0, 0))}
	client := netip.MustParseAddr("127.0.0.1")
	for range 3 * maxSessions {
		b.remember(endpoints{affinity: time.Hour}, client, endpoint(1))
		client = client.Next()
		if len(b.sessions) > maxSessions {
			t.Fatalf("%d sessions", len(b.sessions))
		}
	}
	b.remember(endpoints{}, client, endpoint(1))
	if len(b.sessions) > 0 {
		t.Errorf("%d sessions of a Service without affinity", len(b.sessions))
	}
}

func TestWhichEndpointsAreReady(t *testing.T) {
	port := corev1.ServicePort{Name: "main", Protocol: corev1.ProtocolTCP, Port: 80}
	conditions := func(ready, serving, terminating bool) discoveryv1.EndpointConditions {
		return discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating}
	}
	slice := func(c ...discoveryv1.EndpointConditions) *discoveryv1.EndpointSlice {
		s := newSlice("web", corev1.ProtocolTCP)
		for n := range c {
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{endpoint(n).Addr().String()}, Conditions: c[n]})
		}
		return s
	}
	ready, ending, dead := conditions(true, true, false), conditions(false, true, true), conditions(false, false, false)
	changed := func(s *discoveryv1.EndpointSlice, f func(*discoveryv1.EndpointSlice)) *discoveryv1.EndpointSlice {
		f(s)
		return s
	}
	for name, tc := range map[string]struct {
		slices []*discoveryv1.EndpointSlice
		want   []netip.AddrPort
	}{
		"none":                               {},
		"those that are ready":               {[]*discoveryv1.EndpointSlice{slice(dead, ready, ending, ready)}, []netip.AddrPort{endpoint(1), endpoint(3)}},
		"without a statement they are":       {[]*discoveryv1.EndpointSlice{slice(discoveryv1.EndpointConditions{})}, []netip.AddrPort{endpoint(0)}},
		"those that end, if none is":         {[]*discoveryv1.EndpointSlice{slice(dead, ending)}, []netip.AddrPort{endpoint(1)}},
		"one that is in two slices is one":   {[]*discoveryv1.EndpointSlice{slice(ready, ready), slice(ready)}, []netip.AddrPort{endpoint(0), endpoint(1)}},
		"those of another port are not":      {[]*discoveryv1.EndpointSlice{changed(slice(ready), func(s *discoveryv1.EndpointSlice) { s.Ports[0].Name = ptr.To("other") })}, nil},
		"nor those of another protocol":      {[]*discoveryv1.EndpointSlice{changed(slice(ready), func(s *discoveryv1.EndpointSlice) { s.Ports[0].Protocol = ptr.To(corev1.ProtocolUDP) })}, nil},
		"nor those that have IPv6 addresses": {[]*discoveryv1.EndpointSlice{changed(slice(ready), func(s *discoveryv1.EndpointSlice) { s.AddressType = discoveryv1.AddressTypeIPv6 })}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := findEndpoints(&corev1.Service{}, port, tc.slices); fmt.Sprint(got.ready) != fmt.Sprint(tc.want) || got.affinity != 0 {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
	s := &corev1.Service{Spec: corev1.ServiceSpec{SessionAffinity: corev1.ServiceAffinityClientIP}}
	if got := findEndpoints(s, port, nil); got.affinity != 3*time.Hour {
		t.Errorf("sessions last %s", got.affinity)
	}
	s.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: ptr.To[int32](7)}}
	if got := findEndpoints(s, port, nil); got.affinity != 7*time.Second {
		t.Errorf("sessions last %s", got.affinity)
	}
}

// serveUDP makes the endpoint answer each packet with its address and the packet.
func (h *harness) serveUDP(e netip.AddrPort) {
	h.t.Helper()
	c, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = c.Close() })
	go func() {
		packet := make([]byte, maxPacket)
		for {
			size, from, err := c.ReadFrom(packet)
			if err != nil {
				return
			}
			_, _ = c.WriteTo([]byte(e.Addr().String()+": "+string(packet[:size])), from)
		}
	}()
	h.setServer(e, c.LocalAddr().String())
}

// exchange sends a packet and returns the answer. On loopback, nothing is lost that a buffer can hold.
func exchange(t *testing.T, conn net.Conn, text string) string {
	t.Helper()
	if _, err := conn.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	packet := make([]byte, maxPacket)
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	size, err := conn.Read(packet)
	if err != nil {
		t.Fatal(err)
	}
	return string(packet[:size])
}

func dialUDP(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("udp4", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestAUDPServiceIsReachedAtItsAddress(t *testing.T) {
	h := newHarness(t)
	port := freePort(t)
	h.serveUDP(endpoint(1))
	h.setEndpoints("dns", corev1.ProtocolUDP, endpoint(1))
	s := newService("dns", port)
	s.Spec.Ports[0].Protocol = corev1.ProtocolUDP
	s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "tcp", Protocol: corev1.ProtocolTCP, Port: int32(port)})
	h.create(s)
	h.start()
	address := netip.AddrPortFrom(h.waitForAddress("dns"), port).String()
	for n := range 3 {
		conn := dialUDP(t, address)
		for m := range 3 {
			text := fmt.Sprintf("packet %d of client %d", m, n)
			if answer := exchange(t, conn, text); answer != "10.128.2.1: "+text {
				t.Errorf("the answer is %q", answer)
			}
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.dialed) != 3 {
		t.Errorf("three clients have %d conversations", len(h.dialed))
	}
}

func newUDP(t *testing.T, limit slots, timeout time.Duration) *udpSocket {
	t.Helper()
	s, err := openUDP(netip.MustParseAddrPort("127.0.0.1:0"), limit)
	if err != nil {
		t.Fatal(err)
	}
	s.timeout = timeout
	return s
}

func TestAConversationMovesToAnEndpointThatIsReady(t *testing.T) {
	h := newHarness(t)
	h.serveUDP(endpoint(1))
	h.serveUDP(endpoint(2))
	current := make(chan endpoints, 1)
	current <- endpoints{ready: []netip.AddrPort{endpoint(1)}}
	b := h.testBalancer(endpoints{})
	b.find = func() endpoints { e := <-current; current <- e; return e }
	limit := make(slots, 1)
	s := newUDP(t, limit, time.Hour)
	serveUntilEnd(t, s, b)
	conn := dialUDP(t, s.LocalAddr().String())
	if answer := exchange(t, conn, "hello"); answer != "10.128.2.1: hello" {
		t.Errorf("the answer is %q", answer)
	}
	<-current
	current <- endpoints{ready: []netip.AddrPort{endpoint(2)}}
	for {
		if _, err := conn.Write([]byte("again")); err != nil { // the first may come before the end of the old conversation, which has the only slot
			t.Fatal(err)
		}
		packet := make([]byte, 100)
		_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		if size, err := conn.Read(packet); err == nil {
			if answer := string(packet[:size]); answer != "10.128.2.2: again" {
				t.Errorf("the answer is %q", answer)
			}
			break
		}
		if t.Context().Err() != nil {
			t.Fatal("no answer")
		}
	}
}

func TestAConversationEndsWhenNoPacketComes(t *testing.T) {
	h := newHarness(t)
	h.serveUDP(endpoint(1))
	limit := make(slots, 1)
	s := newUDP(t, limit, time.Millisecond)
	serveUntilEnd(t, s, h.testBalancer(endpoints{ready: []netip.AddrPort{endpoint(1)}}))
	if _, err := dialUDP(t, s.LocalAddr().String()).Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	for {
		h.mu.Lock()
		begun := len(h.dialed) == 1
		h.mu.Unlock()
		if begun {
			break
		}
		select {
		case <-time.After(time.Millisecond):
		case <-t.Context().Done():
			t.Fatal("no conversation")
		}
	}
	limit <- struct{}{} // waits until it has ended
}

func TestConversationsAreLimited(t *testing.T) {
	h := newHarness(t)
	h.serveUDP(endpoint(1))
	s := newUDP(t, make(slots, 1), time.Hour)
	serveUntilEnd(t, s, h.testBalancer(endpoints{ready: []netip.AddrPort{endpoint(1)}}))
	first, second := dialUDP(t, s.LocalAddr().String()), dialUDP(t, s.LocalAddr().String())
	exchange(t, first, "hello")
	if _, err := second.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	exchange(t, first, "hello") // the packet of the second client was handled before
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.dialed) != 1 {
		t.Errorf("there are %d conversations", len(h.dialed))
	}
}
