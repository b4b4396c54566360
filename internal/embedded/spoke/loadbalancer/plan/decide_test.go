package plan

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// parseSnapshot returns a snapshot whose pool is 127.128.0.0/29, from words of Services, which ";" separates:
//
//	web ports=80,u53 ip=127.9.9.9 recorded=127.128.0.1 at=127.128.0.1:80,u53 failed=InUse/1/0s
//
// A Service is older than those with names that follow, and its status is exact. The failure's words are
// its cause, count and age. A port with u is UDP's, one with s SCTP's.
func parseSnapshot(t *testing.T, text string) Snapshot {
	t.Helper()
	s := Snapshot{
		Now: noon, Cluster: "c", Pool: netip.MustParsePrefix("127.128.0.0/29"),
		Listening: map[types.NamespacedName]Listening{}, Failures: map[types.NamespacedName]Failure{},
	}
	for part := range strings.SplitSeq(text, ";") {
		words := strings.Fields(part)
		if len(words) == 0 {
			continue
		}
		key := types.NamespacedName{Namespace: "n", Name: words[0]}
		service := Service{Key: key, Created: noon.Add(time.Duration(words[0][0]) * time.Second), Wanted: true, Exact: true}
		exists := true
		for _, word := range words[1:] {
			name, value, _ := strings.Cut(word, "=")
			switch name {
			case "ports":
				service.Ports = parsePorts(t, value)
			case "ip":
				service.Requested = value
			case "recorded":
				service.Recorded = netip.MustParseAddr(value)
			case "at":
				address, ports, _ := strings.Cut(value, ":")
				s.Listening[key] = Listening{Address: netip.MustParseAddr(address), Ports: parsePorts(t, ports)}
			case "failed":
				f := strings.Split(value, "/")
				count, err := strconv.Atoi(f[1])
				age, ageErr := time.ParseDuration(f[2])
				if err != nil || ageErr != nil {
					t.Fatal(err, ageErr)
				}
				s.Failures[key] = Failure{
					Want: service.normalize().want(), Address: netip.MustParseAddr("127.128.0.7"), Port: service.Ports[0],
					Cause: Cause(f[0]), Detail: "too many files", Count: count, Time: noon.Add(-age),
				}
			case "unwanted":
				service.Wanted = false
			case "reported":
				service.Reported = true
			case "inexact":
				service.Exact = false
			case "ready":
				service.Condition = listeningCondition(service.normalize(), s.Listening[key])
			case "gone":
				exists = false
			default:
				t.Fatalf("unknown word %q", word)
			}
		}
		if exists {
			s.Services = append(s.Services, service)
		}
	}
	return s
}

func parsePorts(t *testing.T, text string) []Port {
	t.Helper()
	var out []Port
	for word := range strings.SplitSeq(text, ",") {
		protocol := corev1.ProtocolTCP
		switch word[0] {
		case 'u':
			protocol = corev1.ProtocolUDP
		case 's':
			protocol = corev1.ProtocolSCTP
		}
		number, err := strconv.ParseUint(strings.TrimLeft(word, "us"), 10, 16)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, Port{Number: uint16(number), Protocol: protocol})
	}
	return out
}

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"nothing is to be done without Services":           {"", ""},
		"a new Service tries addresses":                    {"web ports=80", "listen for n/web: TCP port 80 at 127.128.0.5 or 127.128.0.6 or 127.128.0.7 or 127.128.0.1"},
		"another one tries others":                         {"web ports=80; api ports=80", "listen for n/api: TCP port 80 at 127.128.0.5 or 127.128.0.6 or 127.128.0.7 or 127.128.0.1\nlisten for n/web: TCP port 80 at 127.128.0.2 or 127.128.0.3 or 127.128.0.4"},
		"the address is reported":                          {"web ports=80 at=127.128.0.4:80", "report n/web: 127.128.0.4, Listening"},
		"and then nothing is to be done":                   {"web ports=80 at=127.128.0.4:80 recorded=127.128.0.4 ready", ""},
		"a status that another changed is corrected":       {"web ports=80 at=127.128.0.4:80 recorded=127.128.0.4 ready inexact", "report n/web: 127.128.0.4, Listening"},
		"a wrong address too":                              {"web ports=80 at=127.128.0.4:80 recorded=127.128.0.9 ready", "report n/web: 127.128.0.4, Listening"},
		"after a restart the recorded address comes first": {"web ports=80 recorded=127.128.0.2 ready", "listen for n/web: TCP port 80 at 127.128.0.2 or 127.128.0.5 or 127.128.0.6 or 127.128.0.7"},
		"no other Service tries it":                        {"web ports=80 recorded=127.128.0.1; api ports=80", "listen for n/web: TCP port 80 at 127.128.0.1 or 127.128.0.5 or 127.128.0.6 or 127.128.0.7\nlisten for n/api: TCP port 80 at 127.128.0.2 or 127.128.0.3 or 127.128.0.4"},
		"the one that listens has it":                      {"web ports=80 at=127.128.0.1:80 recorded=127.128.0.1 ready; api ports=80 recorded=127.128.0.1", "listen for n/api: TCP port 80 at 127.128.0.5 or 127.128.0.6 or 127.128.0.7 or 127.128.0.2"},
		"of two with the same record the oldest has it":    {"api ports=80 recorded=127.128.0.1; web ports=80 recorded=127.128.0.1", "listen for n/api: TCP port 80 at 127.128.0.1 or 127.128.0.5 or 127.128.0.6 or 127.128.0.7\nlisten for n/web: TCP port 80 at 127.128.0.2 or 127.128.0.3 or 127.128.0.4"},
		"a record that no Service can have is ignored":     {"web ports=80 recorded=127.0.0.1", "listen for n/web: TCP port 80 at 127.128.0.5 or 127.128.0.6 or 127.128.0.7 or 127.128.0.1"},
		"nor is one of another network used":               {"web ports=80 recorded=192.168.1.7", "listen for n/web: TCP port 80 at 127.128.0.5 or 127.128.0.6 or 127.128.0.7 or 127.128.0.1"},
		"nor an IPv6 address":                              {"web ports=80 recorded=::ffff:127.1.1.1", "listen for n/web: TCP port 80 at 127.128.0.5 or 127.128.0.6 or 127.128.0.7 or 127.128.0.1"},

		"a further port is listened on at the same address": {"web ports=80,u53 at=127.128.0.2:80 recorded=127.128.0.2", "listen for n/web: TCP port 80, UDP port 53 at 127.128.0.2 or 127.128.0.5 or 127.128.0.6 or 127.128.0.7"},
		"a port that it has no more is not":                 {"web ports=80 at=127.128.0.2:80,443 recorded=127.128.0.2 ready", "stop listening for n/web: TCP port 443"},
		"another port keeps the address":                    {"web ports=443 at=127.128.0.2:80 recorded=127.128.0.2 ready", "stop listening for n/web: TCP port 80\nlisten for n/web: TCP port 443 at 127.128.0.2 or 127.128.0.5 or 127.128.0.6 or 127.128.0.7"},
		"also if the status is not in the cache yet":        {"web ports=443 at=127.128.0.2:80", "stop listening for n/web: TCP port 80\nlisten for n/web: TCP port 443 at 127.128.0.2 or 127.128.0.5 or 127.128.0.6 or 127.128.0.7"},
		"a Service that is gone keeps nothing":              {"web gone at=127.128.0.2:80,443", "stop listening for n/web: TCP port 80, TCP port 443"},
		"one of another type keeps nothing":                 {"web unwanted reported ports=80 at=127.128.0.2:80 recorded=127.128.0.2", "stop listening for n/web: TCP port 80\nreport n/web: nothing"},
		"what others report of their Services stays":        {"web unwanted ports=80 recorded=192.168.1.7", ""},
		"what one releases another gets in the same plan":   {"web gone at=127.128.0.2:80; api ports=80 ip=127.128.0.2", "stop listening for n/web: TCP port 80\nlisten for n/api: TCP port 80 at 127.128.0.2"},

		"the requested address is the only one":                 {"web ports=80 ip=127.9.9.9", "listen for n/web: TCP port 80 at 127.9.9.9"},
		"a Service moves to it":                                 {"web ports=80 ip=127.9.9.9 at=127.128.0.2:80 recorded=127.128.0.2 ready", "listen for n/web: TCP port 80 at 127.9.9.9"},
		"and stays when it requests none any more":              {"web ports=80 at=127.9.9.9:80 recorded=127.9.9.9 ready", ""},
		"after a restart too":                                   {"web ports=80 recorded=127.9.9.9 ready", "listen for n/web: TCP port 80 at 127.9.9.9 or 127.128.0.5 or 127.128.0.6 or 127.128.0.7"},
		"nobody chooses it":                                     {"web ports=80 ip=127.128.0.1; api ports=80", "listen for n/api: TCP port 80 at 127.128.0.5 or 127.128.0.6 or 127.128.0.7 or 127.128.0.2\nlisten for n/web: TCP port 80 at 127.128.0.1"},
		"the oldest gets what two request":                      {"web ports=80 ip=127.9.9.9; api ports=443 ip=127.9.9.9", "listen for n/api: TCP port 443 at 127.9.9.9\nreport n/web: AddressInUse"},
		"who has it keeps it":                                   {"web ports=80 at=127.9.9.9:80 recorded=127.9.9.9 ready; api ports=443 ip=127.9.9.9", "report n/api: AddressInUse"},
		"who had it before a restart gets it":                   {"web ports=80 recorded=127.9.9.9; api ports=443 ip=127.9.9.9", "listen for n/web: TCP port 80 at 127.9.9.9 or 127.128.0.5 or 127.128.0.6 or 127.128.0.7\nreport n/api: AddressInUse"},
		"the computer's own address is not given":               {"web ports=80 ip=127.0.0.1", "report n/web: AddressNotAllowed"},
		"nor that of its resolver":                              {"web ports=80 ip=127.0.0.53", "report n/web: AddressNotAllowed"},
		"nor a broadcast address":                               {"web ports=80 ip=127.255.255.255", "report n/web: AddressNotAllowed"},
		"an address that is not loopback is ignored":            {"web ports=80 ip=192.168.1.7", "listen for n/web: TCP port 80 at 127.128.0.5 or 127.128.0.6 or 127.128.0.7 or 127.128.0.1"},
		"until it can have the other address it keeps its own":  {"web ports=80 ip=127.0.0.1 at=127.128.0.2:80 recorded=127.128.0.2 ready", "report n/web: 127.128.0.2, AddressNotAllowed"},
		"SCTP is not supported":                                 {"web ports=80,s90", "report n/web: ProtocolNotSupported"},
		"what listens when a port of SCTP is added stays":       {"web ports=80,s90 at=127.128.0.2:80 recorded=127.128.0.2 ready", "report n/web: 127.128.0.2, ProtocolNotSupported"},
		"in a pool without free addresses":                      {"a ports=1 at=127.128.0.1:1 recorded=127.128.0.1 ready; b ports=1 at=127.128.0.2:1 recorded=127.128.0.2 ready; c ports=1 at=127.128.0.3:1 recorded=127.128.0.3 ready; d ports=1 at=127.128.0.4:1 recorded=127.128.0.4 ready; e ports=1 at=127.128.0.5:1 recorded=127.128.0.5 ready; f ports=1 at=127.128.0.6:1 recorded=127.128.0.6 ready; g ports=1 at=127.128.0.7:1 recorded=127.128.0.7 ready; h ports=1", "report n/h: NoFreeAddress"},
		"a port that is in use is reported":                     {"web ports=80 failed=InUse/1/0s", "report n/web: PortInUse\nagain after 1s"},
		"an address that is in use is not in the status":        {"web ports=80 failed=InUse/1/0s recorded=127.128.0.2 ready", "report n/web: PortInUse\nagain after 1s"},
		"it is tried again":                                     {"web ports=80 failed=InUse/1/1s", "listen for n/web: TCP port 80 at 127.128.0.5 or 127.128.0.6 or 127.128.0.7 or 127.128.0.1"},
		"later each time":                                       {"web ports=80 failed=InUse/3/1s", "report n/web: PortInUse\nagain after 3s"},
		"but not after more than half a minute":                 {"web ports=80 failed=InUse/300/10s", "report n/web: PortInUse\nagain after 20s"},
		"the first that is due is waited for":                   {"web ports=80 failed=InUse/3/0s; api ports=80 failed=Denied/2/0s", "report n/api: PermissionDenied\nreport n/web: PortInUse\nagain after 2s"},
		"a port that the system denies is reported":             {"web ports=80 failed=Denied/1/0s", "report n/web: PermissionDenied\nagain after 1s"},
		"another error is reported":                             {"web ports=80 failed=Other/1/0s", "report n/web: ListenFailed\nagain after 1s"},
		"a further port that fails does not stop what listens":  {"web ports=80,443 at=127.128.0.2:80 recorded=127.128.0.2 ready failed=Denied/1/0s", "report n/web: 127.128.0.2, PermissionDenied\nagain after 1s"},
		"an address that it cannot move to does not stop it":    {"web ports=80 ip=127.9.9.9 at=127.128.0.2:80 recorded=127.128.0.2 ready failed=InUse/1/0s", "report n/web: 127.128.0.2, PortInUse\nagain after 1s"},
		"a failure of what it does not ask for any more is old": {"web ports=80 failed=InUse/1/0s ip=127.9.9.9", "listen for n/web: TCP port 80 at 127.9.9.9"},
	} {
		t.Run(name, func(t *testing.T) {
			s := parseSnapshot(t, tc.in)
			p := Decide(s)
			got := p.String()
			if !p.RetryAt.IsZero() {
				got += fmt.Sprintf("\nagain after %s", p.RetryAt.Sub(s.Now))
			}
			if got != tc.want {
				t.Errorf("%s:\n got %s\nwant %s", tc.in, got, tc.want)
			}
		})
	}
}

func TestTheStatusSaysWhatToDo(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"a Service that listens":          {"web ports=80,u53 at=127.128.0.2:80,u53", "programs on the computer of this cluster reach the Service at 127.128.0.2, TCP port 80, UDP port 53"},
		"an address of another platform":  {"web ports=80 ip=10.1.2.3 at=127.128.0.2:80", "programs on the computer of this cluster reach the Service at 127.128.0.2, TCP port 80; spec.loadBalancerIP is ignored, because 10.1.2.3 is not in 127.0.0.0/8"},
		"a port in use":                   {"web ports=80 failed=InUse/1/0s", "TCP port 80 is in use everywhere, among others at 127.128.0.7: stop the program that listens on it (ss -ltnp 'sport = :80' shows it), or change spec.ports"},
		"a UDP port in use, as requested": {"web ports=u53 ip=127.128.0.7 failed=InUse/1/0s", "UDP port 53 is in use at 127.128.0.7: stop the program that listens on it (ss -lunp 'sport = :53' shows it), or change spec.loadBalancerIP"},
		"a denied port":                   {"web ports=80 failed=Denied/1/0s", "hotspare may not listen on TCP port 80 at 127.128.0.7: run it as root, or change spec.ports to 1024 or more"},
		"another error":                   {"web ports=80 failed=Other/1/0s", "listening on TCP port 80 at 127.128.0.7 failed and is repeated: too many files"},
		"a protocol":                      {"web ports=s90", "SCTP port 90 is not supported: use TCP or UDP in spec.ports"},
		"an address that is not allowed":  {"web ports=80 ip=127.0.1.1", "spec.loadBalancerIP is 127.0.1.1, which a Service cannot have: set an address in 127.0.0.0/8 that is not in 127.0.0.0/16 and does not end in 0 or 255, or none"},
		"an address of another Service":   {"web ports=80 ip=127.9.9.9; api ports=443 at=127.9.9.9:443 recorded=127.9.9.9 ready", "spec.loadBalancerIP is 127.9.9.9, the address of Service n/api: set another address, or delete that Service"},
	} {
		t.Run(name, func(t *testing.T) {
			steps := Decide(parseSnapshot(t, tc.in)).Steps
			if len(steps) != 1 || steps[0].Verb != Report || steps[0].Condition.Message != tc.want {
				t.Errorf("got %+v\nwant %s", steps, tc.want)
			}
		})
	}
}

func TestEventsSayWhatHasHappened(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"a first address":              {"web ports=80 at=127.128.0.2:80", "Normal AddressAssigned: assigned the address 127.128.0.2"},
		"another address":              {"web ports=80 at=127.128.0.2:80 recorded=127.128.0.5 ready", "Warning AddressChanged: changed the address from 127.128.0.5 to 127.128.0.2, because 127.128.0.5 is not available"},
		"another address, as asked":    {"web ports=80 ip=127.128.0.2 at=127.128.0.2:80 recorded=127.128.0.5 ready", "Normal AddressChanged: changed the address from 127.128.0.5 to 127.128.0.2, as spec.loadBalancerIP says"},
		"a failure":                    {"web ports=s90", "Warning ProtocolNotSupported: SCTP port 90 is not supported: use TCP or UDP in spec.ports"},
		"a correction is not an event": {"web ports=80 at=127.128.0.2:80 recorded=127.128.0.2 ready inexact", ""},
		"nor is the end":               {"web unwanted reported recorded=127.128.0.2", ""},
	} {
		t.Run(name, func(t *testing.T) {
			steps := Decide(parseSnapshot(t, tc.in)).Steps
			if len(steps) != 1 {
				t.Fatalf("got %v", steps)
			}
			got := ""
			if e := steps[0].Event; e != (Event{}) {
				got = e.Type + " " + e.Reason + ": " + e.Note
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestAFailureThatIsReportedIsNotReportedAgain(t *testing.T) {
	s := parseSnapshot(t, "web ports=80 failed=InUse/1/0s")
	s.Services[0].Condition = Decide(s).Steps[0].Condition
	if p := Decide(s); len(p.Steps) != 0 || p.RetryAt.IsZero() {
		t.Errorf("the plan is %s, again at %s", p, p.RetryAt)
	}
}

func TestTheServicesOfAClusterHaveALimitOfPorts(t *testing.T) {
	many := func(name string, first, count int) Service {
		s := Service{Key: types.NamespacedName{Namespace: "n", Name: name}, Created: noon, Wanted: true, Exact: true}
		for n := range count {
			s.Ports = append(s.Ports, Port{Number: uint16(first + n), Protocol: corev1.ProtocolTCP})
		}
		return s
	}
	a, b, c := many("a", 1, maxPorts-10), many("b", 1, 11), many("c", 1, 10)
	p := Decide(Snapshot{Cluster: "c", Services: []Service{c, b, a}})
	var got []string
	for _, s := range p.Steps {
		got = append(got, string(s.Verb)+" "+s.Service.Name+" "+s.Condition.Reason)
	}
	if want := []string{"listen a ", "report b TooManyPorts", "listen c "}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	// A Service that listens is not displaced by an older one that comes later.
	address := netip.MustParseAddr("127.130.1.1")
	p = Decide(Snapshot{Cluster: "c", Services: []Service{a, b}, Listening: map[types.NamespacedName]Listening{b.Key: {Address: address, Ports: b.Ports}}})
	if len(p.Steps) != 2 || p.Steps[0].Condition != listeningCondition(b, Listening{Address: address}) || p.Steps[1].Condition.Reason != ReasonTooManyPorts {
		t.Errorf("got %s", p)
	}
}

func TestOnlyAddressesThatAServiceCanHaveAreChosen(t *testing.T) {
	for _, pool := range []string{"127.128.0.0/29", "127.200.0.0/23"} {
		prefix := netip.MustParsePrefix(pool)
		seen := map[netip.Addr]bool{}
		for a := range addressesOf(prefix, "c", types.NamespacedName{Namespace: "n", Name: "web"}) {
			if seen[a] || !prefix.Contains(a) || !isAllowed(a) {
				t.Errorf("%s: %s is chosen", pool, a)
			}
			seen[a] = true
		}
		hosts := 0
		for a := prefix.Addr(); prefix.Contains(a); a = a.Next() {
			if isHost(a) {
				hosts++
			}
		}
		if len(seen) != hosts {
			t.Errorf("%s: %d of %d addresses are chosen", pool, len(seen), hosts)
		}
	}
}

// TestClustersRarelyChooseTheSameAddress tests that the first addresses of Services with similar names are
// spread over the pool.
func TestClustersRarelyChooseTheSameAddress(t *testing.T) {
	seen := map[netip.Addr]bool{}
	for cluster := range 50 {
		for service := range 20 {
			for a := range addressesOf(DefaultPool, fmt.Sprintf("ci-%d", cluster), types.NamespacedName{Namespace: "default", Name: fmt.Sprintf("web-%d", service)}) {
				seen[a] = true
				break
			}
		}
	}
	if len(seen) < 998 { // random choices have 0.06 equal pairs on average
		t.Errorf("1000 Services have %d addresses", len(seen))
	}
}
