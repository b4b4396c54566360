package page

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/explain/clusterstate"
)

// A Filter selects events. The namespace is not part of it: every page has one.
type Filter struct {
	// Kind matches exactly, Name matches a part of the name in any case. An empty value matches all
	// events.
	Kind, Name string
	// WarningsOnly excludes all other events.
	WarningsOnly bool
	// Limit is the maximum number of events on the page.
	Limit int
}

// The number of events on a page, which is also the step of "Show more", and the maximum.
const (
	eventsPerPage = 200
	maxEvents     = 5000
)

// ParseFilter reads a filter from the query of a page. It ignores invalid values.
func ParseFilter(q url.Values) Filter {
	f := Filter{Kind: q.Get("kind"), Name: strings.TrimSpace(q.Get("name")), WarningsOnly: q.Get("type") == corev1.EventTypeWarning, Limit: eventsPerPage}
	if n, err := strconv.Atoi(q.Get("show")); err == nil && n > 0 {
		f.Limit = min(n, maxEvents)
	}
	return f
}

// PageURL returns the address of the page with the filter, in a namespace or in all.
func (f Filter) PageURL(namespace string) string {
	q := url.Values{}
	for name, value := range map[string]string{"namespace": namespace, "kind": f.Kind, "name": f.Name} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if f.WarningsOnly {
		q.Set("type", corev1.EventTypeWarning)
	}
	if f.Limit != eventsPerPage && f.Limit > 0 {
		q.Set("show", strconv.Itoa(f.Limit))
	}
	return strings.TrimSuffix("/activity?"+q.Encode(), "?")
}

// IsSet reports whether the filter excludes events.
func (f Filter) IsSet() bool { return f.Kind != "" || f.Name != "" || f.WarningsOnly }

func (f Filter) matchesEvent(e *corev1.Event) bool {
	return (f.Kind == "" || e.InvolvedObject.Kind == f.Kind) &&
		strings.Contains(strings.ToLower(e.InvolvedObject.Name), strings.ToLower(f.Name)) &&
		(!f.WarningsOnly || e.Type == corev1.EventTypeWarning)
}

// Activity is the content of the page of events, newest first.
type Activity struct {
	Filter Filter
	// Kinds are the choices of the filter.
	Kinds  []KindChoice
	Events []EventGroup
	// Hidden is how many more events match the filter. More links to them.
	Hidden int
	More   string
	// Total is the number of events without the filter.
	Total int
}

// A KindChoice is a kind and its label.
type KindChoice struct{ Kind, Label string }

// An EventGroup is all events that report the same fact about the same object.
type EventGroup struct {
	Event
	// First is the time of the first event; zero if there is only one.
	First Moment
	// FilterLink is the page of all events of the same object; empty on that page itself.
	FilterLink string
}

// NewActivity returns the events of hotspare's kinds in a namespace, or in all.
func NewActivity(list []corev1.Event, f Filter, namespace string, now time.Time) Activity {
	out := Activity{Filter: f}
	kinds := map[string]bool{}
	at := map[eventGroupKey]int{}
	var all []EventGroup
	for i := range list {
		e := &list[i]
		if !isHotspareEvent(e) {
			continue
		}
		kinds[e.InvolvedObject.Kind] = true
		out.Total++
		if !f.matchesEvent(e) {
			continue
		}
		one, key := newEventGroup(e, now), groupKeyOf(e)
		if n, known := at[key]; known {
			all[n].mergeOccurrence(one)
			continue
		}
		at[key] = len(all)
		all = append(all, one)
	}
	if f.Kind != "" {
		kinds[f.Kind] = true // keeps the selected choice in the list
	}
	for k := range kinds {
		out.Kinds = append(out.Kinds, KindChoice{k, KindName(k)})
	}
	slices.SortFunc(out.Kinds, func(a, b KindChoice) int { return strings.Compare(a.Label, b.Label) })
	slices.SortFunc(all, func(a, b EventGroup) int {
		return cmp.Or(b.At.At.Compare(a.At.At), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Kind, b.Kind),
			strings.Compare(a.Name, b.Name), strings.Compare(a.Reason, b.Reason), strings.Compare(a.Message, b.Message))
	})
	out.Events = all[:min(len(all), f.Limit)]
	for n := range out.Events {
		out.Events[n].setFilterLink(f, namespace)
	}
	if out.Hidden = len(all) - len(out.Events); out.Hidden > 0 && f.Limit < maxEvents {
		more := f
		more.Limit = min(maxEvents, f.Limit+eventsPerPage)
		out.More = more.PageURL(namespace)
	}
	return out
}

// SelectNamespaceEvents returns the events of a namespace and of the clusters of its pools.
func SelectNamespaceEvents(events []corev1.Event, clusters []hivev1.ClusterDeployment, namespace string) []corev1.Event {
	near := map[string]bool{namespace: true}
	for i := range clusters {
		if cd := &clusters[i]; clusterstate.HomeNamespace(cd) == namespace {
			near[cd.Namespace] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(events), func(e corev1.Event) bool { return !near[e.Namespace] })
}

// isHotspareEvent reports whether an event is about one of hotspare's kinds. The user's cache keeps
// nothing of other events, not even their objects.
func isHotspareEvent(e *corev1.Event) bool {
	group, err := schema.ParseGroupVersion(e.InvolvedObject.APIVersion)
	return err == nil && (group.Group == hivev1.GroupVersion.Group || group.Group == v1alpha1.GroupVersion.Group)
}

// eventGroupKey has the fields that the events of a group share.
type eventGroupKey struct{ kind, namespace, name, reason, message, typ string }

func groupKeyOf(e *corev1.Event) eventGroupKey {
	o := e.InvolvedObject
	return eventGroupKey{o.Kind, o.Namespace, o.Name, e.Reason, e.Message, e.Type}
}

func newEventGroup(e *corev1.Event, now time.Time) EventGroup {
	one := EventGroup{Event: NewEvents([]corev1.Event{*e}, now)[0]}
	one.Link = ObjectLink(one.Kind, one.Namespace, one.Name)
	if first := firstOccurrence(e); one.Count > 1 && first.Before(one.At.At) {
		one.First = PastMoment(first, now)
	}
	return one
}

// mergeOccurrence adds another event to the group.
func (g *EventGroup) mergeOccurrence(other EventGroup) {
	early, late := g.Event, other.Event
	if late.At.At.Before(early.At.At) {
		early, late = late, early
	}
	first := early.At
	for _, f := range []Moment{g.First, other.First} {
		if !f.Zero() && f.At.Before(first.At) {
			first = f
		}
	}
	g.Count += other.Count
	g.At, g.First = late.At, first
}

func (g *EventGroup) setFilterLink(f Filter, namespace string) {
	if f.Kind != g.Kind || f.Name != g.Name || namespace != g.Namespace {
		g.FilterLink = Filter{Kind: g.Kind, Name: g.Name, Limit: eventsPerPage}.PageURL(g.Namespace)
	}
}

// firstOccurrence returns the time of an event's first occurrence, from the first of its time
// fields that is set.
func firstOccurrence(e *corev1.Event) time.Time {
	switch {
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	case !e.FirstTimestamp.IsZero():
		return e.FirstTimestamp.Time
	default:
		return e.CreationTimestamp.Time
	}
}

// ObjectLink returns the page of an object; empty if it has none.
func ObjectLink(kind, namespace, name string) string {
	switch kind {
	case "ClusterPool":
		return PoolLink(namespace, name)
	case "FleetRegion":
		return RegionLink(namespace, name)
	default:
		return ""
	}
}
