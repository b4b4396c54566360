package machine

import "net/netip"

// Address is the address of all machines, except workers that run containers.
const Address = "127.0.0.1"

// MaxIndex is the highest Index of a worker that runs containers.
const MaxIndex = 249

// PodNetwork contains the addresses of the nodes that run containers, and of their pods. It is the
// same in each cluster, because clusters are not connected; and it is OpenShift's default.
var PodNetwork = netip.MustParsePrefix("10.128.0.0/14")

// Gateway is the address at which nodes and pods reach the control plane.
var Gateway = netip.MustParseAddr("10.128.0.1")

// Ports of the gateway.
const (
	// GatewayAPIPort is where the control plane serves the API.
	GatewayAPIPort = 6443
	// GatewayImagePort is where the control plane serves this computer's images, as a registry.
	GatewayImagePort = 5000
)

// podRangeBits is the length of the prefix of a node's pods, as in OpenShift. The first such range
// of PodNetwork has the addresses of the gateway and the nodes.
const podRangeBits = 23

// RunsContainers reports whether the machine runs the containers of pods.
func (c Config) RunsContainers() bool { return c.Containers && c.Role == Worker }

// NodeAddress returns the address of the machine and of its node.
func (c Config) NodeAddress() netip.Addr {
	if !c.RunsContainers() {
		return netip.MustParseAddr(Address)
	}
	base := PodNetwork.Addr().As4()
	base[3] = byte(2 + c.Index) // after the network's address and the gateway
	return netip.AddrFrom4(base)
}

// IsNodeAddress reports whether an address is that of a worker that runs containers. Pods have others.
func IsNodeAddress(a netip.Addr) bool {
	nodes := netip.PrefixFrom(PodNetwork.Addr(), podRangeBits)
	return nodes.Contains(a) && a != Gateway && a != PodNetwork.Addr()
}

// PodRange returns the addresses of the pods of a machine that runs containers.
func (c Config) PodRange() netip.Prefix {
	base := PodNetwork.Addr().As4()
	offset := (c.Index + 1) << (32 - podRangeBits) // at most 250 * 512: it fits into the lower three bytes
	base[1] += byte(offset >> 16)
	base[2] += byte(offset >> 8)
	return netip.PrefixFrom(netip.AddrFrom4(base), podRangeBits)
}
