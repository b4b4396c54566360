package plan

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"hotspare.io/hotspare/internal/condition"
)

// Reasons of the condition of a Service. Those of a condition that is False are also reasons of events.
const (
	// ReasonListening: the status is True.
	ReasonListening = "Listening"
	// ReasonPortInUse: another program listens on a port.
	ReasonPortInUse = "PortInUse"
	// ReasonPermissionDenied: the system denies a port to this process.
	ReasonPermissionDenied = "PermissionDenied"
	// ReasonListenFailed: the system returned another error.
	ReasonListenFailed = "ListenFailed"
	// ReasonProtocolNotSupported: a port has another protocol than TCP and UDP.
	ReasonProtocolNotSupported = "ProtocolNotSupported"
	// ReasonTooManyPorts: the Services of the cluster have too many ports.
	ReasonTooManyPorts = "TooManyPorts"
	// ReasonAddressNotAllowed: no Service can have the address in spec.loadBalancerIP.
	ReasonAddressNotAllowed = "AddressNotAllowed"
	// ReasonAddressInUse: the address in spec.loadBalancerIP is that of another Service.
	ReasonAddressInUse = "AddressInUse"
	// ReasonNoFreeAddress: no address is left to choose.
	ReasonNoFreeAddress = "NoFreeAddress"
)

// Further reasons of events.
const (
	// EventAddressAssigned: a Service that had no address has one.
	EventAddressAssigned = "AddressAssigned"
	// EventAddressChanged: a Service has another address than before.
	EventAddressChanged = "AddressChanged"
)

// listeningCondition returns the condition of a Service whose ports are all listened on.
func listeningCondition(s Service, now Listening) condition.Value {
	message := fmt.Sprintf("programs on the computer of this cluster reach the Service at %s, %s", now.Address, joinPorts(s.Ports))
	if _, ok := s.requestedAddress(); s.Requested != "" && !ok {
		message += fmt.Sprintf("; spec.loadBalancerIP is ignored, because %s is not in %s", s.Requested, loopback)
	}
	return condition.True(ReasonListening, message)
}

// failureCondition returns the condition of a Service whose last Listen step failed.
func failureCondition(f Failure, isRequested bool) condition.Value {
	switch f.Cause {
	case InUse:
		where, remedy := "everywhere, among others at "+f.Address.String(), "spec.ports"
		if isRequested {
			where, remedy = "at "+f.Address.String(), "spec.loadBalancerIP"
		}
		return condition.False(ReasonPortInUse, fmt.Sprintf("%s is in use %s: stop the program that listens on it (%s shows it), or change %s",
			f.Port, where, listCommand(f.Port), remedy))
	case Denied:
		return condition.False(ReasonPermissionDenied, fmt.Sprintf(
			"hotspare may not listen on %s at %s: run it as root, or change spec.ports to 1024 or more", f.Port, f.Address))
	default:
		return condition.False(ReasonListenFailed, fmt.Sprintf("listening on %s at %s failed and is repeated: %s", f.Port, f.Address, f.Detail))
	}
}

// listCommand returns a command that shows the program that listens on a port.
func listCommand(p Port) string {
	flag := "t"
	if p.Protocol == corev1.ProtocolUDP {
		flag = "u"
	}
	return fmt.Sprintf("ss -l%snp 'sport = :%d'", flag, p.Number)
}

// newEvent returns the event of a change of the status; zero if nothing has happened that a user must
// know.
func newEvent(s Service, now Listening, c condition.Value) Event {
	switch {
	case now.Address.IsValid() && !s.Recorded.IsValid():
		return Event{corev1.EventTypeNormal, EventAddressAssigned, fmt.Sprintf("assigned the address %s", now.Address)}
	case now.Address.IsValid() && now.Address != s.Recorded:
		return newChangeEvent(s, now)
	case !c.IsTrue() && c != s.Condition:
		return Event{corev1.EventTypeWarning, c.Reason, c.Message}
	default:
		return Event{}
	}
}

func newChangeEvent(s Service, now Listening) Event {
	if requested, ok := s.requestedAddress(); ok && requested == now.Address {
		return Event{corev1.EventTypeNormal, EventAddressChanged, fmt.Sprintf("changed the address from %s to %s, as spec.loadBalancerIP says", s.Recorded, now.Address)}
	}
	return Event{corev1.EventTypeWarning, EventAddressChanged, fmt.Sprintf("changed the address from %s to %s, because %s is not available", s.Recorded, now.Address, s.Recorded)}
}
