package zone

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

var config = Config{
	Domain: "cluster.local",
	CIDRs: []netip.Prefix{
		netip.MustParsePrefix("10.96.0.0/12"), netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("fd00:96::/108"),
	},
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// service returns a Service with these ClusterIPs; with the only one None, a headless Service.
func service(key string, ips ...string) *corev1.Service {
	ns, name, _ := strings.Cut(key, "/")
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	s.Spec.ClusterIPs = ips
	if len(ips) > 0 {
		s.Spec.ClusterIP = ips[0]
	}
	return s
}

func withPorts(s *corev1.Service, ports ...corev1.ServicePort) *corev1.Service {
	s.Spec.Ports = ports
	return s
}

func externalName(key, target string) *corev1.Service {
	s := service(key)
	s.Spec.Type, s.Spec.ExternalName = corev1.ServiceTypeExternalName, target
	return s
}

// slice returns an EndpointSlice of the Service. Each endpoint is "address [hostname] [unready]".
func slice(key string, ports []discoveryv1.EndpointPort, endpoints ...string) *discoveryv1.EndpointSlice {
	ns, name, _ := strings.Cut(key, "/")
	s := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: ns, Name: name + "-x", Labels: map[string]string{discoveryv1.LabelServiceName: name}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: ports,
	}
	for _, text := range endpoints {
		words := strings.Fields(text)
		e := discoveryv1.Endpoint{Addresses: words[:1], Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}}
		for _, w := range words[1:] {
			if w == "unready" {
				e.Conditions.Ready = ptr.To(false)
				continue
			}
			e.Hostname = ptr.To(w)
		}
		s.Endpoints = append(s.Endpoints, e)
	}
	return s
}

func port(name string, protocol corev1.Protocol, number int32) discoveryv1.EndpointPort {
	return discoveryv1.EndpointPort{Name: &name, Protocol: &protocol, Port: &number}
}

func cluster() Snapshot {
	publishing := service("shop/warming", "None")
	publishing.Spec.PublishNotReadyAddresses = true
	unknown := slice("shop/unknown", []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: ptr.To[int32](80)}}, "10.244.3.1")
	unknown.Endpoints[0].Conditions.Ready = nil
	fqdn := slice("shop/db", nil, "10.9.9.9")
	fqdn.AddressType = discoveryv1.AddressTypeFQDN
	orphan := slice("shop/db", nil, "10.9.9.8")
	orphan.Labels = nil
	db := []discoveryv1.EndpointPort{port("sql", corev1.ProtocolTCP, 5432), port("", corev1.ProtocolTCP, 9), {Name: ptr.To("any")}}
	return Snapshot{
		Serial:     7,
		Namespaces: []*corev1.Namespace{namespace("default"), namespace("shop"), namespace("empty"), namespace("kube-system")},
		Services: []*corev1.Service{
			withPorts(service("default/kubernetes", "10.96.0.1"), corev1.ServicePort{Name: "https", Protocol: corev1.ProtocolTCP, Port: 443}),
			service("kube-system/kube-dns", "10.96.0.10"), service("default/kube-dns", "10.96.0.11"),
			withPorts(service("shop/web", "10.96.1.1", "fd00:96::1"),
				corev1.ServicePort{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80},
				corev1.ServicePort{Name: "quic", Protocol: corev1.ProtocolUDP, Port: 443},
				corev1.ServicePort{Protocol: corev1.ProtocolTCP, Port: 8080}),
			service("shop/db", "None"), service("shop/idle", "None"), publishing, service("shop/unknown", "None"),
			withPorts(service("shop/pending"), corev1.ServicePort{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}), service("late/alone", "10.96.9.9"),
			service("shop/twice", "None"), externalName("shop/door", "front.shop.svc.cluster.local"),
			externalName("shop/mail", "mx.example.com"), externalName("shop/front", "web.shop.svc.cluster.local"),
			externalName("shop/gone", "no.shop.svc.cluster.local."), externalName("shop/loop", "loop.shop.svc.cluster.local"),
			externalName("shop/bad", "a..b"),
		},
		EndpointSlices: []*discoveryv1.EndpointSlice{
			slice("shop/web", nil, "10.244.1.1", "10.244.1.2 pet"),
			slice("shop/db", db, "10.244.2.1 db-0", "10.244.2.2 db-1", "10.244.2.3", "10.244.2.4 db-3 unready"),
			slice("shop/db", db, "10.244.2.1 db-0", "fd00:10::1 db-0", "192.0.2.7 far", "nonsense bad", "::ffff:10.244.2.88 mapped"),
			slice("shop/twice", []discoveryv1.EndpointPort{port("sql", corev1.ProtocolTCP, 1)}, "10.244.6.1 t-0"),
			slice("shop/twice", []discoveryv1.EndpointPort{port("sql", corev1.ProtocolTCP, 2)}, "10.244.6.1 t-0"),
			slice("shop/idle", db, "10.244.2.9 idle-0 unready"),
			slice("shop/warming", nil, "10.244.4.1 w-0 unready"),
			slice("shop/mail", nil, "10.244.5.1 m-0"),
			unknown, fqdn, orphan,
		},
	}
}

// text returns the answer in words: "NODATA apex", "NXDOMAIN apex", or the records.
func text(a Answer, ok bool) string {
	if !ok {
		return "not of the zone"
	}
	var out []string
	if a.Rcode != dns.RcodeSuccess {
		out = append(out, dns.RcodeToString[a.Rcode])
	} else if len(a.Authority) > 0 {
		out = append(out, "NODATA")
	}
	for _, r := range a.Records {
		out = append(out, recordText(r))
	}
	for _, r := range a.Authority {
		out = append(out, r.Header().Name)
	}
	for _, r := range a.Additional {
		out = append(out, "+ "+recordText(r))
	}
	if a.Alias != "" {
		out = append(out, "-> "+a.Alias)
	}
	return strings.Join(out, " ")
}

func recordText(r dns.RR) string {
	words := strings.Fields(r.String()) // name TTL IN type data
	return strings.Join(append(words[:1], words[3:]...), " ")
}

func question(text string) dns.Question {
	qtype, name, _ := strings.Cut(text, " ")
	return dns.Question{Name: dns.Fqdn(name), Qtype: dns.StringToType[qtype], Qclass: dns.ClassINET}
}

func TestLookup(t *testing.T) {
	const apex = "cluster.local."
	zone := New(config, cluster())
	for name, c := range map[string]struct{ ask, want string }{
		"a Service has the A record of its ClusterIP":      {"A kubernetes.default.svc.cluster.local", "kubernetes.default.svc.cluster.local. A 10.96.0.1"},
		"a Service without IPv6 has no AAAA record":        {"AAAA kubernetes.default.svc.cluster.local", "NODATA " + apex},
		"a Service with two families has its IPv4 address": {"A web.shop.svc.cluster.local", "web.shop.svc.cluster.local. A 10.96.1.1"},
		"a Service with two families has its IPv6 address": {"AAAA web.shop.svc.cluster.local", "web.shop.svc.cluster.local. AAAA fd00:96::1"},
		"a Service without an address yet exists":          {"A pending.shop.svc.cluster.local", "NODATA " + apex},
		"a Service whose Namespace was not seen yet":       {"A alone.late.svc.cluster.local", "alone.late.svc.cluster.local. A 10.96.9.9"},
		"a Service that does not exist":                    {"A no.shop.svc.cluster.local", "NXDOMAIN " + apex},
		"a Service of another namespace":                   {"A web.default.svc.cluster.local", "NXDOMAIN " + apex},
		"a name is found in any case, and keeps it":        {"A KUBERNETES.Default.svc.Cluster.LOCAL", "KUBERNETES.Default.svc.Cluster.LOCAL. A 10.96.0.1"},
		"a type that no name has":                          {"MX web.shop.svc.cluster.local", "NODATA " + apex},
		"a type that no name has, of a name that is not":   {"MX no.shop.svc.cluster.local", "NXDOMAIN " + apex},
		"a label too many":                                 {"A x.kubernetes.default.svc.cluster.local", "NXDOMAIN " + apex},
		"the endpoints of a Service with a ClusterIP":      {"A pet.web.shop.svc.cluster.local", "pet.web.shop.svc.cluster.local. A 10.244.1.2"},
		"SRV of a named port":                              {"SRV _https._tcp.kubernetes.default.svc.cluster.local", "_https._tcp.kubernetes.default.svc.cluster.local. SRV 0 100 443 kubernetes.default.svc.cluster.local. + kubernetes.default.svc.cluster.local. A 10.96.0.1"},
		"SRV of a UDP port":                                {"SRV _quic._udp.web.shop.svc.cluster.local", "_quic._udp.web.shop.svc.cluster.local. SRV 0 100 443 web.shop.svc.cluster.local. + web.shop.svc.cluster.local. A 10.96.1.1 + web.shop.svc.cluster.local. AAAA fd00:96::1"},
		"SRV of the wrong protocol":                        {"SRV _http._udp.web.shop.svc.cluster.local", "NXDOMAIN " + apex},
		"SRV of no port":                                   {"SRV _x._tcp.web.shop.svc.cluster.local", "NXDOMAIN " + apex},
		"SRV of a port without underscores":                {"SRV http.tcp.web.shop.svc.cluster.local", "NXDOMAIN " + apex},
		"SRV of the Service itself":                        {"SRV web.shop.svc.cluster.local", "NODATA " + apex},
		"A of a port":                                      {"A _http._tcp.web.shop.svc.cluster.local", "NODATA " + apex},
		"a protocol with ports exists":                     {"A _tcp.web.shop.svc.cluster.local", "NODATA " + apex},
		"a protocol without ports does not":                {"A _sctp.web.shop.svc.cluster.local", "NXDOMAIN " + apex},
		"a headless Service has its ready endpoints":       {"A db.shop.svc.cluster.local", "db.shop.svc.cluster.local. A 10.244.2.1 db.shop.svc.cluster.local. A 10.244.2.2 db.shop.svc.cluster.local. A 10.244.2.3 db.shop.svc.cluster.local. A 10.244.2.88 db.shop.svc.cluster.local. A 192.0.2.7"},
		"a headless Service has its IPv6 endpoints":        {"AAAA db.shop.svc.cluster.local", "db.shop.svc.cluster.local. AAAA fd00:10::1"},
		"a headless Service without ready endpoints":       {"A idle.shop.svc.cluster.local", "NXDOMAIN " + apex},
		"a port of a headless Service without endpoints":   {"SRV _sql._tcp.idle.shop.svc.cluster.local", "NXDOMAIN " + apex},
		"a headless Service that publishes all endpoints":  {"A warming.shop.svc.cluster.local", "warming.shop.svc.cluster.local. A 10.244.4.1"},
		"an endpoint of unknown readiness is ready":        {"A unknown.shop.svc.cluster.local", "unknown.shop.svc.cluster.local. A 10.244.3.1"},
		"a port without a protocol is a TCP port":          {"SRV _http._tcp.unknown.shop.svc.cluster.local", "_http._tcp.unknown.shop.svc.cluster.local. SRV 0 100 80 10-244-3-1.unknown.shop.svc.cluster.local. + 10-244-3-1.unknown.shop.svc.cluster.local. A 10.244.3.1"},
		"a hostname":                                          {"A db-0.db.shop.svc.cluster.local", "db-0.db.shop.svc.cluster.local. A 10.244.2.1"},
		"a hostname of IPv6":                                  {"AAAA db-0.db.shop.svc.cluster.local", "db-0.db.shop.svc.cluster.local. AAAA fd00:10::1"},
		"an endpoint without a hostname":                      {"A 10-244-2-3.db.shop.svc.cluster.local", "10-244-2-3.db.shop.svc.cluster.local. A 10.244.2.3"},
		"an endpoint with a hostname has no other":            {"A 10-244-2-1.db.shop.svc.cluster.local", "NXDOMAIN " + apex},
		"the hostname of an endpoint that is not ready":       {"A db-3.db.shop.svc.cluster.local", "NXDOMAIN " + apex},
		"the hostname of what has no address":                 {"A bad.db.shop.svc.cluster.local", "NXDOMAIN " + apex},
		"the unnamed port of a headless Service":              {"SRV _._tcp.db.shop.svc.cluster.local", "NXDOMAIN " + apex},
		"the port of a headless Service without number":       {"SRV _any._tcp.db.shop.svc.cluster.local", "NXDOMAIN " + apex},
		"an ExternalName":                                     {"A mail.shop.svc.cluster.local", "mail.shop.svc.cluster.local. CNAME mx.example.com. -> mx.example.com."},
		"an ExternalName itself":                              {"CNAME mail.shop.svc.cluster.local", "mail.shop.svc.cluster.local. CNAME mx.example.com."},
		"an ExternalName in the cluster":                      {"A front.shop.svc.cluster.local", "front.shop.svc.cluster.local. CNAME web.shop.svc.cluster.local. web.shop.svc.cluster.local. A 10.96.1.1"},
		"an ExternalName in the cluster, another type":        {"TXT front.shop.svc.cluster.local", "NODATA front.shop.svc.cluster.local. CNAME web.shop.svc.cluster.local. " + apex},
		"an ExternalName of what does not exist":              {"A gone.shop.svc.cluster.local", "NXDOMAIN gone.shop.svc.cluster.local. CNAME no.shop.svc.cluster.local. " + apex},
		"an ExternalName that points to itself":               {"A loop.shop.svc.cluster.local", "SERVFAIL"},
		"an ExternalName that is no name":                     {"A bad.shop.svc.cluster.local", "NODATA " + apex},
		"an ExternalName has no endpoints":                    {"A m-0.mail.shop.svc.cluster.local", "NXDOMAIN " + apex},
		"the alias of what has none":                          {"CNAME web.shop.svc.cluster.local", "NODATA " + apex},
		"a pod":                                               {"A 1-2-3-4.default.pod.cluster.local", "1-2-3-4.default.pod.cluster.local. A 1.2.3.4"},
		"a pod of IPv6":                                       {"AAAA fd00--1.default.pod.cluster.local", "fd00--1.default.pod.cluster.local. AAAA fd00::1"},
		"a pod of IPv4 has no IPv6":                           {"AAAA 1-2-3-4.default.pod.cluster.local", "NODATA " + apex},
		"a pod of a namespace that does not exist":            {"A 1-2-3-4.no.pod.cluster.local", "NXDOMAIN " + apex},
		"a pod with an address that is none":                  {"A 1-2-3-256.default.pod.cluster.local", "NXDOMAIN " + apex},
		"a pod with leading zeros":                            {"A 1-2-3-04.default.pod.cluster.local", "NXDOMAIN " + apex},
		"a pod with a name":                                   {"A web-0.default.pod.cluster.local", "NXDOMAIN " + apex},
		"a pod with colons":                                   {"AAAA fd00::1.default.pod.cluster.local", "NXDOMAIN " + apex},
		"a pod with an interface":                             {"AAAA fe80--1%eth0.default.pod.cluster.local", "NXDOMAIN " + apex},
		"a pod with dots":                                     {`A 1\.2\.3\.4.default.pod.cluster.local`, "NXDOMAIN " + apex},
		"a name below a pod":                                  {"A x.1-2-3-4.default.pod.cluster.local", "NXDOMAIN " + apex},
		"the name of pods in the wrong place":                 {"A 1-2-3-4.default.svc.cluster.local", "NXDOMAIN " + apex},
		"a pod of a namespace that was not seen yet":          {"A 1-2-3-4.late.pod.cluster.local", "1-2-3-4.late.pod.cluster.local. A 1.2.3.4"},
		"a pod of IPv4 in IPv6":                               {"AAAA --ffff-102-304.default.pod.cluster.local", "NXDOMAIN " + apex},
		"a port of a Service without an address":              {"SRV _http._tcp.pending.shop.svc.cluster.local", "NXDOMAIN " + apex},
		"the reverse name of a network outside":               {"PTR 2.0.192.in-addr.arpa", "not of the zone"},
		"an endpoint with two ports of a name":                {"SRV _sql._tcp.twice.shop.svc.cluster.local", "_sql._tcp.twice.shop.svc.cluster.local. SRV 0 100 1 t-0.twice.shop.svc.cluster.local. _sql._tcp.twice.shop.svc.cluster.local. SRV 0 100 2 t-0.twice.shop.svc.cluster.local. + t-0.twice.shop.svc.cluster.local. A 10.244.6.1"},
		"an ExternalName of an ExternalName":                  {"A door.shop.svc.cluster.local", "door.shop.svc.cluster.local. CNAME front.shop.svc.cluster.local. front.shop.svc.cluster.local. CNAME web.shop.svc.cluster.local. web.shop.svc.cluster.local. A 10.96.1.1"},
		"the domain exists":                                   {"A cluster.local", "NODATA " + apex},
		"the domain's SOA":                                    {"SOA cluster.local", "cluster.local. SOA ns.dns.cluster.local. hostmaster.cluster.local. 7 7200 1800 86400 5"},
		"the SOA of another name":                             {"SOA web.shop.svc.cluster.local", "NODATA " + apex},
		"the domain's server":                                 {"NS cluster.local", "cluster.local. NS ns.dns.cluster.local. + ns.dns.cluster.local. A 10.96.0.10"},
		"the server":                                          {"A ns.dns.cluster.local", "ns.dns.cluster.local. A 10.96.0.10"},
		"Services exist":                                      {"A svc.cluster.local", "NODATA " + apex},
		"pods exist":                                          {"A pod.cluster.local", "NODATA " + apex},
		"a namespace without Services exists":                 {"A empty.svc.cluster.local", "NODATA " + apex},
		"a namespace exists below pods":                       {"TXT empty.pod.cluster.local", "NODATA " + apex},
		"a namespace that does not exist":                     {"A no.svc.cluster.local", "NXDOMAIN " + apex},
		"the version of the schema":                           {"TXT dns-version.cluster.local", `dns-version.cluster.local. TXT "1.1.0"`},
		"the version has no address":                          {"A dns-version.cluster.local", "NODATA " + apex},
		"another name of the domain":                          {"A www.cluster.local", "NXDOMAIN " + apex},
		"a name outside":                                      {"A www.example.com", "not of the zone"},
		"a name that only ends like the domain":               {"A notcluster.local", "not of the zone"},
		"the root":                                            {"NS .", "not of the zone"},
		"the reverse name of a ClusterIP":                     {"PTR 1.0.96.10.in-addr.arpa", "1.0.96.10.in-addr.arpa. PTR kubernetes.default.svc.cluster.local."},
		"the reverse name of a ClusterIP of IPv6":             {"PTR 1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.6.9.0.0.0.0.d.f.ip6.arpa", "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.6.9.0.0.0.0.d.f.ip6.arpa. PTR web.shop.svc.cluster.local."},
		"the reverse name of an endpoint":                     {"PTR 1.2.244.10.in-addr.arpa", "1.2.244.10.in-addr.arpa. PTR db-0.db.shop.svc.cluster.local."},
		"the reverse name of an endpoint without hostname":    {"PTR 3.2.244.10.in-addr.arpa", "3.2.244.10.in-addr.arpa. PTR 10-244-2-3.db.shop.svc.cluster.local."},
		"the reverse name of an endpoint outside":             {"PTR 7.2.0.192.in-addr.arpa", "7.2.0.192.in-addr.arpa. PTR far.db.shop.svc.cluster.local."},
		"the address of the reverse name of such an endpoint": {"A 7.2.0.192.in-addr.arpa", "NODATA 7.2.0.192.in-addr.arpa."},
		"an endpoint that is not ready has no reverse name":   {"PTR 4.2.244.10.in-addr.arpa", "NXDOMAIN 244.10.in-addr.arpa."},
		"an endpoint of a Service with a ClusterIP":           {"PTR 2.1.244.10.in-addr.arpa", "NXDOMAIN 244.10.in-addr.arpa."},
		"the reverse name of no Service":                      {"PTR 2.0.96.10.in-addr.arpa", "NXDOMAIN 96.10.in-addr.arpa."},
		"the reverse name of an address outside":              {"PTR 8.2.0.192.in-addr.arpa", "not of the zone"},
		"the reverse name of a network with addresses":        {"PTR 0.96.10.in-addr.arpa", "NODATA 96.10.in-addr.arpa."},
		"the reverse name of a network without":               {"PTR 7.96.10.in-addr.arpa", "NXDOMAIN 96.10.in-addr.arpa."},
		"the reverse zone":                                    {"SOA 111.10.in-addr.arpa", "111.10.in-addr.arpa. SOA ns.dns.cluster.local. hostmaster.cluster.local. 7 7200 1800 86400 5"},
		"a name below a reverse name":                         {"PTR x.1.0.96.10.in-addr.arpa", "NXDOMAIN 96.10.in-addr.arpa."},
	} {
		t.Run(name, func(t *testing.T) {
			if got := text(zone.Lookup(question(c.ask))); got != c.want {
				t.Errorf("%s:\n got %s\nwant %s", c.ask, got, c.want)
			}
		})
	}
}

func TestRecordsLiveShortly(t *testing.T) {
	zone := New(config, cluster())
	for _, ask := range []string{"A web.shop.svc.cluster.local", "A no.shop.svc.cluster.local", "SRV _http._tcp.web.shop.svc.cluster.local", "TXT dns-version.cluster.local"} {
		a, _ := zone.Lookup(question(ask))
		for _, r := range append(append(a.Records, a.Authority...), a.Additional...) {
			if r.Header().Ttl != TTL {
				t.Errorf("%s: %s has TTL %d, want %d", ask, r, r.Header().Ttl, TTL)
			}
			if soa, ok := r.(*dns.SOA); ok && soa.Minttl != TTL {
				t.Errorf("%s: negative answers live %d s, want %d", ask, soa.Minttl, TTL)
			}
		}
	}
}

func TestADualStackEndpointHasOneServer(t *testing.T) {
	got := text(New(config, cluster()).Lookup(question("SRV _sql._tcp.db.shop.svc.cluster.local")))
	const owner, in = "_sql._tcp.db.shop.svc.cluster.local. SRV 0 100 5432 ", ".db.shop.svc.cluster.local."
	want := strings.Join([]string{
		owner + "10-244-2-3" + in, owner + "db-0" + in, owner + "db-1" + in, owner + "far" + in, owner + "mapped" + in,
		"+ 10-244-2-3" + in + " A 10.244.2.3", "+ db-0" + in + " A 10.244.2.1", "+ db-0" + in + " AAAA fd00:10::1",
		"+ db-1" + in + " A 10.244.2.2", "+ far" + in + " A 192.0.2.7",
		"+ mapped" + in + " A 10.244.2.88",
	}, " ")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestInvalidObjectsHarmNoOthers(t *testing.T) {
	s := cluster()
	long := strings.Repeat("x", 64)
	s.Namespaces = append(s.Namespaces, namespace(long), namespace(""))
	s.Services = append(s.Services, service("shop/"+long, "10.96.7.7"), service("shop/odd", "10.96.7.8/16", "fe80::1%eth0"), service("shop/a b", "10.96.7.9"),
		withPorts(service("shop/ports", "10.96.7.10"), corev1.ServicePort{Name: "big", Protocol: corev1.ProtocolTCP, Port: 65536}, corev1.ServicePort{Name: "neg", Protocol: corev1.ProtocolTCP, Port: -1}))
	s.EndpointSlices = append(s.EndpointSlices, slice("shop/db", nil, "10.244.2.5 "+long, "10.244.2.6 a.b", "10.244.2.7 .", "10.244.2.8 a."), slice("shop/nobody", nil, "10.244.6.1"))
	zone := New(config, s)
	for ask, want := range map[string]string{
		"A kubernetes.default.svc.cluster.local":     "kubernetes.default.svc.cluster.local. A 10.96.0.1",
		"A odd.shop.svc.cluster.local":               "NODATA cluster.local.",
		"AAAA odd.shop.svc.cluster.local":            "NODATA cluster.local.",
		"A nobody.shop.svc.cluster.local":            "NXDOMAIN cluster.local.",
		"SRV _big._tcp.ports.shop.svc.cluster.local": "NXDOMAIN cluster.local.",
		"SRV _neg._tcp.ports.shop.svc.cluster.local": "NXDOMAIN cluster.local.",
		"PTR 5.2.244.10.in-addr.arpa":                "5.2.244.10.in-addr.arpa. PTR 10-244-2-5.db.shop.svc.cluster.local.",
		"PTR 6.2.244.10.in-addr.arpa":                "6.2.244.10.in-addr.arpa. PTR 10-244-2-6.db.shop.svc.cluster.local.",
		"PTR 8.2.244.10.in-addr.arpa":                "8.2.244.10.in-addr.arpa. PTR 10-244-2-8.db.shop.svc.cluster.local.",
		"PTR 7.2.244.10.in-addr.arpa":                "7.2.244.10.in-addr.arpa. PTR 10-244-2-7.db.shop.svc.cluster.local.",
	} {
		if got := text(zone.Lookup(question(ask))); got != want {
			t.Errorf("%s:\n got %s\nwant %s", ask, got, want)
		}
	}
}

func TestAllNamesFitIntoTheLongestDomain(t *testing.T) {
	domain := strings.Repeat("d", MaxDomainLength-2) + ".e"
	full := strings.Repeat("x", 63)
	zone := New(Config{Domain: domain}, Snapshot{
		Services: []*corev1.Service{service(full+"/"+full, "None")},
		EndpointSlices: []*discoveryv1.EndpointSlice{
			slice(full+"/"+full, []discoveryv1.EndpointPort{port("abcdefghijklmno", corev1.ProtocolSCTP, 1)}, "10.0.0.1 "+full),
		},
	})
	name := fmt.Sprintf("%s.%s.svc.%s.", full, full, domain)
	for _, ask := range []string{"A " + full + "." + name, "SRV _abcdefghijklmno._sctp." + name, "PTR 1.0.0.10.in-addr.arpa"} {
		a, ok := zone.Lookup(question(ask))
		if !ok || len(a.Records) != 1 {
			t.Errorf("%s: %s", ask, text(a, ok))
		}
		if _, err := (&dns.Msg{Question: []dns.Question{question(ask)}, Answer: a.Records, Extra: a.Additional}).Pack(); err != nil {
			t.Errorf("%s does not fit into a message: %v", ask, err)
		}
	}
}
