package zone

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/miekg/dns"
)

// family describes the reverse names of the addresses of one IP version.
type family struct {
	suffix string
	bytes  int // of an address
	bits   int // of an address, in each label
}

var (
	ipv4 = family{suffix: "in-addr.arpa.", bytes: 4, bits: 8}
	ipv6 = family{suffix: "ip6.arpa.", bytes: 16, bits: 4}
)

// suffixLabels is the number of labels of both suffixes.
const suffixLabels = 2

func familyOf(a netip.Addr) family {
	if a.Is4() {
		return ipv4
	}
	return ipv6
}

// reverseName returns the name of the PTR record of an address.
func reverseName(a netip.Addr) string {
	var b strings.Builder
	for _, octet := range slices.Backward(a.AsSlice()) {
		if a.Is4() {
			b.WriteString(strconv.Itoa(int(octet)) + ".")
			continue
		}
		b.WriteString(strconv.FormatInt(int64(octet&0xf), 16) + "." + strconv.FormatInt(int64(octet>>4), 16) + ".")
	}
	return b.String() + familyOf(a).suffix
}

// reverseApex returns the reverse zone of the network in which the name is: the name with the fewest
// labels that is entirely inside of the network. A network whose length is not that of labels
// consists of several zones: 10.96.0.0/12 of 96.10.in-addr.arpa to 111.10.in-addr.arpa.
func reverseApex(name string, network netip.Prefix) (apex string, ok bool) {
	f := familyOf(network.Addr())
	if name != f.suffix && !strings.HasSuffix(name, "."+f.suffix) {
		return "", false
	}
	labels := dns.SplitDomainName(name)
	first := len(labels) - suffixLabels - (network.Bits()+f.bits-1)/f.bits
	if first < 0 {
		return "", false
	}
	labels = labels[first:]
	address, ok := f.parseLabels(labels[:len(labels)-suffixLabels])
	if !ok || !network.Contains(address) {
		return "", false
	}
	return strings.Join(labels, ".") + ".", true
}

// parseLabels returns the first address of the network that the labels of a reverse name denote.
func (f family) parseLabels(labels []string) (netip.Addr, bool) {
	raw := make([]byte, f.bytes)
	for i, label := range labels {
		value, err := strconv.ParseUint(label, f.base(), f.bits)
		if err != nil || strconv.FormatUint(value, f.base()) != label {
			return netip.Addr{}, false
		}
		bit := f.bits * (len(labels) - 1 - i)
		raw[bit/8] |= byte(value) << (8 - f.bits - bit%8)
	}
	return netip.AddrFromSlice(raw)
}

// base returns the base of the numbers in the labels.
func (f family) base() int {
	if f.bits == 8 {
		return 10
	}
	return 16
}
