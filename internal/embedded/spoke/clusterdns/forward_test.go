package clusterdns

import (
	"fmt"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
)

type resolver = func(network string, q *dns.Msg) []*dns.Msg

var good = records(dns.RcodeSuccess, "www.example. 60 IN A 203.0.113.1")

const answered = "NOERROR ra www.example. A 203.0.113.1"

// truncating answers over UDP that the answer is longer.
func truncating(network string, q *dns.Msg) []*dns.Msg {
	if network == "tcp" {
		return good(network, q)
	}
	m := new(dns.Msg).SetReply(q)
	m.Truncated = true
	return []*dns.Msg{m}
}

// forging answers after packets that are no answers.
func forging(network string, q *dns.Msg) []*dns.Msg {
	var out []*dns.Msg
	for _, change := range []func(*dns.Msg){
		func(m *dns.Msg) { m.Id++ },
		func(m *dns.Msg) { m.Response = false },
		func(m *dns.Msg) { m.Opcode = dns.OpcodeNotify },
		func(m *dns.Msg) { m.Question[0].Name = "evil.example." },
		func(m *dns.Msg) { m.Question[0].Qtype = dns.TypeAAAA },
		func(m *dns.Msg) { m.Question[0].Qclass = dns.ClassCHAOS },
		func(m *dns.Msg) { m.Question = nil },
		func(m *dns.Msg) { m.Question = append(m.Question, m.Question[0]) },
		func(m *dns.Msg) { m.Rcode = dns.RcodeBadVers; m.SetEdns0(512, false) },
	} {
		m := records(dns.RcodeSuccess, "www.example. 60 IN A 203.0.113.66")(network, q)[0]
		change(m)
		out = append(out, m)
	}
	return append(out, good(network, q)...)
}

// refusing refuses without repeating the question.
func refusing(_ string, q *dns.Msg) []*dns.Msg {
	m := new(dns.Msg).SetRcode(q, dns.RcodeRefused)
	m.Question = nil
	return []*dns.Msg{m}
}

func TestForward(t *testing.T) {
	for name, c := range map[string]struct {
		first, second resolver // nil: cannot be reached
		want          string
		asked         string // the upstreams, in order
		after         time.Duration
	}{
		"the first answers":                       {good, good, answered, "udp1", 0},
		"the first cannot be reached":             {nil, good, answered, "udp2", 0},
		"the first is silent":                     {silent, good, answered, "udp1 udp2", attemptTimeout},
		"the first fails":                         {records(dns.RcodeServerFailure), good, answered, "udp1 udp2", 0},
		"the first refuses":                       {refusing, good, answered, "udp1 udp2", 0},
		"the first says that there is no name":    {records(dns.RcodeNameError), good, "NXDOMAIN ra", "udp1", 0},
		"the first truncates":                     {truncating, good, answered, "udp1 tcp1", 0},
		"the first truncates, and is silent then": {onlyUDP(truncating), good, answered, "udp1 tcp1 udp2", attemptTimeout},
		"packets that are no answers":             {forging, nil, answered, "udp1", 0},
		"both fail in their own way":              {refusing, records(dns.RcodeServerFailure), "REFUSED ra", "udp1 udp2", 0},
		"one fails, the other is silent":          {silent, records(dns.RcodeServerFailure), "SERVFAIL ra", "udp1 udp2", attemptTimeout},
		"both are silent":                         {silent, silent, "SERVFAIL ra", "udp1 udp2 udp1", forwardTimeout},
		"none can be reached":                     {nil, nil, "SERVFAIL ra", "", 0},
		"a packet is lost":                        {losing(1, good), nil, answered, "udp1 udp1", attemptTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				upstream := &resolvers{of: map[string]resolver{"192.0.2.1:53": c.first, "[2001:db8::2]:5353": c.second}}
				s := serve(t, Options{Source: newSource(), Upstreams: []string{"192.0.2.1", "[2001:db8::2]:5353"}, Dial: upstream.Dial})
				start := time.Now()
				if got := summary(s.ask(query(dns.TypeA, "www.example"))); got != c.want {
					t.Errorf("got %s, want %s", got, c.want)
				}
				if took := time.Since(start); took != c.after {
					t.Errorf("answered after %s, want %s", took, c.after)
				}
				asked := strings.NewReplacer(" 192.0.2.1:53 www.example.", "1", " [2001:db8::2]:5353 www.example.", "2").Replace(strings.Join(upstream.takeAsked(), " "))
				if asked != c.asked {
					t.Errorf("asked %s, want %s", asked, c.asked)
				}
				synctest.Wait()
				if n := upstream.open.Load(); n != 0 {
					t.Errorf("%d connections are open", n)
				}
			})
		})
	}
}

// onlyUDP is silent over TCP.
func onlyUDP(r resolver) resolver {
	return func(network string, q *dns.Msg) []*dns.Msg {
		if network == "tcp" {
			return nil
		}
		return r(network, q)
	}
}

// losing loses the first packets.
func losing(packets int64, r resolver) resolver {
	var lost atomic.Int64
	return func(network string, q *dns.Msg) []*dns.Msg {
		if lost.Add(1) <= packets {
			return nil
		}
		return r(network, q)
	}
}

func TestTheUpstreamThatAnsweredLastIsAskedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		upstream := &resolvers{of: map[string]resolver{"192.0.2.1:53": silent, "192.0.2.2:53": echo}}
		s := serve(t, Options{Source: newSource(), Upstreams: []string{"192.0.2.1", "192.0.2.2"}, Dial: upstream.Dial})
		for _, name := range []string{"a.example", "b.example"} {
			s.ask(query(dns.TypeA, name))
		}
		want := []string{"udp 192.0.2.1:53 a.example.", "udp 192.0.2.2:53 a.example.", "udp 192.0.2.2:53 b.example."}
		if diff := cmp.Diff(want, upstream.takeAsked()); diff != "" {
			t.Error(diff)
		}
	})
}

// echo answers with an address of the name.
func echo(network string, q *dns.Msg) []*dns.Msg {
	return records(dns.RcodeSuccess, q.Question[0].Name+" 60 IN A 203.0.113.1")(network, q)
}

func TestWhatAnUpstreamIsAsked(t *testing.T) {
	var got *dns.Msg
	upstream := &resolvers{of: map[string]resolver{"192.0.2.1:53": func(network string, q *dns.Msg) []*dns.Msg {
		got = q
		m := echo(network, q)[0]
		m.AuthenticatedData = true
		m.SetEdns0(4096, true)
		m.IsEdns0().Option = append(m.IsEdns0().Option, &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "0123456789abcdef"})
		return []*dns.Msg{m}
	}}}
	plain := query(dns.TypeA, "Www.Example")
	full := query(dns.TypeA, "Www.Example").SetEdns0(4000, true)
	full.RecursionDesired, full.CheckingDisabled, full.AuthenticatedData = false, true, true
	full.IsEdns0().Option = append(full.IsEdns0().Option, &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "0123456789abcdef"})
	for name, ask := range map[string]*dns.Msg{"plain": plain, "full": full} {
		synctest.Test(t, func(t *testing.T) {
			s := serve(t, Options{Source: newSource(), Upstreams: []string{"192.0.2.1"}, Dial: upstream.Dial})
			reply := s.ask(ask)
			if !reply.AuthenticatedData || reply.Authoritative || reply.CheckingDisabled != ask.CheckingDisabled || reply.RecursionDesired != ask.RecursionDesired {
				t.Errorf("%s: the answer is %v", name, reply)
			}
			if got.Question[0] != ask.Question[0] || got.RecursionDesired != ask.RecursionDesired || got.CheckingDisabled != ask.CheckingDisabled || got.AuthenticatedData != ask.AuthenticatedData {
				t.Errorf("%s: the query is %v", name, got)
			}
			for what, m := range map[string]*dns.Msg{"answer": reply, "query": got} {
				opt := m.IsEdns0()
				if (opt != nil) != (ask.IsEdns0() != nil) || opt != nil && (opt.UDPSize() != maxUDPSize || !opt.Do() || len(opt.Option) > 0) {
					t.Errorf("%s: EDNS0 of the %s is %v", name, what, opt)
				}
			}
		})
	}
}

func TestQueryIDsAreNotThoseOfTheClient(t *testing.T) {
	ids := map[uint16]bool{}
	upstream := &resolvers{of: map[string]resolver{"192.0.2.1:53": func(network string, q *dns.Msg) []*dns.Msg {
		ids[q.Id] = true
		return echo(network, q)
	}}}
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, Options{Source: newSource(), Upstreams: []string{"192.0.2.1"}, Dial: upstream.Dial})
		for i := range 8 {
			ask := query(dns.TypeA, fmt.Sprintf("%d.example", i))
			ask.Id = 7
			s.ask(ask)
		}
	})
	if len(ids) < 4 {
		t.Errorf("the IDs of 8 queries are %v", ids)
	}
}

func TestTheNumberOfForwardedQueriesIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		upstream := &resolvers{of: map[string]resolver{"192.0.2.1:53": silent}}
		s := serve(t, Options{Source: newSource(), Upstreams: []string{"192.0.2.1"}, Dial: upstream.Dial})
		for i := range maxForwarded {
			if _, err := s.packets.Write(pack(t, query(dns.TypeA, fmt.Sprintf("%d.example", i)))); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if n := upstream.open.Load(); n != maxForwarded {
			t.Fatalf("%d queries are forwarded, want %d", n, maxForwarded)
		}
		start := time.Now()
		if got := summary(s.ask(query(dns.TypeA, "one.more.example"))); got != "SERVFAIL ra" || time.Since(start) > 0 {
			t.Errorf("one query more: %s after %s", got, time.Since(start))
		}
		if got := summary(s.ask(query(dns.TypeSOA, "svc.cluster.local"))); got != "NOERROR aa ra SOA cluster.local." {
			t.Errorf("a query about the cluster: %s", got)
		}
		for range maxForwarded {
			if m, _ := s.receivePacket(); m.Rcode != dns.RcodeServerFailure {
				t.Errorf("a forwarded query: %v", m)
			}
		}
		synctest.Wait() // until nobody reads the map
		upstream.of["192.0.2.1:53"] = echo
		if got := summary(s.ask(query(dns.TypeA, "www.example"))); got != answered {
			t.Errorf("a query after that: %s", got)
		}
	})
}

func TestAnUpstreamThatIsTheServerIsNotUsed(t *testing.T) {
	for name, c := range map[string]struct {
		upstream string
		own      []netip.AddrPort
		want     string
	}{
		"the address of the sockets":         {"10.96.0.10", nil, "REFUSED"},
		"the same in IPv6":                   {"::ffff:10.96.0.10", nil, "REFUSED"},
		"another port":                       {"10.96.0.10:5353", nil, answered},
		"another address":                    {"10.96.0.11", nil, answered},
		"a further address of the server":    {"10.96.0.11", []netip.AddrPort{netip.MustParseAddrPort("10.96.0.11:53")}, "REFUSED"},
		"a further address, written in IPv6": {"10.96.0.11", []netip.AddrPort{netip.MustParseAddrPort("[::ffff:10.96.0.11]:53")}, "REFUSED"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				upstream := &resolvers{of: map[string]resolver{"10.96.0.10:53": good, "10.96.0.10:5353": good, "10.96.0.11:53": good}}
				s := serve(t, Options{Source: newSource(), Upstreams: []string{c.upstream}, Addresses: c.own, Dial: upstream.Dial})
				if got := summary(s.ask(query(dns.TypeA, "www.example"))); got != c.want {
					t.Errorf("got %s, want %s", got, c.want)
				}
			})
		})
	}
}

func TestReverseNamesOutsideOfTheClusterAreForwarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		upstream := &resolvers{of: map[string]resolver{"192.0.2.1:53": func(network string, q *dns.Msg) []*dns.Msg {
			return records(dns.RcodeSuccess, q.Question[0].Name+" 60 IN PTR host.example.")(network, q)
		}}}
		s := serve(t, Options{
			Source: newSource(clusterIP("default", "a", "10.96.0.1")), Upstreams: []string{"192.0.2.1"}, Dial: upstream.Dial,
			CIDRs: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")},
		})
		for name, want := range map[string]string{
			"1.0.96.10.in-addr.arpa": "NOERROR aa ra 1.0.96.10.in-addr.arpa. PTR a.default.svc.cluster.local.",
			"2.0.96.10.in-addr.arpa": "NXDOMAIN aa ra SOA 96.10.in-addr.arpa.",
			"2.0.97.10.in-addr.arpa": "NOERROR ra 2.0.97.10.in-addr.arpa. PTR host.example.",
		} {
			if got := summary(s.ask(query(dns.TypePTR, name))); got != want {
				t.Errorf("%s: got %s, want %s", name, got, want)
			}
		}
	})
}
