package zone

import (
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

func TestReverseApex(t *testing.T) {
	for name, c := range map[string]struct{ name, network, want string }{
		"a network of whole labels":           {"1.2.244.10.in-addr.arpa.", "10.244.0.0/16", "244.10.in-addr.arpa."},
		"the name of the network":             {"244.10.in-addr.arpa.", "10.244.0.0/16", "244.10.in-addr.arpa."},
		"the name above":                      {"10.in-addr.arpa.", "10.244.0.0/16", ""},
		"another network":                     {"1.2.243.10.in-addr.arpa.", "10.244.0.0/16", ""},
		"the first zone of several":           {"1.0.96.10.in-addr.arpa.", "10.96.0.0/12", "96.10.in-addr.arpa."},
		"the last zone of several":            {"1.0.111.10.in-addr.arpa.", "10.96.0.0/12", "111.10.in-addr.arpa."},
		"the zone after the last":             {"1.0.112.10.in-addr.arpa.", "10.96.0.0/12", ""},
		"a network that is not its first":     {"1.0.96.10.in-addr.arpa.", "10.99.1.2/12", "96.10.in-addr.arpa."},
		"a single address":                    {"1.0.96.10.in-addr.arpa.", "10.96.0.1/32", "1.0.96.10.in-addr.arpa."},
		"a part of an octet":                  {"129.0.96.10.in-addr.arpa.", "10.96.0.128/25", "129.0.96.10.in-addr.arpa."},
		"the other part of the octet":         {"127.0.96.10.in-addr.arpa.", "10.96.0.128/25", ""},
		"a leading zero":                      {"1.0.096.10.in-addr.arpa.", "10.96.0.0/12", ""},
		"a number that is no octet":           {"1.0.352.10.in-addr.arpa.", "10.96.0.0/12", ""},
		"a word":                              {"a.b.c.d.in-addr.arpa.", "10.96.0.0/12", ""},
		"a word below the zone":               {"a.b.96.10.in-addr.arpa.", "10.96.0.0/12", "96.10.in-addr.arpa."},
		"the suffix":                          {"in-addr.arpa.", "10.96.0.0/12", ""},
		"a name with that end":                {"96.10.xin-addr.arpa.", "10.96.0.0/12", ""},
		"IPv6":                                {"8.b.d.0.1.0.0.2.ip6.arpa.", "2001:db8::/32", "8.b.d.0.1.0.0.2.ip6.arpa."},
		"below a network of IPv6":             {"f.8.b.d.0.1.0.0.2.ip6.arpa.", "2001:db8::/32", "8.b.d.0.1.0.0.2.ip6.arpa."},
		"IPv6 with a part of a digit":         {"9.b.d.0.1.0.0.2.ip6.arpa.", "2001:db8::/31", "9.b.d.0.1.0.0.2.ip6.arpa."},
		"IPv6 with the other part":            {"a.b.d.0.1.0.0.2.ip6.arpa.", "2001:db8::/31", ""},
		"a letter that is no digit":           {"g.b.d.0.1.0.0.2.ip6.arpa.", "2001:db8::/31", ""},
		"two digits":                          {"08.b.d.0.1.0.0.2.ip6.arpa.", "2001:db8::/31", ""},
		"the numbers of IPv4 under IPv6":      {"1.0.96.10.ip6.arpa.", "10.96.0.0/12", ""},
		"the digits of IPv6 under IPv4":       {"8.b.d.0.1.0.0.2.in-addr.arpa.", "2001:db8::/32", ""},
		"a label that contains a dot escaped": {`1\.0.96.10.in-addr.arpa.`, "10.96.0.0/12", "96.10.in-addr.arpa."},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := reverseApex(c.name, netip.MustParsePrefix(c.network))
			if got != c.want || ok != (c.want != "") {
				t.Errorf("%s in %s: got %q, %t, want %q", c.name, c.network, got, ok, c.want)
			}
		})
	}
}

// The reverse name of an address is what package dns says, and is in exactly the networks that contain the
// address.
func TestReverseNamesOfRandomAddresses(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 1000 {
		a, network := randomAddress(random), randomNetwork(random)
		if random.IntN(2) == 0 {
			network, _ = a.Prefix(1 + random.IntN(a.BitLen()))
		}
		name := reverseName(a)
		if want, err := dns.ReverseAddr(a.String()); err != nil || name != want {
			t.Fatalf("%s: got %s, want %s, %v", a, name, want, err)
		}
		apex, ok := reverseApex(name, network)
		if ok != network.Contains(a) {
			t.Fatalf("%s in %s: %t", a, network, ok)
		}
		if ok && name != apex && !strings.HasSuffix(name, "."+apex) {
			t.Fatalf("%s is not below %s", name, apex)
		}
	}
}

func randomAddress(random *rand.Rand) netip.Addr {
	raw := make([]byte, []int{4, 16}[random.IntN(2)])
	for i := range raw {
		raw[i] = byte(random.Uint32())
	}
	raw[0] |= 1 // no address of IPv4 in IPv6
	a, _ := netip.AddrFromSlice(raw)
	return a
}

func randomNetwork(random *rand.Rand) netip.Prefix {
	a := randomAddress(random)
	p, _ := a.Prefix(1 + random.IntN(a.BitLen()))
	return p
}
