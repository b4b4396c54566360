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
