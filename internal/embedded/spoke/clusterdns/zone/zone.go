// Package zone answers DNS questions from a snapshot of a cluster's Namespaces, Services and
// EndpointSlices. It implements version 1.1.0 of the Kubernetes DNS-Based Service Discovery
// specification: https://github.com/kubernetes/dns/blob/master/docs/specification.md.
package zone

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

const (
	// SchemaVersion is the version of the specification, which the TXT record dns-version contains.
	SchemaVersion = "1.1.0"
	// TTL is the time to live of all records and negative answers, in seconds. It is short because
	// an answer is computed from the current objects, and a pod that caches it misses changes.
	TTL = 5
	// MaxDomainLength is the length of the longest domain in which all names fit into the 253 octets
	// that DNS allows: an endpoint's hostname, a Service and a namespace have up to 63 octets each.
	MaxDomainLength = 57
)

// The Service with these names, if it exists, has the addresses of the cluster's DNS server.
const (
	serverNamespace = "kube-system"
	serverService   = "kube-dns"
)

// Config describes the names about which a Zone answers.
type Config struct {
	// Domain is the domain of the cluster, such as cluster.local, of at most MaxDomainLength octets.
	Domain string
	// CIDRs are the networks of the cluster's Services and pods. A Zone answers questions about all
	// reverse names in them.
	CIDRs []netip.Prefix
}

// Snapshot contains the objects of a cluster.
type Snapshot struct {
	Namespaces     []*corev1.Namespace
	Services       []*corev1.Service
	EndpointSlices []*discoveryv1.EndpointSlice
	// Serial is the serial number of the SOA record.
	Serial uint32
}

// Zone contains the records of a cluster. It does not change, and may be used by several goroutines.
type Zone struct {
	domain string // in lower case, with a final dot
	cidrs  []netip.Prefix
	serial uint32
	nodes  map[string]*node // by name: in lower case, with a final dot
}

// node contains the records of one name. A node without records exists because there are names
// below it, or because it is the name of a namespace.
type node struct {
	addresses      []netip.Addr
	serviceRecords []serviceRecord
	pointers       []string
	alias          string
	text           string
}

// serviceRecord is the content of an SRV record.
type serviceRecord struct {
	target string
	port   uint16
}

// New returns the Zone of the objects. It ignores what the API server would have rejected, such as
// an address of an endpoint that is not an address.
func New(c Config, s Snapshot) *Zone {
	z := &Zone{
		domain: dns.CanonicalName(c.Domain), cidrs: slices.Clone(c.CIDRs), serial: s.Serial,
		nodes: map[string]*node{},
	}
	z.ensureNode(z.domain)
	z.ensureNode("svc." + z.domain)
	z.ensureNode("pod." + z.domain)
	z.ensureNode(z.nameserver())
	z.ensureNode("dns-version." + z.domain).text = SchemaVersion
	for _, namespace := range s.Namespaces {
		z.addNamespace(namespace.Name)
	}
	ofService := groupByService(s.EndpointSlices)
	for _, service := range s.Services {
		z.addNamespace(service.Namespace) // two watches: that of Namespaces may be behind
		z.addService(service, ofService[service.Namespace+"/"+service.Name])
	}
	for _, n := range z.nodes {
		n.sortRecords()
	}
	return z
}

// nameserver returns the name of the DNS server itself.
func (z *Zone) nameserver() string { return "ns.dns." + z.domain }

// ensureNode returns the node with that name, and creates it and those above it. For a name that
// DNS does not allow it returns a node that no question finds.
func (z *Zone) ensureNode(name string) *node {
	name = strings.ToLower(name)
	if _, valid := dns.IsDomainName(name); !valid || strings.ContainsAny(name, `\ `) {
		return &node{}
	}
	if n := z.nodes[name]; n != nil {
		return n
	}
	n := &node{}
	z.nodes[name] = n
	if _, parent, _ := strings.Cut(name, "."); parent != "" {
		z.ensureNode(parent)
	}
	return n
}

func (z *Zone) addNamespace(name string) {
	z.ensureNode(name + ".svc." + z.domain)
	z.ensureNode(name + ".pod." + z.domain)
}

func (n *node) sortRecords() {
	slices.SortFunc(n.addresses, netip.Addr.Compare)
	n.addresses = slices.Compact(n.addresses)
	slices.SortFunc(n.serviceRecords, func(a, b serviceRecord) int {
		return cmp.Or(strings.Compare(a.target, b.target), cmp.Compare(a.port, b.port))
	})
	n.serviceRecords = slices.Compact(n.serviceRecords)
	slices.Sort(n.pointers)
	n.pointers = slices.Compact(n.pointers)
}
