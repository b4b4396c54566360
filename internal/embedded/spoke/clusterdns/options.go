package clusterdns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"hotspare.io/hotspare/internal/embedded/spoke/clusterdns/zone"
)

// DefaultDomain is the domain of a cluster whose Options have none.
const DefaultDomain = "cluster.local"

const dnsPort = 53

// Options describe a server.
type Options struct {
	// Domain is the domain of the cluster; DefaultDomain if it is empty.
	Domain string
	// CIDRs are the networks of the cluster's Services and pods. The server answers all reverse
	// queries for them, and forwards those for other addresses, except for addresses of endpoints.
	CIDRs []netip.Prefix
	// Source provides the objects of the cluster. Run sets it.
	Source Source
	// Upstreams are the resolvers that are asked for names outside of the cluster, in this order: IP
	// addresses, with a port if it is not 53. Without any, the server refuses such queries.
	Upstreams []string
	// ResolvConf is the path of a file such as /etc/resolv.conf, whose resolvers are asked after Upstreams. It is read
	// again when it has changed. None is read if the path is empty.
	ResolvConf string
	// Addresses are the addresses at which clients reach the server, in addition to those of its
	// sockets, such as the ClusterIP of its Service. An upstream at one of them is not used: the
	// server would ask itself.
	Addresses []netip.AddrPort
	// Now returns the time; time.Now if it is nil.
	Now func() time.Time
	// Dial connects to an upstream; a net.Dialer does if it is nil. The network is udp or tcp.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Source provides the objects of a cluster. Several goroutines may call it.
type Source interface {
	// Generation returns a number that changes with the objects, and false until all have been read
	// for the first time. It does not block.
	Generation() (generation uint64, synced bool)
	// Objects returns the objects, which the caller does not change.
	Objects() zone.Snapshot
}

// withDefaults returns the options with defaults, or an error that names all invalid fields.
func (o Options) withDefaults() (Options, error) {
	if o.Domain == "" {
		o.Domain = DefaultDomain
	}
	o.Domain = strings.ToLower(strings.TrimSuffix(o.Domain, "."))
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Dial == nil {
		o.Dial = new(net.Dialer).DialContext
	}
	errs := []error{validateDomain(o.Domain)}
	if o.Source == nil {
		errs = append(errs, errors.New("options of the DNS server: source: is not set: set the source of the cluster's objects"))
	}
	for _, c := range o.CIDRs {
		errs = append(errs, validateCIDR(c))
	}
	return o, errors.Join(errs...)
}

func validateDomain(domain string) error {
	if reasons := validation.IsDNS1123Subdomain(domain); len(reasons) > 0 {
		return fmt.Errorf("options of the DNS server: domain: %q is not a domain such as %s: %s", domain, DefaultDomain, strings.Join(reasons, "; "))
	}
	if len(domain) > zone.MaxDomainLength {
		return fmt.Errorf("options of the DNS server: domain: %q has %d characters: set one with at most %d, so that all names fit into DNS",
			domain, len(domain), zone.MaxDomainLength)
	}
	return nil
}

func validateCIDR(c netip.Prefix) error {
	switch {
	case !c.IsValid() || c.Addr().Is4In6():
		return fmt.Errorf("options of the DNS server: CIDRs: %q is not a network such as 10.96.0.0/16: set the network of the Services or pods", c)
	case c.Bits() == 0:
		return fmt.Errorf("options of the DNS server: CIDRs: %q contains all addresses: set the network of the Services or pods", c)
	}
	return nil
}

// parseUpstreams returns the addresses of the upstreams, or an error that names all invalid ones.
func parseUpstreams(texts []string) ([]netip.AddrPort, error) {
	var out []netip.AddrPort
	var errs []error
	for _, text := range texts {
		a, err := parseUpstream(text)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out = append(out, a)
	}
	return out, errors.Join(errs...)
}

func parseUpstream(text string) (netip.AddrPort, error) {
	address, err := netip.ParseAddr(text)
	port := uint16(dnsPort)
	if err != nil {
		var both netip.AddrPort
		both, err = netip.ParseAddrPort(text)
		address, port = both.Addr(), both.Port()
	}
	if err != nil || port == 0 || address.IsUnspecified() || address.IsMulticast() {
		return netip.AddrPort{}, fmt.Errorf(
			"options of the DNS server: upstreams: %q is not the address of a resolver: set an IP address, and a port if it is not %d, such as 192.0.2.1 or 192.0.2.1:5353",
			text, dnsPort)
	}
	return netip.AddrPortFrom(address.Unmap(), port), nil
}
