package clusterdns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// summary returns the rcode, the flags AA, TC, RA, AD and the answer in one line.
func summary(m *dns.Msg) string {
	words := []string{dns.RcodeToString[m.Rcode]}
	for flag, set := range map[string]bool{"aa": m.Authoritative, "tc": m.Truncated, "ra": m.RecursionAvailable, "ad": m.AuthenticatedData} {
		if set {
			words = append(words, flag)
		}
	}
	slices.Sort(words[1:])
	for _, r := range m.Answer {
		fields := strings.Fields(r.String())
		words = append(words, strings.Join(append(fields[:1], fields[3:]...), " "))
	}
	if len(m.Ns) > 0 {
		words = append(words, "SOA "+m.Ns[0].Header().Name)
	}
	return strings.Join(words, " ")
}

func TestAnswers(t *testing.T) {
	upstream := &resolvers{of: map[string]func(string, *dns.Msg) []*dns.Msg{
		"192.0.2.1:53": func(network string, q *dns.Msg) []*dns.Msg {
			switch q.Question[0].Name {
			case "no.example.":
				return records(dns.RcodeNameError, "example. 60 IN SOA a. b. 1 2 3 4 5")(network, q)
			case "broken.example.":
				return records(dns.RcodeServerFailure)(network, q)
			case "refused.example.":
				return records(dns.RcodeRefused)(network, q)
			}
			return records(dns.RcodeSuccess, q.Question[0].Name+" 60 IN A 203.0.113.1")(network, q)
		},
	}}
	options := Options{
		Upstreams: []string{"192.0.2.1"}, Dial: upstream.Dial,
		Source: newSource(clusterIP("default", "kubernetes", "10.96.0.1"), externalName("default", "ext", "www.example"),
			externalName("default", "lost", "no.example"), externalName("default", "broken", "broken.example"),
			externalName("default", "refused", "refused.example"), externalName("default", "near", "kubernetes.default.svc.cluster.local")),
	}
	for name, c := range map[string]struct {
		ask  *dns.Msg
		want string
	}{
		"a Service":                 {query(dns.TypeA, "kubernetes.default.svc.cluster.local"), "NOERROR aa ra kubernetes.default.svc.cluster.local. A 10.96.0.1"},
		"a Service of any case":     {query(dns.TypeA, "KuberNetes.default.SVC.cluster.local"), "NOERROR aa ra KuberNetes.default.SVC.cluster.local. A 10.96.0.1"},
		"no such type":              {query(dns.TypeAAAA, "kubernetes.default.svc.cluster.local"), "NOERROR aa ra SOA cluster.local."},
		"no such name":              {query(dns.TypeA, "no.default.svc.cluster.local"), "NXDOMAIN aa ra SOA cluster.local."},
		"ANY":                       {query(dns.TypeANY, "kubernetes.default.svc.cluster.local"), "REFUSED ra"},
		"AXFR":                      {query(dns.TypeAXFR, "cluster.local"), "REFUSED ra"},
		"IXFR":                      {query(dns.TypeIXFR, "cluster.local"), "REFUSED ra"},
		"OPT as a type":             {query(dns.TypeOPT, "cluster.local"), "REFUSED ra"},
		"ANY of a name outside":     {query(dns.TypeANY, "www.example"), "REFUSED ra"},
		"another class":             {ofClass(query(dns.TypeTXT, "version.bind"), dns.ClassCHAOS), "REFUSED ra"},
		"any class":                 {ofClass(query(dns.TypeA, "kubernetes.default.svc.cluster.local"), dns.ClassANY), "REFUSED ra"},
		"a notification":            {new(dns.Msg).SetNotify("cluster.local."), "NOTIMP ra"},
		"an update":                 {new(dns.Msg).SetUpdate("cluster.local."), "NOTIMP"},
		"a name outside":            {query(dns.TypeA, "www.Example"), "NOERROR ra www.Example. A 203.0.113.1"},
		"no such name outside":      {query(dns.TypeA, "no.example"), "NXDOMAIN ra SOA example."},
		"an upstream that fails":    {query(dns.TypeA, "broken.example"), "SERVFAIL ra"},
		"an upstream that refuses":  {query(dns.TypeA, "refused.example"), "REFUSED ra"},
		"an ExternalName":           {query(dns.TypeA, "ext.default.svc.cluster.local"), "NOERROR aa ra ext.default.svc.cluster.local. CNAME www.example. www.example. A 203.0.113.1"},
		"an ExternalName's CNAME":   {query(dns.TypeCNAME, "ext.default.svc.cluster.local"), "NOERROR aa ra ext.default.svc.cluster.local. CNAME www.example."},
		"an ExternalName of none":   {query(dns.TypeA, "lost.default.svc.cluster.local"), "NXDOMAIN aa ra lost.default.svc.cluster.local. CNAME no.example. SOA example."},
		"an ExternalName that fail": {query(dns.TypeA, "broken.default.svc.cluster.local"), "SERVFAIL aa ra broken.default.svc.cluster.local. CNAME broken.example."},
		"an ExternalName refused":   {query(dns.TypeA, "refused.default.svc.cluster.local"), "SERVFAIL aa ra refused.default.svc.cluster.local. CNAME refused.example."},
		"an ExternalName inside":    {query(dns.TypeA, "near.default.svc.cluster.local"), "NOERROR aa ra near.default.svc.cluster.local. CNAME kubernetes.default.svc.cluster.local. kubernetes.default.svc.cluster.local. A 10.96.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := serve(t, options)
				reply := s.ask(c.ask)
				if got := summary(reply); got != c.want {
					t.Errorf("over UDP: got %s\nwant %s", got, c.want)
				}
				if c.ask.Opcode == dns.OpcodeUpdate {
					return // package dns rejects it without its question
				}
				if len(reply.Question) != 1 || reply.Question[0] != c.ask.Question[0] {
					t.Errorf("the question was %v, and is %v in the answer", c.ask.Question, reply.Question)
				}
				if got := summary(s.askStream(c.ask)); got != c.want {
					t.Errorf("over TCP: got %s\nwant %s", got, c.want)
				}
			})
		})
	}
}

func ofClass(m *dns.Msg, class uint16) *dns.Msg {
	m.Question[0].Qclass = class
	return m
}

func TestWithoutUpstreamsOtherNamesAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, Options{Source: newSource(externalName("default", "ext", "www.example"))})
		for name, want := range map[string]string{
			"www.example":                   "REFUSED",
			"ext.default.svc.cluster.local": "SERVFAIL aa ext.default.svc.cluster.local. CNAME www.example.",
			"no.default.svc.cluster.local":  "NXDOMAIN aa SOA cluster.local.",
		} {
			if got := summary(s.ask(query(dns.TypeA, name))); got != want {
				t.Errorf("%s: got %s, want %s", name, got, want)
			}
		}
	})
}

func TestMalformedQueries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, Options{Source: newSource()})
		header := []byte{1, 2, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0} // announces a question, and has none
		if reply, _ := s.sendPacket(header); summary(reply) != "FORMERR" || reply.Id != 0x102 {
			t.Errorf("a header only: %v", reply)
		}
		two := query(dns.TypeA, "a.example")
		two.Question = append(two.Question, two.Question[0])
		if reply, _ := s.sendPacket(pack(t, two)); reply.Rcode != dns.RcodeFormatError {
			t.Errorf("two questions: %v", reply)
		}
		if reply, _ := s.sendPacket(append(slices.Clone(header), 63, 'x')); reply.Rcode != dns.RcodeFormatError {
			t.Errorf("half a name: %v", reply)
		}
		for _, ignored := range [][]byte{{}, {1}, header[:11], pack(t, new(dns.Msg).SetReply(query(dns.TypeA, "a.example")))} {
			if _, err := s.packets.Write(ignored); err != nil {
				t.Fatal(err)
			}
		}
		if got := summary(s.ask(query(dns.TypeA, "cluster.local"))); got != "NOERROR aa SOA cluster.local." {
			t.Errorf("afterwards: %s", got)
		}
	})
}

// headless returns a source with a headless Service of so many endpoints.
func headless(endpoints int) *memorySource {
	service := clusterIP("default", "many", corev1.ClusterIPNone)
	s := newSource(service, clusterIP("kube-system", "kube-dns", "10.96.0.10"))
	name, number := "http", int32(80)
	list := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "many-1", Labels: map[string]string{discoveryv1.LabelServiceName: "many"}},
		Ports:      []discoveryv1.EndpointPort{{Name: &name, Port: &number}},
	}
	for i := range endpoints {
		list.Endpoints = append(list.Endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.244.%d.%d", i/250, i%250)}})
	}
	s.snapshot.EndpointSlices = []*discoveryv1.EndpointSlice{list}
	return s
}

func withSize(m *dns.Msg, size uint16) *dns.Msg {
	return m.SetEdns0(size, false)
}

func TestSizes(t *testing.T) {
	const name = "many.default.svc.cluster.local"
	for title, c := range map[string]struct {
		ask       *dns.Msg
		endpoints int
		limit     int
		complete  bool
	}{
		"few records fit":                                {query(dns.TypeA, name), 20, 512, true},
		"without EDNS0, 512 octets":                      {query(dns.TypeA, name), 60, 512, false},
		"with EDNS0, what the client takes":              {withSize(query(dns.TypeA, name), 1100), 60, 1100, true},
		"with EDNS0, not more than what the client says": {withSize(query(dns.TypeA, name), 800), 60, 800, false},
		"with EDNS0, at least 512 octets":                {withSize(query(dns.TypeA, name), 100), 25, 512, true},
		"not more than what networks take":               {withSize(query(dns.TypeA, name), 65535), 200, maxUDPSize, false},
	} {
		t.Run(title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := serve(t, Options{Source: headless(c.endpoints)})
				reply, length := s.sendPacket(pack(t, c.ask))
				if length > c.limit {
					t.Errorf("%d octets, want at most %d", length, c.limit)
				}
				if complete := len(reply.Answer) == c.endpoints; complete == reply.Truncated || complete != c.complete || len(reply.Answer) == 0 {
					t.Errorf("%d of %d records, truncated: %t", len(reply.Answer), c.endpoints, reply.Truncated)
				}
				if (reply.IsEdns0() == nil) != (c.ask.IsEdns0() == nil) {
					t.Errorf("EDNS0 in the answer: %v", reply.IsEdns0())
				}
				if full := s.askStream(c.ask); full.Truncated || len(full.Answer) != c.endpoints {
					t.Errorf("over TCP: %d of %d records, truncated: %t", len(full.Answer), c.endpoints, full.Truncated)
				}
			})
		})
	}
}

func TestAdditionalRecordsAreLeftOutBeforeTheAnswerIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, Options{Source: headless(10)})
		ask := query(dns.TypeSRV, "_http._tcp.many.default.svc.cluster.local")
		small, large := s.ask(withSize(ask.Copy(), 700)), s.ask(withSize(ask.Copy(), 1232))
		if small.Truncated || len(small.Answer) != 10 || len(small.Extra) != 1 {
			t.Errorf("700 octets: %d answers, %d additional, truncated: %t", len(small.Answer), len(small.Extra), small.Truncated)
		}
		if tiny := s.ask(withSize(query(dns.TypeNS, "cluster.local"), 60)); len(tiny.Extra) != 2 {
			t.Errorf("a size below 512 octets leaves out what fits: %v", tiny)
		}
		if large.Truncated || len(large.Answer) != 10 || len(large.Extra) != 11 {
			t.Errorf("1232 octets: %d answers, %d additional, truncated: %t", len(large.Answer), len(large.Extra), large.Truncated)
		}
	})
}

func TestAnAnswerThatNoMessageCanContainIsTruncated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, Options{Source: headless(5000)})
		if reply := s.askStream(query(dns.TypeA, "many.default.svc.cluster.local")); !reply.Truncated || len(reply.Answer) < 3000 {
			t.Errorf("%d records, truncated: %t", len(reply.Answer), reply.Truncated)
		}
	})
}

func TestEDNS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, Options{Source: newSource()})
		ask := query(dns.TypeA, "cluster.local").SetEdns0(1400, true)
		if opt := s.ask(ask).IsEdns0(); opt == nil || !opt.Do() || opt.UDPSize() != maxUDPSize || opt.Version() != 0 {
			t.Errorf("EDNS0: %v", opt)
		}
		ask.IsEdns0().SetVersion(1)
		reply := s.ask(ask)
		if reply.Rcode != dns.RcodeBadVers || len(reply.Answer) > 0 || reply.IsEdns0() == nil || reply.IsEdns0().Version() != 0 {
			t.Errorf("an unknown version: %v", reply)
		}
	})
}

func TestAddressesRotate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, Options{Source: headless(3)})
		first := map[string]int{}
		for id := range uint16(9) {
			ask := query(dns.TypeA, "many.default.svc.cluster.local")
			ask.Id = id
			reply := s.ask(ask)
			first[reply.Answer[0].(*dns.A).A.String()]++
			if len(reply.Answer) != 3 {
				t.Errorf("%d records, want 3", len(reply.Answer))
			}
		}
		if len(first) != 3 {
			t.Errorf("first addresses: %v, want each of 3", first)
		}
	})
}

func TestChangesShowAtOnceAndCostNothingBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &memorySource{}
		upstream := &resolvers{of: map[string]func(string, *dns.Msg) []*dns.Msg{"192.0.2.1:53": records(dns.RcodeSuccess, "www.example. 60 IN A 203.0.113.1")}}
		s := serve(t, Options{Source: source, Upstreams: []string{"192.0.2.1"}, Dial: upstream.Dial})
		ask := query(dns.TypeA, "a.default.svc.cluster.local")
		expect := func(m *dns.Msg, want string, reads int) {
			t.Helper()
			if got := summary(s.ask(m)); got != want || source.reads != reads {
				t.Errorf("got %s after %d reads, want %s after %d", got, source.reads, want, reads)
			}
		}
		expect(ask, "SERVFAIL ra", 0)
		expect(query(dns.TypeA, "no.such.namespace.svc.cluster.local"), "SERVFAIL ra", 0)
		expect(query(dns.TypeA, "www.example"), "NOERROR ra www.example. A 203.0.113.1", 0)
		source.set()
		expect(ask, "NXDOMAIN aa ra SOA cluster.local.", 1)
		expect(ask, "NXDOMAIN aa ra SOA cluster.local.", 1)
		source.set(clusterIP("default", "a", "10.96.0.7"))
		source.set(clusterIP("default", "a", "10.96.0.8"))
		expect(ask, "NOERROR aa ra a.default.svc.cluster.local. A 10.96.0.8", 2)
		source.set()
		expect(ask, "NXDOMAIN aa ra SOA cluster.local.", 3)
	})
}

func TestTheSerialIsTheTimeOfTheChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now, _ := clock()
		s := serve(t, Options{Source: newSource(), Now: now})
		soa := s.ask(query(dns.TypeSOA, "cluster.local")).Answer[0].(*dns.SOA)
		if want := uint32(now().Unix()); soa.Serial != want {
			t.Errorf("serial %d, want %d", soa.Serial, want)
		}
	})
}

func TestAConnectionAnswersSeveralQueries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, Options{Source: newSource()})
		conn := s.streams.connect(t)
		defer conn.Close()
		for id := range uint16(3) {
			ask := query(dns.TypeSOA, "cluster.local")
			ask.Id = id
			if err := writeStream(conn, ask); err != nil {
				t.Fatal(err)
			}
			if reply, err := readStream(conn); err != nil || reply.Id != id {
				t.Fatalf("query %d: %v, %v", id, reply, err)
			}
		}
	})
}

func TestIdleConnectionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, Options{Source: newSource()})
		for range maxConnections {
			conn := s.streams.connect(t)
			defer conn.Close()
		}
		start := time.Now()
		if reply := s.askStream(query(dns.TypeSOA, "cluster.local")); reply.Rcode != dns.RcodeSuccess {
			t.Errorf("the connection after the last: %v", reply)
		}
		if waited := time.Since(start); waited == 0 || waited > 10*time.Second {
			t.Errorf("the connection after the last was served after %s", waited)
		}
	})
}

// The bubble fails if a goroutine is left, and serve if Serve returns an error.
func TestServeEndsWithItsContext(t *testing.T) {
	for name, before := range map[string]func(t *testing.T, s *served){
		"at once":       func(*testing.T, *served) {},
		"after a start": func(*testing.T, *served) { synctest.Wait() },
		"with an open connection": func(t *testing.T, s *served) {
			conn := s.streams.connect(t)
			t.Cleanup(func() { conn.Close() })
		},
		"while an upstream is asked": func(t *testing.T, s *served) {
			if _, err := s.packets.Write(pack(t, query(dns.TypeA, "www.example"))); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			go func() { _, _ = s.packets.Read(make([]byte, 512)) }() // the answer, that it failed
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				upstream := &resolvers{of: map[string]func(string, *dns.Msg) []*dns.Msg{"192.0.2.1:53": silent}}
				s := serve(t, Options{Source: newSource(), Upstreams: []string{"192.0.2.1"}, Dial: upstream.Dial})
				before(t, s)
				start := time.Now()
				s.stop()
				err := <-s.ended
				s.ended <- err
				if err != nil || time.Since(start) > 0 {
					t.Errorf("ended after %s with %v", time.Since(start), err)
				}
				synctest.Wait()
				if n := upstream.open.Load(); n != 0 {
					t.Errorf("%d connections to upstreams are open", n)
				}
				select {
				case <-s.streams.closed:
				default:
					t.Error("the listener is open")
				}
			})
		})
	}
}

// A brokenPacketConn fails as a network does whose stack has ended.
type brokenPacketConn struct{ net.PacketConn }

var errBroken = errors.New("the network has ended")

func (brokenPacketConn) ReadFrom([]byte) (int, net.Addr, error) { return 0, nil, errBroken }

func TestServeEndsWhenASocketFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, err := New(Options{Source: newSource()})
		if err != nil {
			t.Fatal(err)
		}
		client, socket := net.Pipe()
		defer client.Close()
		if err := server.Serve(t.Context(), brokenPacketConn{packetPipe{socket}}, newPipeListener()); !errors.Is(err, errBroken) {
			t.Errorf("UDP fails: %v", err)
		}
		listener := newPipeListener()
		_, socket = net.Pipe()
		_ = listener.Close()
		if err := server.Serve(t.Context(), packetPipe{socket}, listener); !errors.Is(err, net.ErrClosed) {
			t.Errorf("TCP fails: %v", err)
		}
		if err := server.Serve(t.Context(), nil, listener); err == nil {
			t.Error("a missing socket is no error")
		}
	})
}

func TestRealSockets(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	packets, err := new(net.ListenConfig).ListenPacket(ctx, "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	connections, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, err := New(Options{Source: headless(100)})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, packets, connections) }()
	for network, address := range map[string]net.Addr{"udp": packets.LocalAddr(), "tcp": connections.Addr()} {
		client := dns.Client{Net: network, Timeout: 10 * time.Second}
		reply, _, err := client.ExchangeContext(ctx, query(dns.TypeA, "many.default.svc.cluster.local"), address.String())
		if err != nil || reply.Truncated != (network == "udp") || network == "tcp" && len(reply.Answer) != 100 {
			t.Errorf("%s: %v, %v", network, reply, err)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := packets.WriteTo(nil, packets.LocalAddr()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the UDP socket is open: %v", err)
	}
}
