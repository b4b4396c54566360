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

// A Filter says which events are asked for. The namespace is that of all pages.
type Filter struct {
	// Kind is exact; Name is part of one, in whatever case. Empty ones let all through.
	Kind, Name string
	// WarningsOnly lets nothing else through.
	WarningsOnly bool
	// Limit is how many are shown at most.
	Limit int
}

// How many events a page shows, and how many more with each step.
const (
	eventsPerPage = 200
	maxEvents     = 5000
)

// ParseFilter reads a filter from a page's query. What makes no sense is left out.
func ParseFilter(q url.Values) Filter {
	f := Filter{Kind: q.Get("kind"), Name: strings.TrimSpace(q.Get("name")), WarningsOnly: q.Get("type") == corev1.EventTypeWarning, Limit: eventsPerPage}
	if n, err := strconv.Atoi(q.Get("show")); err == nil && n > 0 {
		f.Limit = min(n, maxEvents)
	}
	return f
}

// PageURL is the page with that filter, in a namespace or in all.
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

// IsSet reports whether the filter keeps anything back.
func (f Filter) IsSet() bool { return f.Kind != "" || f.Name != "" || f.WarningsOnly }

func (f Filter) matchesEvent(e *corev1.Event) bool {
	return (f.Kind == "" || e.InvolvedObject.Kind == f.Kind) &&
		strings.Contains(strings.ToLower(e.InvolvedObject.Name), strings.ToLower(f.Name)) &&
		(!f.WarningsOnly || e.Type == corev1.EventTypeWarning)
}

// Activity is what has happened, newest first.
type Activity struct {
	Filter Filter
	// Kinds are those that can be chosen.
	Kinds  []KindChoice
	Events []EventGroup
	// Hidden is how many more there are, with the filter as it is; More leads to them.
	Hidden int
	More   string
	// Total is how many there are without the filter.
	Total int
}

// A Choice is a kind, and what people call it.
type KindChoice struct{ Kind, Label string }

// An EventGroup is something that has happened, perhaps often.
type EventGroup struct {
	Event
	// First is when it happened for the first time; zero when it did once.
	First Moment
	// FilterLink is the page of all that has happened to the same thing; empty on that page.
	FilterLink string
}

// NewActivity tells of the events of hotspare's kinds in a namespace, or in all.
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
		kinds[f.Kind] = true // so that it can be seen, and taken back
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

// SelectNamespaceEvents are the events of a namespace, and of the clusters of its pools.
func SelectNamespaceEvents(events []corev1.Event, clusters []hivev1.ClusterDeployment, namespace string) []corev1.Event {
	near := map[string]bool{namespace: true}
	for i := range clusters {
		if cd := &clusters[i]; clusterstate.HomeNamespace(cd) == namespace {
			near[cd.Namespace] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(events), func(e corev1.Event) bool { return !near[e.Namespace] })
}

// isHotspareEvent reports whether an event is about a kind of hotspare. Of others nothing is kept,
// not even what they are about.
func isHotspareEvent(e *corev1.Event) bool {
	group, err := schema.ParseGroupVersion(e.InvolvedObject.APIVersion)
	return err == nil && (group.Group == hivev1.GroupVersion.Group || group.Group == v1alpha1.GroupVersion.Group)
}

// eventGroupKey is what events have in common that tell of the same thing once more.
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

// mergeOccurrence counts the same once more.
func (h *EventGroup) mergeOccurrence(other EventGroup) {
	early, late := h.Event, other.Event
	if late.At.At.Before(early.At.At) {
		early, late = late, early
	}
	first := early.At
	for _, f := range []Moment{h.First, other.First} {
		if !f.Zero() && f.At.Before(first.At) {
			first = f
		}
	}
	h.Count += other.Count
	h.At, h.First = late.At, first
}

func (h *EventGroup) setFilterLink(f Filter, namespace string) {
	if f.Kind != h.Kind || f.Name != h.Name || namespace != h.Namespace {
		h.FilterLink = Filter{Kind: h.Kind, Name: h.Name, Limit: eventsPerPage}.PageURL(h.Namespace)
	}
}

// firstOccurrence is when an event happened first, by whichever of its times is set.
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

// ObjectLink is the page of a thing; empty when it has none.
func ObjectLink(kind, namespace, name string) string {
	switch kind {
	case "ClusterPool":
		return PoolLink(namespace, name)
	case "FleetRegion":
		return FleetLink(namespace, name)
	default:
		return ""
	}
}
