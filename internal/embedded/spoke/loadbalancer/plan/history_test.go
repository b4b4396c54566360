package plan

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// check checks what must hold after each pass of a cluster.
func (c *computer) check(of *simulatedCluster) {
	c.t.Helper()
	for s, owner := range c.sockets { // a map has one owner for each address and port
		name, found := strings.CutPrefix(owner, of.name+"/")
		if !found {
			continue
		}
		service := of.services[types.NamespacedName{Namespace: "n", Name: name}]
		if service == nil || !service.Wanted || !slices.Contains(service.Ports, s.port) || service.Recorded != s.address {
			c.fatalf("%s listens on %s of %s, but is %+v", owner, s.port, s.address, service)
		}
	}
	for key, service := range of.services {
		if !service.Recorded.IsValid() {
			continue
		}
		listens := 0
		for _, p := range service.Ports {
			if c.sockets[socket{service.Recorded, p}] == of.owner(key) {
				listens++
			}
		}
		if listens == 0 || service.Condition.IsTrue() && listens != len(service.Ports) {
			c.fatalf("the status of %s says %s, %+v, but %d of its ports are listened on", of.owner(key), service.Recorded, service.Condition, listens)
		}
	}
}

// checkAll checks that each Service that can have an address has one, once retries are over.
func (c *computer) checkAll(of *simulatedCluster) {
	c.t.Helper()
	for key, s := range of.services {
		if !s.Wanted || s.Condition.IsTrue() {
			continue
		}
		if requested, ok := s.requestedAddress(); ok {
			if isAllowed(requested) && !c.isOwned(of, s, requested) && !c.isBlocked(of, s, requested) {
				c.fatalf("%s could have %s, but is %+v", of.owner(key), requested, s.Condition)
			}
			continue
		}
		blocked := 0 // of the addresses that may be tried
		for a := range addressesOf(simulatedPool, of.name, key) {
			if !c.isOwned(of, s, a) && c.isBlocked(of, s, a) {
				blocked++
			}
		}
		if blocked < maxCandidates {
			c.fatalf("%s could have an address, but is %+v", of.owner(key), s.Condition)
		}
	}
}

// isOwned reports whether another Service of the cluster has or requests the address.
func (c *computer) isOwned(of *simulatedCluster, s *Service, a netip.Addr) bool {
	for key, other := range of.services {
		if key != s.Key && other.Wanted && (other.Recorded == a || other.Requested == a.String()) {
			return true
		}
	}
	return false
}

// isBlocked reports whether a port of the Service cannot be listened on at the address.
func (c *computer) isBlocked(of *simulatedCluster, s *Service, a netip.Addr) bool {
	return slices.ContainsFunc(s.Ports, func(p Port) bool {
		return c.cause(a, p) != "" && c.sockets[socket{a, p}] != of.owner(s.Key)
	})
}

// TestHistories tests what must hold in random histories of two clusters on one computer.
func TestHistories(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	assigned := 0
	for n := range uint64(150) {
		c := newComputer(t, seed+n)
		c.logf("seed %d", seed+n)
		for range 60 {
			c.act()
			of := c.clusters[c.random.IntN(len(c.clusters))]
			c.reconcile(of)
			c.check(of)
		}
		c.now = c.now.Add(maxRetryDelay)
		for _, of := range c.clusters { // a Service may take an address that another one has tried before
			c.reconcile(of)
		}
		c.now = c.now.Add(maxRetryDelay)
		for _, of := range c.clusters {
			c.reconcile(of)
			c.check(of)
			c.checkAll(of)
			assigned += len(of.listening)
		}
	}
	if assigned < 75 { // about 200, with a standard deviation of 16
		t.Errorf("only %d Services had an address at the end: the histories test too little", assigned)
	}
}

// TestAnAddressStaysWhileItIsFree restarts the process of a cluster again and again, while the Services
// and programs of others come and go at all other addresses.
func TestAnAddressStaysWhileItIsFree(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	c := newComputer(t, seed)
	own, other := c.clusters[0], c.clusters[1]
	for n := range 5 {
		key := types.NamespacedName{Namespace: "n", Name: string(rune('a' + n))}
		own.services[key] = &Service{Key: key, Created: c.now, Wanted: true, Exact: true, Ports: c.randomPorts()}
	}
	c.reconcile(own)
	given := map[types.NamespacedName]netip.Addr{}
	for key, s := range own.services {
		given[key] = s.Recorded
	}
	for range 200 {
		for key, l := range own.listening {
			c.stop(own, key, l.Ports)
		}
		newcomer := types.NamespacedName{Namespace: "n", Name: "newcomer"}
		own.services[newcomer] = &Service{Key: newcomer, Created: c.now.Add(-time.Hour), Wanted: true, Exact: true, Ports: c.randomPorts()}
		c.reconcile(own)
		for key, a := range given {
			if own.services[key].Recorded != a {
				c.fatalf("%s had %s", own.owner(key), a)
			}
		}
		delete(own.services, newcomer)
		foreign := types.NamespacedName{Namespace: "n", Name: string(rune('a' + c.random.IntN(6)))}
		other.services[foreign] = &Service{Key: foreign, Created: c.now, Wanted: true, Exact: true, Ports: c.randomPorts()}
		c.reconcile(own)
		c.reconcile(other)
	}
}
