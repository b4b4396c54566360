package zone

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// A published is an address that a name must have.
type published struct {
	name    string
	address netip.Addr
}

// model is what must hold for a cluster, computed from how it was made.
type model struct {
	snapshot  Snapshot
	addresses map[published]bool
	pointers  map[published]bool
}

func randomCluster(random *rand.Rand) model {
	m := model{addresses: map[published]bool{}, pointers: map[published]bool{}}
	for i := range 1 + random.IntN(4) {
		ns := fmt.Sprintf("ns%d", i)
		if random.IntN(4) > 0 {
			m.snapshot.Namespaces = append(m.snapshot.Namespaces, namespace(ns))
		}
		for j := range random.IntN(4) {
			m.addService(random, ns, fmt.Sprintf("svc%d", j), fmt.Sprintf("10.96.%d.%d", i, j))
		}
	}
	return m
}

func (m *model) addService(random *rand.Rand, ns, name, ip string) {
	headless := random.IntN(2) == 0
	s := service(ns+"/"+name, ip)
	if headless {
		s = service(ns+"/"+name, "None")
	}
	s.Spec.Ports = []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}}
	s.Spec.PublishNotReadyAddresses = random.IntN(4) == 0
	m.snapshot.Services = append(m.snapshot.Services, s)
	owner := name + "." + ns + ".svc.cluster.local."
	if !headless {
		m.addresses[published{owner, netip.MustParseAddr(ip)}] = true
		m.pointers[published{owner, netip.MustParseAddr(ip)}] = true
	}
	for range random.IntN(3) {
		list := slice(ns+"/"+name, []discoveryv1.EndpointPort{port("http", corev1.ProtocolTCP, int32(8000+random.IntN(2)))})
		for range random.IntN(4) {
			m.addEndpoint(random, list, owner, headless, s.Spec.PublishNotReadyAddresses)
		}
		m.snapshot.EndpointSlices = append(m.snapshot.EndpointSlices, list)
	}
}

func (m *model) addEndpoint(random *rand.Rand, list *discoveryv1.EndpointSlice, owner string, headless, all bool) {
	a := netip.AddrFrom4([4]byte{10, 244, byte(random.IntN(2)), byte(random.IntN(9))})
	if random.IntN(3) == 0 {
		a = netip.MustParseAddr(fmt.Sprintf("fd00:244::%x", random.IntN(9)))
	}
	hostname := strings.NewReplacer(".", "-", ":", "-").Replace(a.String())
	text := a.String()
	if random.IntN(2) == 0 {
		hostname = fmt.Sprintf("pet-%d", random.IntN(3))
		text += " " + hostname
	}
	ready := random.IntN(3) > 0
	if !ready {
		text += " unready"
	}
	list.Endpoints = append(list.Endpoints, slice("ns/name", nil, text).Endpoints...)
	if !ready && !all {
		return
	}
	m.addresses[published{hostname + "." + owner, a}] = true
	if headless {
		m.addresses[published{owner, a}] = true
		m.pointers[published{hostname + "." + owner, a}] = true
	}
}

// ask returns the answer, after checks that hold for every answer.
func ask(t *testing.T, z *Zone, qtype uint16, name string) Answer {
	t.Helper()
	q := dns.Question{Name: name, Qtype: qtype, Qclass: dns.ClassINET}
	a, ok := z.Lookup(q)
	if !ok {
		t.Fatalf("%s is not of the zone", name)
	}
	m := &dns.Msg{Question: []dns.Question{q}, Answer: a.Records, Ns: a.Authority, Extra: a.Additional}
	if _, err := m.Pack(); err != nil {
		t.Fatalf("the answer to %s cannot be sent: %v", name, err)
	}
	if negative := len(a.Records) == 0; negative != (len(a.Authority) == 1) || !negative && a.Rcode != dns.RcodeSuccess {
		t.Fatalf("%s: records xor a SOA: %s", name, text(a, true))
	}
	return a
}

func TestRandomClusters(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 40 {
		m := randomCluster(random)
		z := New(config, m.snapshot)
		checkAddresses(t, z, m)
		checkPointers(t, z, m)
		checkServers(t, z)
		checkExistence(t, z, random)
		checkOrder(t, z, m.snapshot, random)
		if t.Failed() {
			return
		}
	}
}

// Every address that must be there is, and no other.
func checkAddresses(t *testing.T, z *Zone, m model) {
	t.Helper()
	got := map[published]bool{}
	for name := range z.nodes {
		if !strings.HasSuffix(name, z.domain) {
			continue
		}
		for _, r := range slices.Concat(ask(t, z, dns.TypeA, name).Records, ask(t, z, dns.TypeAAAA, name).Records) {
			p := published{name, addressOf(r)}
			if got[p] {
				t.Errorf("%s has %s twice", name, p.address)
			}
			got[p] = true
		}
	}
	compare(t, "address", got, m.addresses)
}

func addressOf(r dns.RR) netip.Addr {
	var raw []byte
	switch r := r.(type) {
	case *dns.A:
		raw = r.A
	case *dns.AAAA:
		raw = r.AAAA
	}
	a, _ := netip.AddrFromSlice(raw)
	return a
}

func compare(t *testing.T, what string, got, want map[published]bool) {
	t.Helper()
	for p := range got {
		if !want[p] {
			t.Errorf("%s has an %s too many: %s", p.name, what, p.address)
		}
	}
	for p := range want {
		if !got[p] {
			t.Errorf("%s lacks the %s %s", p.name, what, p.address)
		}
	}
}

func checkPointers(t *testing.T, z *Zone, m model) {
	t.Helper()
	got := map[published]bool{}
	for p := range m.addresses {
		answer, ok := z.Lookup(dns.Question{Name: reverseName(p.address), Qtype: dns.TypePTR, Qclass: dns.ClassINET})
		if !ok {
			continue // of no headless Service, and outside of the networks
		}
		for _, r := range answer.Records {
			got[published{r.(*dns.PTR).Ptr, p.address}] = true
		}
	}
	compare(t, "PTR record", got, m.pointers)
}

// A target of SRV records has addresses, and the answer contains them.
func checkServers(t *testing.T, z *Zone) {
	t.Helper()
	for name := range z.nodes {
		if !strings.HasPrefix(name, "_http.") {
			continue
		}
		a := ask(t, z, dns.TypeSRV, name)
		var want []string
		targets := map[string]bool{}
		for _, r := range a.Records {
			targets[r.(*dns.SRV).Target] = true
		}
		for target := range targets {
			for _, r := range slices.Concat(ask(t, z, dns.TypeA, target).Records, ask(t, z, dns.TypeAAAA, target).Records) {
				want = append(want, r.String())
			}
		}
		var got []string
		for _, r := range a.Additional {
			got = append(got, r.String())
		}
		slices.Sort(got)
		slices.Sort(want)
		if len(a.Records) == 0 || !slices.Equal(got, want) {
			t.Errorf("%s: additional records\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// The names above a name that exists do too, and the ones below a name that does not exist do not: RFC 8020.
// A name has the same records in any case.
func checkExistence(t *testing.T, z *Zone, random *rand.Rand) {
	t.Helper()
	for name := range z.nodes {
		if !strings.HasSuffix(name, z.domain) {
			continue
		}
		for above := name; strings.HasSuffix(above, z.domain); _, above, _ = strings.Cut(above, ".") {
			if a := ask(t, z, dns.TypeTXT, above); a.Rcode != dns.RcodeSuccess {
				t.Errorf("%s exists, and %s above it does not", name, above)
			}
		}
		missing := "none." + name
		for _, n := range []string{missing, "db-0." + missing, "_http._tcp." + missing} {
			if a := ask(t, z, dns.TypeA, n); a.Rcode != dns.RcodeNameError {
				t.Errorf("%s: %s, want NXDOMAIN", n, text(a, true))
			}
		}
		mixed := strings.Map(func(r rune) rune {
			if random.IntN(2) == 0 {
				return []rune(strings.ToUpper(string(r)))[0]
			}
			return r
		}, name)
		plain, other := ask(t, z, dns.TypeA, name), ask(t, z, dns.TypeA, mixed)
		if want := strings.ReplaceAll(text(plain, true), name+" A", mixed+" A"); text(other, true) != want {
			t.Errorf("%s: got %s, want %s", mixed, text(other, true), want)
		}
	}
}

// The order of the objects does not matter.
func checkOrder(t *testing.T, z *Zone, s Snapshot, random *rand.Rand) {
	t.Helper()
	random.Shuffle(len(s.Services), func(i, j int) { s.Services[i], s.Services[j] = s.Services[j], s.Services[i] })
	random.Shuffle(len(s.EndpointSlices), func(i, j int) {
		s.EndpointSlices[i], s.EndpointSlices[j] = s.EndpointSlices[j], s.EndpointSlices[i]
	})
	other := New(config, s)
	if len(other.nodes) != len(z.nodes) {
		t.Errorf("%d names in one order, %d in another", len(z.nodes), len(other.nodes))
	}
	for name, n := range z.nodes {
		if got := fmt.Sprint(other.nodes[name]); got != fmt.Sprint(n) {
			t.Errorf("%s: %v in one order, %s in another", name, n, got)
		}
	}
}

// No name and no type makes a lookup fail.
func TestRandomQuestions(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	z := New(config, cluster())
	labels := []string{
		"web", "db", "db-0", "shop", "default", "svc", "pod", "1-2-3-4", "fd00--1", "--", "-", "_tcp", "_sql", "cluster", "local", "in-addr", "ip6", "arpa",
		"10", "96", "0", "1", "f", `\.`, `\000`, "dns-version", "ns", "dns", strings.Repeat("x", 63),
	}
	types := []uint16{dns.TypeA, dns.TypeAAAA, dns.TypeSRV, dns.TypePTR, dns.TypeTXT, dns.TypeSOA, dns.TypeNS, dns.TypeCNAME, dns.TypeMX, dns.TypeANY, dns.TypeDS, 65535}
	for range 5000 {
		var name strings.Builder
		for range random.IntN(7) {
			name.WriteString(labels[random.IntN(len(labels))] + ".")
		}
		name.WriteString([]string{"cluster.local.", "svc.cluster.local.", "96.10.in-addr.arpa.", ""}[random.IntN(4)])
		q := dns.Question{Name: dns.Fqdn(name.String()), Qtype: types[random.IntN(len(types))], Qclass: dns.ClassINET}
		if _, valid := dns.IsDomainName(q.Name); !valid {
			continue
		}
		a, ok := z.Lookup(q)
		m := &dns.Msg{Question: []dns.Question{q}, Answer: a.Records, Ns: a.Authority, Extra: a.Additional}
		if _, err := m.Pack(); err != nil {
			t.Fatalf("the answer to %v cannot be sent: %v: %s", q, err, text(a, ok))
		}
	}
}
