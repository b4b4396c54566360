package zone

import (
	"net/netip"
	"strings"

	"github.com/miekg/dns"
)

// maxAliases is the number of CNAME records that an answer may contain. More are a loop.
const maxAliases = 8

// An Answer is the content of an authoritative response.
type Answer struct {
	Rcode                          int
	Records, Authority, Additional []dns.RR
	// Alias is the name at which the answer continues if it is not a name of the zone: Records ends
	// with a CNAME record that points to it.
	Alias string
}

// Lookup returns the answer to a question of class IN, and false if the zone is not authoritative
// for the name.
func (z *Zone) Lookup(q dns.Question) (Answer, bool) {
	owner, name := q.Name, dns.CanonicalName(q.Name)
	apex, ok := z.apexOf(name)
	if !ok {
		return Answer{}, false
	}
	var a Answer
	for range maxAliases {
		n, exists := z.find(name, apex)
		if !exists {
			a.Rcode, a.Authority = dns.RcodeNameError, []dns.RR{z.startOfAuthority(apex)}
			return a, true
		}
		if n.alias == "" || q.Qtype == dns.TypeCNAME {
			z.complete(&a, n, owner, name, apex, q.Qtype)
			return a, true
		}
		a.Records = append(a.Records, alias(owner, n.alias))
		owner, name = n.alias, dns.CanonicalName(n.alias)
		if apex, ok = z.apexOf(name); !ok {
			a.Alias = owner
			return a, true
		}
	}
	return Answer{Rcode: dns.RcodeServerFailure}, true
}

// complete adds the records of an existing name to the answer, or the SOA record if there are none.
func (z *Zone) complete(a *Answer, n *node, owner, name, apex string, qtype uint16) {
	records := z.records(n, owner, qtype)
	if name == apex {
		records = append(records, z.apexRecords(owner, qtype)...)
	}
	if len(records) == 0 {
		a.Authority = []dns.RR{z.startOfAuthority(apex)}
		return
	}
	a.Records = append(a.Records, records...)
	a.Additional = z.addressesOfTargets(records)
}

// apexOf returns the name of the SOA record for a name, and false if the zone does not answer for it.
func (z *Zone) apexOf(name string) (string, bool) {
	if name == z.domain || strings.HasSuffix(name, "."+z.domain) {
		return z.domain, true
	}
	for _, network := range z.cidrs {
		if apex, ok := reverseApex(name, network); ok {
			return apex, true
		}
	}
	if n := z.nodes[name]; n != nil && len(n.pointers) > 0 {
		return name, true // an endpoint outside of the cluster's networks
	}
	return "", false
}

// find returns the records of the name, and false if the name does not exist.
func (z *Zone) find(name, apex string) (*node, bool) {
	if n := z.nodes[name]; n != nil {
		return n, true
	}
	if name == apex {
		return &node{}, true
	}
	return z.findPod(name)
}

// findPod returns the record of a name such as 10-1-2-3.default.pod.cluster.local. Such a name exists
// if it contains an address, and the namespace exists; no pod needs to have the address.
func (z *Zone) findPod(name string) (*node, bool) {
	label, namespace, _ := strings.Cut(name, ".")
	_, pod, _ := strings.Cut(namespace, ".")
	if pod != "pod."+z.domain || z.nodes[namespace] == nil || strings.Contains(label, ":") {
		return nil, false
	}
	for _, separator := range []string{".", ":"} {
		a, err := netip.ParseAddr(strings.ReplaceAll(label, "-", separator))
		if err == nil && a.Zone() == "" && !a.Is4In6() {
			return &node{addresses: []netip.Addr{a}}, true
		}
	}
	return nil, false
}

// records returns the records of that type.
func (z *Zone) records(n *node, owner string, qtype uint16) []dns.RR {
	var out []dns.RR
	switch qtype {
	case dns.TypeA, dns.TypeAAAA:
		return addressRecords(n, owner, qtype)
	case dns.TypeSRV:
		for _, s := range n.serviceRecords {
			out = append(out, &dns.SRV{Hdr: header(owner, qtype), Weight: 100, Port: s.port, Target: s.target})
		}
	case dns.TypePTR:
		for _, target := range n.pointers {
			out = append(out, &dns.PTR{Hdr: header(owner, qtype), Ptr: target})
		}
	case dns.TypeTXT:
		if n.text != "" {
			out = append(out, &dns.TXT{Hdr: header(owner, qtype), Txt: []string{n.text}})
		}
	case dns.TypeCNAME:
		if n.alias != "" {
			out = append(out, alias(owner, n.alias))
		}
	}
	return out
}

// addressRecords returns the addresses of one version.
func addressRecords(n *node, owner string, qtype uint16) []dns.RR {
	var out []dns.RR
	for _, a := range n.addresses {
		switch {
		case qtype == dns.TypeA && a.Is4():
			out = append(out, &dns.A{Hdr: header(owner, qtype), A: a.AsSlice()})
		case qtype == dns.TypeAAAA && a.Is6():
			out = append(out, &dns.AAAA{Hdr: header(owner, qtype), AAAA: a.AsSlice()})
		}
	}
	return out
}

// addressesOfTargets returns the addresses of the names in SRV and NS records.
func (z *Zone) addressesOfTargets(records []dns.RR) []dns.RR {
	var out []dns.RR
	seen := map[string]bool{}
	for _, r := range records {
		var target string
		switch r := r.(type) {
		case *dns.SRV:
			target = r.Target
		case *dns.NS:
			target = r.Ns
		}
		n := z.nodes[target]
		if n == nil || seen[target] {
			continue
		}
		seen[target] = true
		out = append(out, addressRecords(n, target, dns.TypeA)...)
		out = append(out, addressRecords(n, target, dns.TypeAAAA)...)
	}
	return out
}

// apexRecords returns the records that only the first name of a zone has.
func (z *Zone) apexRecords(owner string, qtype uint16) []dns.RR {
	switch qtype {
	case dns.TypeSOA:
		return []dns.RR{z.startOfAuthority(owner)}
	case dns.TypeNS:
		return []dns.RR{&dns.NS{Hdr: header(owner, qtype), Ns: z.nameserver()}}
	}
	return nil
}

// startOfAuthority returns the SOA record. In a negative answer, its TTL and its minimum are the time
// for which a resolver may remember the answer: RFC 2308.
func (z *Zone) startOfAuthority(apex string) *dns.SOA {
	return &dns.SOA{
		Hdr: header(apex, dns.TypeSOA), Ns: z.nameserver(), Mbox: "hostmaster." + z.domain,
		Serial: z.serial, Refresh: 7200, Retry: 1800, Expire: 86400, Minttl: TTL,
	}
}

func alias(owner, target string) *dns.CNAME {
	return &dns.CNAME{Hdr: header(owner, dns.TypeCNAME), Target: target}
}

func header(owner string, rrtype uint16) dns.RR_Header {
	return dns.RR_Header{Name: owner, Rrtype: rrtype, Class: dns.ClassINET, Ttl: TTL}
}
