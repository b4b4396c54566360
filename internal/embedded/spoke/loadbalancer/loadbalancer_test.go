package loadbalancer

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"hotspare.io/hotspare/internal/embedded/spoke/loadbalancer/plan"
)

func TestAServiceIsReachedAtItsAddress(t *testing.T) {
	h := newHarness(t)
	port := freePort(t)
	h.serve(endpoint(1))
	h.setEndpoints("web", corev1.ProtocolTCP, endpoint(1))
	h.create(newService("web", port))
	h.start()
	a := h.waitForAddress("web")
	if !plan.DefaultPool.Contains(a) {
		t.Errorf("the address is %s", a)
	}
	answer, err := ask(t, netip.AddrPortFrom(a, port), "hello")
	if err != nil || answer != "10.128.2.1: hello\nend\n" {
		t.Errorf("the answer is %q: %v", answer, err)
	}
	h.waitForEvent("Normal AddressAssigned assigned the address " + a.String())
	s := h.waitFor("web", "there", func(*corev1.Service) bool { return true })
	if mode := s.Status.LoadBalancer.Ingress[0].IPMode; mode == nil || *mode != corev1.LoadBalancerIPModeProxy {
		t.Errorf("the mode of the address is %v: kube-proxy would make rules for it", mode)
	}
}

func TestOtherServicesAreLeftAlone(t *testing.T) {
	h := newHarness(t)
	classed, internal := newService("classed", freePort(t)), newService("internal", freePort(t))
	classed.Spec.LoadBalancerClass = ptr.To("example.com/other")
	classed.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.7"}}
	internal.Spec.Type = corev1.ServiceTypeNodePort
	h.create(classed)
	h.create(internal)
	h.create(newService("web", freePort(t)))
	h.start()
	h.waitForAddress("web")
	for _, action := range h.client.Actions() {
		if patch, ok := action.(clienttesting.PatchAction); ok && patch.GetName() != "web" {
			t.Errorf("the Service %s was changed: %s", patch.GetName(), patch.GetPatch())
		}
	}
}

// TestOnlyTheConditionIsRemovedFromAServiceOfAnotherController tests a Service that was this controller's
// before it got a class.
func TestOnlyTheConditionIsRemovedFromAServiceOfAnotherController(t *testing.T) {
	h := newHarness(t)
	s := newService("classed", freePort(t))
	s.Spec.LoadBalancerClass = ptr.To("example.com/other")
	s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.7"}}
	s.Status.Conditions = []metav1.Condition{
		{Type: ConditionType, Status: metav1.ConditionTrue, Reason: plan.ReasonListening},
		{Type: "Other", Status: metav1.ConditionTrue, Reason: "Other"},
	}
	h.create(s)
	h.start()
	s = h.waitFor("classed", "without the condition", func(s *corev1.Service) bool { return len(s.Status.Conditions) == 1 })
	if addressOf(s).String() != "192.0.2.7" || s.Status.Conditions[0].Type != "Other" {
		t.Errorf("the status is %+v", s.Status)
	}
}

func TestAStatusThatAnotherChangedIsCorrected(t *testing.T) {
	for name, change := range map[string]func(*corev1.LoadBalancerStatus){
		"another mode":    func(s *corev1.LoadBalancerStatus) { s.Ingress[0].IPMode = ptr.To(corev1.LoadBalancerIPModeVIP) },
		"no mode":         func(s *corev1.LoadBalancerStatus) { s.Ingress[0].IPMode = nil },
		"another address": func(s *corev1.LoadBalancerStatus) { s.Ingress[0].IP = "192.0.2.7" },
		"a further address": func(s *corev1.LoadBalancerStatus) {
			s.Ingress = append(s.Ingress, corev1.LoadBalancerIngress{IP: "192.0.2.7"})
		},
		"a host name": func(s *corev1.LoadBalancerStatus) { s.Ingress[0].Hostname = "example.com" },
		"only a host name": func(s *corev1.LoadBalancerStatus) {
			s.Ingress = []corev1.LoadBalancerIngress{{Hostname: "example.com"}}
		},
		"nothing": func(s *corev1.LoadBalancerStatus) { s.Ingress = nil },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.create(newService("web", freePort(t)))
			h.start()
			a := h.waitForAddress("web")
			h.change("web", func(s *corev1.Service) { change(&s.Status.LoadBalancer) })
			h.waitFor("web", "corrected", func(s *corev1.Service) bool {
				return slices.EqualFunc(s.Status.LoadBalancer.Ingress, newIngress(a), func(a, b corev1.LoadBalancerIngress) bool {
					return a.IP == b.IP && a.Hostname == b.Hostname && ptr.Equal(a.IPMode, b.IPMode)
				})
			})
		})
	}
}

func TestADeletedServiceIsReleased(t *testing.T) {
	for name, release := range map[string]func(h *harness){
		"deleted": func(h *harness) { h.delete("web") },
		"another type": func(h *harness) {
			h.change("web", func(s *corev1.Service) {
				s.Spec.Type = corev1.ServiceTypeClusterIP
				s.Status.LoadBalancer = corev1.LoadBalancerStatus{} // as the API server does
			})
			h.waitFor("web", "without a condition", func(s *corev1.Service) bool { return len(s.Status.Conditions) == 0 })
		},
		"a finalizer of another controller": func(h *harness) {
			h.change("web", func(s *corev1.Service) {
				s.Finalizers, s.DeletionTimestamp = []string{"example.com/wait"}, ptr.To(metav1.NewTime(h.clock.Now()))
			})
			h.waitFor("web", "without an address", func(s *corev1.Service) bool {
				return len(s.Status.LoadBalancer.Ingress) == 0 && len(s.Status.Conditions) == 0
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			port := freePort(t)
			h.serve(endpoint(1))
			h.setEndpoints("web", corev1.ProtocolTCP, endpoint(1))
			h.create(newService("web", port))
			h.start()
			address := netip.AddrPortFrom(h.waitForAddress("web"), port)
			conn, err := net.Dial("tcp4", address.String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprintln(conn, "hello")
			if _, err := conn.Read(make([]byte, 100)); err != nil { // it is forwarded
				t.Fatal(err)
			}
			release(h)
			_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
			if _, err := io.ReadAll(conn); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("a connection of the Service continues")
			}
			checkRefused(t, address)
		})
	}
}

// TestAnAddressIsKeptByTheNextProcess tests what happens when a control plane restarts, and when a
// cluster hibernates and resumes.
func TestAnAddressIsKeptByTheNextProcess(t *testing.T) {
	h := newHarness(t)
	port := freePort(t)
	h.serve(endpoint(1))
	h.setEndpoints("web", corev1.ProtocolTCP, endpoint(1))
	h.create(newService("web", port))
	stop := h.start()
	first := h.waitForAddress("web")
	stop()
	checkRefused(t, netip.AddrPortFrom(first, port))

	stop = h.start()
	h.create(newService("other", port)) // so that a pass has ended when it is ready
	other := h.waitForAddress("other")
	if answer, err := ask(t, netip.AddrPortFrom(first, port), "hello"); err != nil {
		t.Errorf("the answer is %q: %v", answer, err)
	}
	stop()

	program, err := net.Listen("tcp4", netip.AddrPortFrom(first, port).String())
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	h.start()
	second := addressOf(h.waitFor("web", "at another address", func(s *corev1.Service) bool { return addressOf(s).IsValid() && addressOf(s) != first }))
	if second == other {
		t.Errorf("two Services have the address %s", other)
	}
	if answer, err := ask(t, netip.AddrPortFrom(second, port), "hello"); err != nil {
		t.Errorf("the answer is %q: %v", answer, err)
	}
	h.waitForEvent(fmt.Sprintf("Warning AddressChanged changed the address from %s to %s", first, second))
}

func TestServicesOfTwoClustersHaveTheSamePort(t *testing.T) {
	one, other := newHarness(t), newHarness(t)
	port := freePort(t)
	seen := map[netip.Addr]bool{}
	for n, h := range []*harness{one, other} { // their names are the same, as of clusters of two hubs
		h.serve(endpoint(n))
		h.setEndpoints("web", corev1.ProtocolTCP, endpoint(n))
		h.create(newService("web", port))
		h.start()
		a := h.waitForAddress("web")
		if seen[a] {
			t.Errorf("both have the address %s", a)
		}
		seen[a] = true
		if answer, err := ask(t, netip.AddrPortFrom(a, port), "hello"); err != nil || !strings.HasPrefix(answer, endpoint(n).Addr().String()) {
			t.Errorf("the answer is %q: %v", answer, err)
		}
	}
}

func TestARequestedAddressIsGiven(t *testing.T) {
	h := newHarness(t)
	port := freePort(t)
	s := newService("web", port)
	s.Spec.LoadBalancerIP = "127.77.66.55"
	h.create(s)
	h.start()
	if a := h.waitForAddress("web"); a.String() != "127.77.66.55" {
		t.Errorf("the address is %s", a)
	}
	h.change("web", func(s *corev1.Service) { s.Spec.LoadBalancerIP = "127.77.66.56" })
	h.waitFor("web", "moved", func(s *corev1.Service) bool { return addressOf(s).String() == "127.77.66.56" })
	checkRefused(t, netip.MustParseAddrPort(fmt.Sprintf("127.77.66.55:%d", port)))
}

func TestPortsComeAndGo(t *testing.T) {
	h := newHarness(t)
	first, second := freePort(t), freePort(t)
	for second == first {
		second = freePort(t)
	}
	h.serve(endpoint(1))
	h.setEndpoints("web", corev1.ProtocolTCP, endpoint(1))
	h.create(newService("web", first))
	h.start()
	a := h.waitForAddress("web")
	conn, err := net.Dial("tcp4", netip.AddrPortFrom(a, first).String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	h.change("web", func(s *corev1.Service) {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "second", Protocol: corev1.ProtocolTCP, Port: int32(second)})
	})
	message := fmt.Sprintf("TCP port %d", second)
	h.waitFor("web", "on both ports", func(s *corev1.Service) bool { return strings.Contains(s.Status.Conditions[0].Message, message) })
	fmt.Fprintln(conn, "hello")
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := conn.Read(make([]byte, 100)); err != nil {
		t.Errorf("a connection to the other port ended: %v", err)
	}
	h.change("web", func(s *corev1.Service) { s.Spec.Ports = s.Spec.Ports[1:] })
	s := h.waitFor("web", "on one port", func(s *corev1.Service) bool {
		return !strings.Contains(s.Status.Conditions[0].Message, fmt.Sprintf("TCP port %d", first))
	})
	if addressOf(s) != a {
		t.Errorf("the address is %s, not %s", addressOf(s), a)
	}
	checkRefused(t, netip.AddrPortFrom(a, first))
}

func TestADeniedPortIsReportedAndTriedAgain(t *testing.T) {
	h := newHarness(t)
	port := freePort(t)
	var denied atomic.Bool
	denied.Store(true)
	open := newOpener()
	h.open = func(a netip.AddrPort, p corev1.Protocol) (socket, error) {
		if denied.Load() {
			return nil, &net.OpError{Op: "listen", Net: "tcp4", Err: os.NewSyscallError("bind", syscall.EACCES)}
		}
		return open(a, p)
	}
	h.create(newService("web", port))
	h.start()
	message := h.waitForReason("web", plan.ReasonPermissionDenied)
	if !strings.Contains(message, fmt.Sprintf("TCP port %d at 127.", port)) || !strings.Contains(message, "run it as root") {
		t.Errorf("the message is %q", message)
	}
	h.waitForEvent("Warning PermissionDenied " + message)
	denied.Store(false)
	h.stepUntilAddress("web")
}

func TestAPortThatIsInUseEverywhereIsReportedAndTriedAgain(t *testing.T) {
	h := newHarness(t)
	program, err := net.Listen("tcp4", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	port := program.Addr().(*net.TCPAddr).AddrPort().Port()
	h.create(newService("web", port))
	h.start()
	h.waitForEvent("Warning PortInUse " + h.waitForReason("web", plan.ReasonPortInUse))
	if s := h.waitFor("web", "there", func(*corev1.Service) bool { return true }); len(s.Status.LoadBalancer.Ingress) > 0 {
		t.Errorf("the status is %+v", s.Status)
	}
	_ = program.Close()
	h.stepUntilAddress("web")
}

// TestAFailedListenLeavesNothing tests that of several ports none is listened on if one is in use.
func TestAFailedListenLeavesNothing(t *testing.T) {
	h := newHarness(t)
	program, err := net.ListenPacket("udp4", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	free := freePort(t) // listened on first: TCP comes before UDP
	s := newService("web", free)
	s.Spec.LoadBalancerIP = "127.77.66.54"
	s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "second", Protocol: corev1.ProtocolUDP, Port: int32(program.LocalAddr().(*net.UDPAddr).Port)})
	h.create(s)
	h.start()
	h.waitForReason("web", plan.ReasonPortInUse)
	conn, err := net.Dial("tcp4", fmt.Sprintf("127.77.66.54:%d", free))
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the other port is listened on: %v, %v", conn, err)
	}
}

// TestAFailedWriteIsRepeated tests that a status is written after the API has refused it for a while.
func TestAFailedWriteIsRepeated(t *testing.T) {
	h := newHarness(t)
	var failures atomic.Int32
	h.client.PrependReactor("patch", "services", func(clienttesting.Action) (bool, k8sruntime.Object, error) {
		if failures.Add(1) <= 2 {
			return true, nil, apierrors.NewInternalError(errors.New("no space left"))
		}
		return false, nil, nil
	})
	h.create(newService("web", freePort(t)))
	h.start()
	for failures.Load() < 3 {
		h.clock.Step(maxRetryDelay)
	}
	h.waitForAddress("web")
}

// TestAStaleWriteIsRefused tests that the patch of a status names the version that was read, and that a
// conflict is no event.
func TestAStaleWriteIsRefused(t *testing.T) {
	h := newHarness(t)
	s := newService("web", freePort(t))
	s.ResourceVersion = "7"
	var patches atomic.Int32
	var current atomic.Bool
	h.client.PrependReactor("patch", "services", func(action clienttesting.Action) (bool, k8sruntime.Object, error) {
		patch := action.(clienttesting.PatchAction)
		if !strings.Contains(string(patch.GetPatch()), `"resourceVersion":"`) || patch.GetSubresource() != "status" {
			t.Errorf("the patch of %q is %s", patch.GetSubresource(), patch.GetPatch())
		}
		patches.Add(1)
		if !current.Load() {
			return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "services"}, "web", errors.New("changed"))
		}
		return false, nil, nil
	})
	h.create(s)
	h.start()
	for n := 0; patches.Load() < 2; n++ { // each change begins a pass
		h.change("web", func(s *corev1.Service) { s.Labels = map[string]string{"changed": strconv.Itoa(n)} })
		<-time.After(5 * time.Millisecond) // the watch holds a hundred changes
	}
	select {
	case e := <-h.events.Events:
		t.Errorf("the event of a write that was refused: %s", e)
	default:
	}
	current.Store(true)
	h.change("web", func(s *corev1.Service) { s.Labels = nil })
	h.waitForAddress("web")
	h.waitForEvent("Normal AddressAssigned")
}
