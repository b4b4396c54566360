// Package plan decides at which loopback addresses this computer listens for the Services of type
// LoadBalancer of a local cluster.
//
// Each Service has one address of 127.0.0.0/8. It is chosen by the names of the cluster and of the
// Service, so that a Service that is created again has the same one, and that Services of different
// clusters are unlikely to have the same. Whether it is free shows when the process listens on all
// ports of the Service: a Listen step names several addresses to try, and what listens, or why
// nothing does, is part of the next Snapshot. The address in the Service's status is the only record of it.
package plan

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"hotspare.io/hotspare/internal/condition"
)

// Port is a port of a Service.
type Port struct {
	Number   uint16
	Protocol corev1.Protocol
}

// String returns the port as text, such as "TCP port 80".
func (p Port) String() string { return fmt.Sprintf("%s port %d", p.Protocol, p.Number) }

// Service is a Service of any type.
type Service struct {
	Key     types.NamespacedName
	Created time.Time
	// Wanted reports whether the Service should have an address: its type is LoadBalancer, it names no
	// class of another controller, and it is not being deleted.
	Wanted bool
	// Reported reports whether the status contains an address or a condition of this controller.
	Reported bool
	// Ports are the ports of the Service, in any order.
	Ports []Port
	// Requested is spec.loadBalancerIP.
	Requested string
	// Recorded is the address in the status; invalid if there is none.
	Recorded netip.Addr
	// Exact reports whether status.loadBalancer is exactly what a Report step with Recorded writes.
	Exact bool
	// Condition is the condition of this controller.
	Condition condition.Value
}

// Listening is what this process listens on for a Service.
type Listening struct {
	Address netip.Addr
	Ports   []Port
}

// Cause is why a Listen step failed.
type Cause string

// The causes. Another address may help for InUse only.
const (
	InUse  Cause = "InUse"
	Denied Cause = "Denied"
	Other  Cause = "Other"
)

// Failure is the result of the last Listen step of a Service, which failed.
type Failure struct {
	// Want is that of the step.
	Want string
	// Address and Port are those of the first attempt, which failed for the Cause. Detail is the
	// system's message.
	Address netip.Addr
	Port    Port
	Cause   Cause
	Detail  string
	// Count is how many steps with the same Want have failed in a row, and Time the time of the last one.
	Count int
	Time  time.Time
}

// Snapshot is the input of Decide.
type Snapshot struct {
	Now time.Time
	// Cluster is a name of the cluster that no other one on this computer has.
	Cluster string
	// Pool contains the addresses to choose from; DefaultPool if it is not valid.
	Pool     netip.Prefix
	Services []Service
	// Listening and Failures belong to Services that may not exist any more.
	Listening map[types.NamespacedName]Listening
	Failures  map[types.NamespacedName]Failure
}

// Verb says what a step does.
type Verb string

// The verbs of steps.
const (
	// StopListening stops listening on Ports, and ends their connections. It never fails.
	StopListening Verb = "stop listening"
	// Listen listens on Ports at the first of Addresses at which all of them are free, and then stops
	// listening at the other address that the Service may have had. Ports on which this process
	// listens for the Service already continue. If it fails, nothing changes.
	Listen Verb = "listen"
	// Report writes status.loadBalancer and the condition, and then records the event.
	Report Verb = "report"
)

// Step is one action for a Service. The failure of one affects no other Service.
type Step struct {
	Verb    Verb
	Service types.NamespacedName
	// Ports are set for StopListening and Listen.
	Ports []Port
	// Addresses and Want, which identifies what the Service asks for, are set for Listen.
	Addresses []netip.Addr
	Want      string
	// Address, Condition and Event are set for Report. An invalid address, and a zero condition, is to
	// be removed; a zero event is not recorded.
	Address   netip.Addr
	Condition condition.Value
	Event     Event
}

// Event is an event of a Service.
type Event struct {
	Type, Reason, Note string
}

// String returns the step as text, such as "listen for default/web: TCP port 80 at 127.130.4.5 or
// 127.130.4.6".
func (s Step) String() string {
	switch {
	case s.Verb == Listen:
		return fmt.Sprintf("%s for %s: %s at %s", s.Verb, s.Service, joinPorts(s.Ports), joinAddresses(s.Addresses))
	case s.Verb == StopListening:
		return fmt.Sprintf("%s for %s: %s", s.Verb, s.Service, joinPorts(s.Ports))
	case s.Condition == (condition.Value{}):
		return fmt.Sprintf("%s %s: nothing", s.Verb, s.Service)
	case !s.Address.IsValid():
		return fmt.Sprintf("%s %s: %s", s.Verb, s.Service, s.Condition.Reason)
	default:
		return fmt.Sprintf("%s %s: %s, %s", s.Verb, s.Service, s.Address, s.Condition.Reason)
	}
}

// Plan is what to do now.
type Plan struct {
	// Steps are executed in order. While there is a Listen step, the Report steps wait for the next plan.
	Steps []Step
	// RetryAt is when to decide again, if nothing changes before; zero for never.
	RetryAt time.Time
}

// HasListen reports whether a step is a Listen step.
func (p Plan) HasListen() bool {
	for _, s := range p.Steps {
		if s.Verb == Listen {
			return true
		}
	}
	return false
}

// String returns the plan as text, one line per step.
func (p Plan) String() string {
	var lines []string
	for _, s := range p.Steps {
		lines = append(lines, s.String())
	}
	return strings.Join(lines, "\n")
}

func joinPorts(ports []Port) string {
	var out []string
	for _, p := range ports {
		out = append(out, p.String())
	}
	return strings.Join(out, ", ")
}

func joinAddresses(addresses []netip.Addr) string {
	var out []string
	for _, a := range addresses {
		out = append(out, a.String())
	}
	return strings.Join(out, " or ")
}
