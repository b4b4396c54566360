package plan

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"hotspare.io/hotspare/internal/condition"
)

const (
	// maxCandidates is how many addresses a Listen step tries. More than one that is in use means
	// that a program listens on the port at all addresses.
	maxCandidates = 4
	// maxPorts is how many ports the Services of a cluster can have together: each takes a file
	// descriptor of the process that also serves the cluster's API.
	maxPorts = 1000
)

// Delays before a Listen step that failed is repeated: the first, which doubles each time, and the
// maximum.
const (
	firstRetryDelay = time.Second
	maxRetryDelay   = 30 * time.Second
)

// Decide decides what to do now. The same snapshot gives the same plan, whatever the order of its lists.
func Decide(s Snapshot) Plan {
	d := newDecision(s)
	d.releaseUnwanted()
	for _, service := range d.wanted {
		d.planService(service)
	}
	return d.plan
}

// decision is a plan in the making.
type decision struct {
	Snapshot
	wanted []Service // in the order of their claims to an address
	// owners are the Services to which addresses belong, and those that try them.
	owners map[netip.Addr]types.NamespacedName
	ports  int // how many ports the Services before have
	plan   Plan
}

func newDecision(s Snapshot) *decision {
	if !s.Pool.IsValid() {
		s.Pool = DefaultPool
	}
	d := &decision{Snapshot: s, owners: map[netip.Addr]types.NamespacedName{}}
	for _, service := range s.Services {
		if service.Wanted {
			d.wanted = append(d.wanted, service.normalize())
		}
	}
	slices.SortFunc(d.wanted, d.compareClaims)
	for _, service := range d.wanted {
		if l, ok := s.Listening[service.Key]; ok {
			d.claim(l.Address, service)
		}
	}
	for _, service := range d.wanted {
		if requested, ok := service.requestedAddress(); !ok || requested == service.Recorded {
			d.claim(service.Recorded, service)
		}
	}
	for _, service := range d.wanted {
		if requested, ok := service.requestedAddress(); ok {
			d.claim(requested, service)
		}
	}
	return d
}

// normalize returns the Service with sorted ports.
func (s Service) normalize() Service {
	s.Ports = slices.SortedFunc(slices.Values(s.Ports), comparePorts)
	return s
}

func comparePorts(a, b Port) int {
	return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Number, b.Number))
}

// compareClaims orders Services: those that have an address first, and then the oldest.
func (d *decision) compareClaims(a, b Service) int {
	return cmp.Or(
		cmp.Compare(d.claimRank(a), d.claimRank(b)),
		a.Created.Compare(b.Created),
		strings.Compare(a.Key.String(), b.Key.String()),
	)
}

func (d *decision) claimRank(s Service) int {
	if _, ok := d.Listening[s.Key]; ok {
		return 0
	}
	if s.Recorded.IsValid() {
		return 1
	}
	return 2
}

// claim makes the address the Service's, if a Service can have it and none has. A recorded address
// needs the check too: whoever may write the status may have written it.
func (d *decision) claim(a netip.Addr, s Service) {
	if _, owned := d.owners[a]; !owned && isAllowed(a) {
		d.owners[a] = s.Key
	}
}

// requestedAddress returns spec.loadBalancerIP if it is a loopback address. Others are meant for
// another platform, and are ignored, as the API permits.
func (s Service) requestedAddress() (netip.Addr, bool) {
	a, err := netip.ParseAddr(s.Requested)
	return a, err == nil && loopback.Contains(a)
}

// releaseUnwanted plans the end of what exists for Services that should not have an address.
func (d *decision) releaseUnwanted() {
	for _, key := range sortedKeys(d.Listening) {
		if !slices.ContainsFunc(d.wanted, func(s Service) bool { return s.Key == key }) {
			d.add(Step{Verb: StopListening, Service: key, Ports: slices.SortedFunc(slices.Values(d.Listening[key].Ports), comparePorts)})
		}
	}
	var reported []types.NamespacedName
	for _, s := range d.Services {
		if !s.Wanted && s.Reported {
			reported = append(reported, s.Key)
		}
	}
	slices.SortFunc(reported, compareKeys)
	for _, key := range reported {
		d.add(Step{Verb: Report, Service: key})
	}
}

func sortedKeys[V any](m map[types.NamespacedName]V) []types.NamespacedName {
	keys := make([]types.NamespacedName, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, compareKeys)
	return keys
}

func compareKeys(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) }

func (d *decision) add(s Step) { d.plan.Steps = append(d.plan.Steps, s) }

// planService plans the steps of a Service that should have an address.
func (d *decision) planService(s Service) {
	now := d.dropStalePorts(s)
	before := d.ports
	d.ports += len(now.Ports)
	if obstacle := d.findObstacle(s, before); obstacle != (condition.Value{}) {
		d.report(s, now, obstacle)
		return
	}
	d.ports = before + len(s.Ports)
	requested, isRequested := s.requestedAddress()
	if len(now.Ports) == len(s.Ports) && (!isRequested || now.Address == requested) {
		d.report(s, now, listeningCondition(s, now))
		return
	}
	if f, ok := d.Failures[s.Key]; ok && f.Want == s.want() && d.Now.Before(f.retryAt()) {
		d.waitUntil(f.retryAt())
		d.report(s, now, failureCondition(f, isRequested))
		return
	}
	candidates := d.candidates(s)
	if len(candidates) == 0 {
		d.report(s, now, condition.False(ReasonNoFreeAddress, fmt.Sprintf("all addresses in %s belong to other Services: delete Services, or set spec.loadBalancerIP", d.Pool)))
		return
	}
	d.add(Step{Verb: Listen, Service: s.Key, Ports: s.Ports, Addresses: candidates, Want: s.want()})
}

// dropStalePorts stops listening on ports that the Service does not have any more, and returns what
// remains.
func (d *decision) dropStalePorts(s Service) Listening {
	now := Listening{Address: d.Listening[s.Key].Address}
	var stale []Port
	for _, p := range d.Listening[s.Key].Ports {
		if slices.Contains(s.Ports, p) {
			now.Ports = append(now.Ports, p)
		} else {
			stale = append(stale, p)
		}
	}
	if len(stale) > 0 {
		slices.SortFunc(stale, comparePorts)
		d.add(Step{Verb: StopListening, Service: s.Key, Ports: stale})
	}
	if len(now.Ports) == 0 {
		return Listening{}
	}
	return now
}

// findObstacle returns the condition of a Service for which this process cannot listen, whatever else
// happens on this computer; ports is how many ports the Services before have.
func (d *decision) findObstacle(s Service, ports int) condition.Value {
	for _, p := range s.Ports {
		if p.Protocol != corev1.ProtocolTCP && p.Protocol != corev1.ProtocolUDP {
			return condition.False(ReasonProtocolNotSupported, fmt.Sprintf("%s is not supported: use TCP or UDP in spec.ports", p))
		}
	}
	if ports+len(s.Ports) > maxPorts {
		return condition.False(ReasonTooManyPorts, fmt.Sprintf("the LoadBalancer Services of a cluster can have %d ports together: delete Services", maxPorts))
	}
	requested, isRequested := s.requestedAddress()
	if !isRequested {
		return condition.Value{}
	}
	if !isAllowed(requested) {
		return condition.False(ReasonAddressNotAllowed, fmt.Sprintf(
			"spec.loadBalancerIP is %s, which a Service cannot have: set an address in %s that is not in %s and does not end in 0 or 255, or none", requested, loopback, programs))
	}
	if owner := d.owners[requested]; owner != s.Key {
		return condition.False(ReasonAddressInUse, fmt.Sprintf("spec.loadBalancerIP is %s, the address of Service %s: set another address, or delete that Service", requested, owner))
	}
	return condition.Value{}
}

// candidates returns the addresses to try: the requested one, or that of before and then further ones.
func (d *decision) candidates(s Service) []netip.Addr {
	if requested, ok := s.requestedAddress(); ok {
		return []netip.Addr{requested}
	}
	var out []netip.Addr
	for _, before := range []netip.Addr{d.Listening[s.Key].Address, s.Recorded} {
		if before.IsValid() && d.owners[before] == s.Key && !slices.Contains(out, before) {
			out = append(out, before)
		}
	}
	for a := range addressesOf(d.Pool, d.Cluster, s.Key) {
		if len(out) >= maxCandidates {
			break
		}
		if _, owned := d.owners[a]; !owned {
			d.owners[a] = s.Key
			out = append(out, a)
		}
	}
	return out
}

// want identifies what the Service asks for.
func (s Service) want() string { return s.Requested + " " + joinPorts(s.Ports) }

// retryAt returns when the step is repeated.
func (f Failure) retryAt() time.Time {
	delay := maxRetryDelay
	if f.Count < 6 { // 2^5 s is more than the maximum
		delay = min(delay, firstRetryDelay<<max(0, f.Count-1))
	}
	return f.Time.Add(delay)
}

func (d *decision) waitUntil(t time.Time) {
	if d.plan.RetryAt.IsZero() || t.Before(d.plan.RetryAt) {
		d.plan.RetryAt = t
	}
}

// report plans to write the status of the Service, unless it is right.
func (d *decision) report(s Service, now Listening, c condition.Value) {
	if s.Recorded == now.Address && s.Exact && s.Condition == c {
		return
	}
	d.add(Step{Verb: Report, Service: s.Key, Address: now.Address, Condition: c, Event: newEvent(s, now, c)})
}
