package plan

import (
	"encoding/binary"
	"hash/fnv"
	"iter"
	"net/netip"

	"k8s.io/apimachinery/pkg/types"
)

// DefaultPool contains the addresses that are chosen. No program that we know of listens there.
var DefaultPool = netip.MustParsePrefix("127.128.0.0/9")

var (
	// loopback contains the addresses that a Service can have.
	loopback = netip.MustParsePrefix("127.0.0.0/8")
	// programs contains the addresses at which the programs of this computer listen: 127.0.0.1,
	// systemd-resolved's 127.0.0.53, Debian's 127.0.1.1. No Service gets them: its cluster's users
	// could take the place of a program that is not running at the moment.
	programs = netip.MustParsePrefix("127.0.0.0/16")
)

// isAllowed reports whether a Service can have the address.
func isAllowed(a netip.Addr) bool {
	return loopback.Contains(a) && !programs.Contains(a) && isHost(a)
}

// isHost reports whether the address is not, in the smallest usual network, that of the network or
// its broadcast address. The kernel sends to 127.255.255.255 as a broadcast.
func isHost(a netip.Addr) bool {
	last := a.As4()[3]
	return last != 0 && last != 255
}

// addressesOf returns the addresses of a pool, each once, in the order in which a Service tries them.
func addressesOf(pool netip.Prefix, cluster string, service types.NamespacedName) iter.Seq[netip.Addr] {
	base := binary.BigEndian.Uint32(pool.Masked().Addr().AsSlice())
	size := uint32(1) << (32 - pool.Bits())
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(cluster + "/" + service.String())) // it does not fail
	start := uint32(mix(hash.Sum64()) % uint64(size))
	return func(yield func(netip.Addr) bool) {
		for n := range size {
			var raw [4]byte
			binary.BigEndian.PutUint32(raw[:], base+(start+n)%size)
			if a := netip.AddrFrom4(raw); isHost(a) && !yield(a) {
				return
			}
		}
	}
}

// mix spreads the differences of similar names over all bits (the finalizer of MurmurHash3): FNV
// changes only the lower bits for the last characters.
func mix(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
