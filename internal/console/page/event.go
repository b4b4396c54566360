package page

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// An Event is an event of an object.
type Event struct {
	// ID is unique among events.
	ID string
	At Moment
	// Kind, Namespace and Name are those of the object.
	Kind, Namespace, Name string
	// KindLabel is the kind in plain words, ObjectLabel the name of the object as pages show it.
	KindLabel, ObjectLabel string
	Reason, Message        string
	Warning                bool
	// Count is the number of occurrences.
	Count int32
	// Link is the page of the object; empty if it has none.
	Link string
}

// NewEvents returns the events of hotspare's kinds, newest first. The user's cache reduces events
// of other kinds to their identity, so events without a reason are skipped.
func NewEvents(list []corev1.Event, now time.Time) []Event {
	var out []Event
	for i := range list {
		e := &list[i]
		if e.Reason == "" {
			continue
		}
		o := e.InvolvedObject
		one := Event{
			ID: string(e.UID), At: PastMoment(lastOccurrence(e), now), Kind: o.Kind, Namespace: o.Namespace, Name: o.Name,
			Reason: e.Reason, Message: e.Message, Warning: e.Type == corev1.EventTypeWarning, Count: 1,
		}
		if e.Series != nil {
			one.Count = e.Series.Count
		} else if e.Count > 0 {
			one.Count = e.Count
		}
		one.KindLabel, one.ObjectLabel = KindName(o.Kind), o.Namespace+"/"+o.Name
		if o.Namespace == o.Name || o.Namespace == "" { // a cluster has a namespace of its own
			one.ObjectLabel = o.Name
		}
		if o.Kind == "ClusterPool" {
			one.Link = PoolLink(o.Namespace, o.Name)
		}
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b Event) int {
		return cmp.Or(b.At.At.Compare(a.At.At), strings.Compare(a.Name, b.Name), strings.Compare(a.Reason, b.Reason), strings.Compare(a.Message, b.Message))
	})
	return out
}

// kindNames are the plain names of kinds.
var kindNames = map[string]string{
	"ClusterPool": "pool", "ClusterClaim": "claim", "ClusterDeployment": "cluster", "ClusterProvision": "install",
	"ClusterDeploymentCustomization": "customization", "MachinePool": "machine pool", "PowerSchedule": "schedule", "PoolPolicy": "policy",
	"ClaimPolicy": "claim policy", "ClaimSet": "claim set",
	"FleetRegion": "region", "DataPlane": "data plane", "DataPlaneAgent": "agent", "ServiceInstance": "instance", "InstanceType": "instance type",
}

// KindName returns the plain name of a kind.
func KindName(kind string) string {
	if word := kindNames[kind]; word != "" {
		return word
	}
	return kind
}

// FirstEvents returns the first n events.
func FirstEvents(events []Event, n int) []Event { return events[:min(n, len(events))] }

// lastOccurrence returns the time of an event's last occurrence, from the first of its time fields
// that is set.
func lastOccurrence(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil && !e.Series.LastObservedTime.IsZero():
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	default:
		return e.CreationTimestamp.Time
	}
}
