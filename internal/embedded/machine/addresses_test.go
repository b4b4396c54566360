package machine

import (
	"net/netip"
	"testing"
)

func TestAddressesOfWorkersThatRunContainersDoNotOverlap(t *testing.T) {
	used := []netip.Prefix{netip.PrefixFrom(Gateway, 32)}
	for index := range MaxIndex + 1 {
		c := Config{Role: Worker, Containers: true, Index: index}
		for _, p := range []netip.Prefix{netip.PrefixFrom(c.NodeAddress(), 32), c.PodRange()} {
			if !PodNetwork.Contains(p.Addr()) || !PodNetwork.Contains(lastOf(p)) {
				t.Errorf("index %d: %s is not in %s", index, p, PodNetwork)
			}
			if p.Masked() != p {
				t.Errorf("index %d: %s is not the start of a range", index, p)
			}
			for _, o := range used {
				if o.Overlaps(p) {
					t.Fatalf("index %d: %s overlaps %s", index, p, o)
				}
			}
			used = append(used, p)
		}
	}
}

func TestMachinesThatRunNoContainersHaveTheLoopbackAddress(t *testing.T) {
	for _, c := range []Config{
		{Role: Worker, Index: 3},
		{Role: ControlPlane, Containers: true},
		{Role: ControlPlane},
	} {
		if got := c.NodeAddress().String(); got != Address || c.RunsContainers() {
			t.Errorf("%+v has the address %s and runs containers: %t", c, got, c.RunsContainers())
		}
	}
	c := Config{Role: Worker, Containers: true, Index: 3}
	if got := c.NodeAddresses()[0].Address; got != "10.128.0.5" || c.PodRange().String() != "10.128.8.0/23" {
		t.Errorf("the worker has the address %s and the pods %s", got, c.PodRange())
	}
}

func lastOf(p netip.Prefix) netip.Addr {
	a := p.Addr().As4()
	for bit := p.Bits(); bit < 32; bit++ {
		a[bit/8] |= 0x80 >> (bit % 8)
	}
	return netip.AddrFrom4(a)
}
