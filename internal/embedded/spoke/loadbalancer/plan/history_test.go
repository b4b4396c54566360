package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"hotspare.io/hotspare/internal/condition"
)

// A computer is simulated: its clusters, which have the same few addresses to choose from, and another
// program.
type computer struct {
	t        *testing.T
	random   *rand.Rand
	now      time.Time
	clusters []*simulatedCluster
	// sockets are who listens on a port of an address. The other program can also listen at all
	// addresses: the invalid one.
	sockets map[socket]string
	// denied are ports that the system denies.
	denied map[Port]bool
	log    []string
}

type socket struct {
	address netip.Addr
	port    Port
}

const program = "another program"

// simulatedCluster is the API of a cluster, and the process that executes the plans.
type simulatedCluster struct {
	name      string
	services  map[types.NamespacedName]*Service
	listening map[types.NamespacedName]Listening
	failures  map[types.NamespacedName]Failure
}

var simulatedPool = netip.MustParsePrefix("127.128.0.0/27")

func newComputer(t *testing.T, seed uint64) *computer {
	t.Helper()
	c := &computer{t: t, random: rand.New(rand.NewPCG(seed, 1)), now: noon, sockets: map[socket]string{}, denied: map[Port]bool{}}
	for _, name := range []string{"one", "other"} {
		c.clusters = append(c.clusters, &simulatedCluster{
			name: name, services: map[types.NamespacedName]*Service{},
			listening: map[types.NamespacedName]Listening{}, failures: map[types.NamespacedName]Failure{},
		})
	}
	return c
}

func (c *computer) logf(format string, arguments ...any) {
	c.log = append(c.log, fmt.Sprintf(format, arguments...))
}

func (c *computer) fatalf(format string, arguments ...any) {
	c.t.Helper()
	c.t.Fatalf("%s\nthe history:\n%s", fmt.Sprintf(format, arguments...), strings.Join(c.log, "\n"))
}

// cause returns why the port of the address cannot be listened on; "" if it can.
func (c *computer) cause(a netip.Addr, p Port) Cause {
	if c.denied[p] {
		return Denied
	}
	_, used := c.sockets[socket{a, p}]
	_, usedEverywhere := c.sockets[socket{netip.Addr{}, p}]
	if used || usedEverywhere {
		return InUse
	}
	return ""
}

func (c *simulatedCluster) owner(key types.NamespacedName) string { return c.name + "/" + key.Name }

func (c *computer) snapshot(of *simulatedCluster) Snapshot {
	s := Snapshot{Now: c.now, Cluster: of.name, Pool: simulatedPool, Listening: of.listening, Failures: of.failures}
	for _, service := range of.services {
		s.Services = append(s.Services, *service)
	}
	return s
}

// decide checks that the order of the lists does not matter.
func (c *computer) decide(of *simulatedCluster) Plan {
	s := c.snapshot(of)
	p := Decide(s)
	c.random.Shuffle(len(s.Services), func(i, j int) { s.Services[i], s.Services[j] = s.Services[j], s.Services[i] })
	for i := range s.Services {
		s.Services[i].Ports = slices.Clone(s.Services[i].Ports)
		slices.Reverse(s.Services[i].Ports)
	}
	s.Listening = maps.Clone(s.Listening)
	for key, l := range s.Listening {
		l.Ports = slices.Clone(l.Ports)
		slices.Reverse(l.Ports)
		s.Listening[key] = l
	}
	if again := Decide(s); again.String() != p.String() {
		c.fatalf("another order gives another plan:\n%s\ninstead of:\n%s", again, p)
	}
	return p
}

// reconcile executes plans until there is nothing to do. Each status that is written causes another pass.
func (c *computer) reconcile(of *simulatedCluster) {
	for n := 0; ; n++ {
		p := c.decide(of)
		if len(p.Steps) == 0 {
			return
		}
		if n > 3*len(of.services)+3 {
			c.fatalf("the plans of cluster %s do not end: %s", of.name, p)
		}
		c.executeListen(of, p)
		if !p.HasListen() {
			c.executeReports(of, p)
		}
	}
}

func (c *computer) executeListen(of *simulatedCluster, p Plan) {
	for _, s := range p.Steps {
		switch s.Verb {
		case StopListening:
			c.logf("%s: %s", of.name, s)
			c.stop(of, s.Service, s.Ports)
		case Listen:
			c.logf("%s: %s", of.name, s)
			c.checkFirstAddress(of, s)
			c.listen(of, s)
		case Report:
		}
	}
}

// checkFirstAddress checks that a Service that has an address tries it first, unless it asks for another.
func (c *computer) checkFirstAddress(of *simulatedCluster, s Step) {
	before := of.services[s.Service].Recorded
	requested, isRequested := of.services[s.Service].requestedAddress()
	if isRequested && s.Addresses[0] != requested || !isRequested && before.IsValid() && s.Addresses[0] != before {
		c.fatalf("%s: it had %s", s, before)
	}
	for _, a := range s.Addresses {
		if !isAllowed(a) {
			c.fatalf("%s: %s cannot be a Service's", s, a)
		}
	}
}

func (c *computer) stop(of *simulatedCluster, key types.NamespacedName, ports []Port) {
	l := of.listening[key]
	for _, p := range ports {
		if c.sockets[socket{l.Address, p}] != of.owner(key) {
			c.fatalf("%s of %s is not listened on for %s", p, l.Address, key)
		}
		delete(c.sockets, socket{l.Address, p})
	}
	l.Ports = slices.DeleteFunc(slices.Clone(l.Ports), func(p Port) bool { return slices.Contains(ports, p) })
	of.listening[key] = l
	if len(l.Ports) == 0 {
		delete(of.listening, key)
	}
}

func (c *computer) listen(of *simulatedCluster, s Step) {
	old := of.listening[s.Service]
	failure := Failure{Want: s.Want, Count: 1, Time: c.now}
	if f := of.failures[s.Service]; f.Want == s.Want {
		failure.Count = f.Count + 1
	}
	for _, a := range s.Addresses {
		var cause Cause
		for _, p := range s.Ports {
			if a == old.Address && slices.Contains(old.Ports, p) {
				continue
			}
			if cause = c.cause(a, p); cause != "" {
				if failure.Cause == "" {
					failure.Cause, failure.Address, failure.Port = cause, a, p
				}
				break
			}
		}
		if cause == "" {
			c.stop(of, s.Service, old.Ports)
			for _, p := range s.Ports {
				c.sockets[socket{a, p}] = of.owner(s.Service)
			}
			of.listening[s.Service] = Listening{Address: a, Ports: s.Ports}
			delete(of.failures, s.Service)
			return
		}
	}
	of.failures[s.Service] = failure
}

func (c *computer) executeReports(of *simulatedCluster, p Plan) {
	for _, s := range p.Steps {
		if s.Verb == Report {
			c.logf("%s: %s", of.name, s)
			service := of.services[s.Service]
			service.Recorded, service.Condition, service.Exact = s.Address, s.Condition, true
			service.Reported = s.Address.IsValid() || s.Condition != (condition.Value{})
		}
	}
}

// act does something at random.
func (c *computer) act() {
	of := c.clusters[c.random.IntN(len(c.clusters))]
	key := types.NamespacedName{Namespace: "n", Name: string(rune('a' + c.random.IntN(6)))}
	service := of.services[key]
	switch n := c.random.IntN(20); {
	case n < 6 && service == nil:
		of.services[key] = &Service{Key: key, Created: c.now, Wanted: true, Exact: true, Ports: c.randomPorts(), Requested: c.randomRequest()}
		c.logf("%s: service %s is created: %v %s", of.name, key.Name, of.services[key].Ports, of.services[key].Requested)
	case n < 8 && service != nil:
		delete(of.services, key)
		c.logf("%s: service %s is deleted", of.name, key.Name)
	case n < 10 && service != nil:
		service.Ports = c.randomPorts()
		c.logf("%s: service %s has ports %v", of.name, key.Name, service.Ports)
	case n < 12 && service != nil:
		service.Requested = c.randomRequest()
		c.logf("%s: service %s requests %q", of.name, key.Name, service.Requested)
	case n < 13 && service != nil:
		service.Wanted = !service.Wanted
		if !service.Wanted { // the API server does the same
			service.Recorded, service.Exact = netip.Addr{}, true
		}
		c.logf("%s: service %s is wanted: %t", of.name, key.Name, service.Wanted)
	case n < 15:
		c.restart(of)
	case n < 17:
		c.toggleProgram()
	case n < 18:
		p := c.randomPorts()[0]
		c.denied[p] = !c.denied[p]
		c.logf("%s is denied: %t", p, c.denied[p])
	default:
		c.now = c.now.Add(time.Duration(c.random.IntN(20)) * time.Second)
		c.logf("it is %s", c.now.Format(time.TimeOnly))
	}
}

// restart ends the process of a cluster and its sockets. Other programs may run before it starts again.
func (c *computer) restart(of *simulatedCluster) {
	c.logf("%s: the process is killed", of.name)
	for key, l := range of.listening {
		c.stop(of, key, l.Ports)
	}
	clear(of.failures)
	if c.random.IntN(2) == 0 {
		c.toggleProgram()
	}
}

// toggleProgram starts or stops another program on a port.
func (c *computer) toggleProgram() {
	s := socket{port: c.randomPorts()[0]}
	if c.random.IntN(3) > 0 {
		s.address = c.randomAddress()
	}
	switch owner, used := c.sockets[s]; {
	case owner == program:
		delete(c.sockets, s)
		c.logf("another program stops on %s of %s", s.port, s.address)
	case !used && (s.address.IsValid() || !c.isUsed(s.port)):
		c.sockets[s] = program
		c.logf("another program starts on %s of %s", s.port, s.address)
	}
}

func (c *computer) isUsed(p Port) bool {
	for s := range c.sockets {
		if s.port == p {
			return true
		}
	}
	return false
}

func (c *computer) randomPorts() []Port {
	all := []Port{{80, corev1.ProtocolTCP}, {443, corev1.ProtocolTCP}, {80, corev1.ProtocolUDP}, {8080, corev1.ProtocolTCP}}
	c.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:1+c.random.IntN(len(all))]
}

func (c *computer) randomAddress() netip.Addr {
	return netip.AddrFrom4([4]byte{127, 128, 0, byte(c.random.IntN(32))})
}

func (c *computer) randomRequest() string {
	switch c.random.IntN(8) {
	case 0, 1:
		return c.randomAddress().String()
	case 2:
		return []string{"127.0.0.1", "10.1.2.3", "127.9.9.9"}[c.random.IntN(3)]
	}
	return ""
}

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
		for _, of := range c.clusters {
			c.reconcile(of)
			c.check(of)
			c.checkAll(of)
			assigned += len(of.listening)
		}
	}
	if assigned < 150 {
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
