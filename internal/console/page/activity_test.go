package page

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// happens returns an event as events.k8s.io writes it, from a text such as "ClusterPool default/dev
// Created: text". An exclamation mark in front makes it a warning.
func happens(text string, ago time.Duration) corev1.Event {
	kind := corev1.EventTypeNormal
	if rest, warns := strings.CutPrefix(text, "!"); warns {
		kind, text = corev1.EventTypeWarning, rest
	}
	head, message, _ := strings.Cut(text, ": ")
	words := strings.Fields(head)
	namespace, name, _ := strings.Cut(words[1], "/")
	group := "hive.openshift.io/v1"
	switch words[0] {
	case "FleetRegion", "DataPlane":
		group = "hotspare.io/v1alpha1"
	case "Pod":
		group = "v1"
	}
	return corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, EventTime: metav1.NewMicroTime(noon.Add(-ago)),
		InvolvedObject: corev1.ObjectReference{APIVersion: group, Kind: words[0], Namespace: namespace, Name: name},
		Reason:         words[2], Message: message, Type: kind,
	}
}

// again makes an event a series whose last occurrence was the given time ago.
func again(e corev1.Event, times int32, ago time.Duration) corev1.Event {
	e.Series = &corev1.EventSeries{Count: times, LastObservedTime: metav1.NewMicroTime(noon.Add(-ago))}
	return e
}

// old returns an event of the core group, whose times are in other fields.
func old(e corev1.Event, times int32, first, last time.Duration) corev1.Event {
	e.EventTime, e.Count = metav1.MicroTime{}, times
	e.FirstTimestamp, e.LastTimestamp = metav1.NewTime(noon.Add(-first)), metav1.NewTime(noon.Add(-last))
	return e
}

func (g EventGroup) inWords() string {
	words := fmt.Sprintf("%s %s/%s %s", g.Kind, g.Namespace, g.Name, g.Reason)
	if g.Warning {
		words = "!" + words
	}
	words += " " + g.At.Text
	if g.Count > 1 {
		words += fmt.Sprintf(" ×%d", g.Count)
	}
	if !g.First.Zero() {
		words += " first " + g.First.Text
	}
	return words
}

func some() []corev1.Event {
	mark := corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x"}} // what the cache keeps of an event about another kind
	return []corev1.Event{
		happens("ClusterPool default/dev Created: dev-1", 3*time.Minute),
		happens("!ClusterDeployment dev-1/dev-1 FailedToStart: no machine", 2*time.Minute),
		happens("Pod default/x Pulled: image", time.Minute), mark,
		happens("FleetRegion fleet/Laptop DataPlaneCreated: data plane a", 90*time.Second),
	}
}

func TestActivity(t *testing.T) {
	for name, c := range map[string]struct {
		events []corev1.Event
		query  string
		want   []string
	}{
		"nothing": {nil, "", nil},
		"of hotspare's kinds, newest first": {some(), "", []string{
			"FleetRegion fleet/Laptop DataPlaneCreated 90s", "!ClusterDeployment dev-1/dev-1 FailedToStart 2m", "ClusterPool default/dev Created 3m",
		}},
		"by kind":                         {some(), "kind=ClusterPool", []string{"ClusterPool default/dev Created 3m"}},
		"by part of a name, in any case":  {some(), "name=lap", []string{"FleetRegion fleet/Laptop DataPlaneCreated 90s"}},
		"warnings only":                   {some(), "type=Warning", []string{"!ClusterDeployment dev-1/dev-1 FailedToStart 2m"}},
		"all together":                    {some(), "type=Warning&kind=ClusterPool&name=dev", nil},
		"another type is as if none were": {some()[:1], "type=Sometimes", []string{"ClusterPool default/dev Created 3m"}},
		"a series is counted, and by its last time": {
			[]corev1.Event{again(happens("ClusterPool default/dev Created: dev-1", time.Hour), 7, time.Minute), happens("ClusterPool default/dev Created: dev-2", 2*time.Minute)},
			"",
			[]string{"ClusterPool default/dev Created 60s ×7 first 60m", "ClusterPool default/dev Created 2m"},
		},
		"so is one of the core group": {
			[]corev1.Event{old(happens("ClusterPool default/dev Created: dev-1", 0), 3, time.Hour, time.Minute)},
			"",
			[]string{"ClusterPool default/dev Created 60s ×3 first 60m"},
		},
		"the same told by several events is told once": {
			[]corev1.Event{
				happens("ClusterPool default/dev Created: dev-1", time.Minute),
				again(happens("ClusterPool default/dev Created: dev-1", 50*time.Minute), 2, 40*time.Minute),
				happens("ClusterPool default/dev Created: dev-1", 20*time.Minute),
			},
			"",
			[]string{"ClusterPool default/dev Created 60s ×4 first 50m"},
		},
		"another message, type or place is something else": {
			[]corev1.Event{
				happens("ClusterPool default/dev Created: dev-1", 1*time.Minute), happens("ClusterPool default/dev Created: dev-2", 2*time.Minute),
				happens("!ClusterPool default/dev Created: dev-1", 3*time.Minute), happens("ClusterPool team-a/dev Created: dev-1", 4*time.Minute),
			},
			"",
			[]string{"ClusterPool default/dev Created 60s", "ClusterPool default/dev Created 2m", "!ClusterPool default/dev Created 3m", "ClusterPool team-a/dev Created 4m"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			q, err := url.ParseQuery(c.query)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, h := range NewActivity(c.events, ParseFilter(q), "", noon).Events {
				got = append(got, h.inWords())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOlderEventsAreAStepAway(t *testing.T) {
	var list []corev1.Event
	for n := range 450 {
		list = append(list, happens(fmt.Sprintf("ClusterPool default/dev Created: dev-%d", n), time.Duration(n)*time.Second))
	}
	for show, want := range map[string]string{
		"":               "200 shown, 250 hidden, /activity?name=dev&namespace=default&show=400",
		"show=-1":        "200 shown, 250 hidden, /activity?name=dev&namespace=default&show=400",
		"show=x":         "200 shown, 250 hidden, /activity?name=dev&namespace=default&show=400",
		"show=400":       "400 shown, 50 hidden, /activity?name=dev&namespace=default&show=600",
		"show=999999999": "450 shown, 0 hidden, ",
	} {
		q, err := url.ParseQuery("name=dev&" + show)
		if err != nil {
			t.Fatal(err)
		}
		a := NewActivity(list, ParseFilter(q), "default", noon)
		if got := fmt.Sprintf("%d shown, %d hidden, %s", len(a.Events), a.Hidden, a.More); got != want {
			t.Errorf("%s: %s, want %s", show, got, want)
		}
	}
}

func TestNobodyAsksForTooMuch(t *testing.T) {
	if f := ParseFilter(url.Values{"show": {"999999999"}}); f.Limit != maxEvents {
		t.Errorf("%d are shown", f.Limit)
	}
}

func TestLinksOfEvents(t *testing.T) {
	a := NewActivity(some(), Filter{Limit: 10}, "", noon)
	var got []string
	for _, h := range a.Events {
		got = append(got, h.Link+" "+h.FilterLink)
	}
	want := []string{
		"/fleet/fleet/Laptop /activity?kind=FleetRegion&name=Laptop&namespace=fleet",
		" /activity?kind=ClusterDeployment&name=dev-1&namespace=dev-1",
		"/pools/default/dev /activity?kind=ClusterPool&name=dev&namespace=default",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	own := NewActivity(some(), Filter{Kind: "ClusterPool", Name: "dev", Limit: 10}, "default", noon)
	if len(own.Events) != 1 || own.Events[0].FilterLink != "" {
		t.Errorf("the page of its own events leads to itself: %+v", own.Events)
	}
	if all := NewActivity(some(), Filter{Kind: "ClusterPool", Name: "dev", Limit: 10}, "", noon); all.Events[0].FilterLink == "" {
		t.Error("what happens in all namespaces does not lead to what happens in one")
	}
}

// The list keeps the selected kind, so that the user can deselect it.
func TestKindsToChooseFrom(t *testing.T) {
	a := NewActivity(some(), Filter{Kind: "DataPlane"}, "", noon)
	if diff := cmp.Diff([]KindChoice{{"ClusterDeployment", "cluster"}, {"DataPlane", "data plane"}, {"ClusterPool", "pool"}, {"FleetRegion", "region"}}, a.Kinds); diff != "" {
		t.Error(diff)
	}
	if a.Total != 3 || len(a.Events) != 0 {
		t.Errorf("%+v", a)
	}
}

// Each cluster has a namespace of its own. Users look for its events in the namespace of the pool.
func TestEventsOfAPoolsClustersAreNearby(t *testing.T) {
	var clusters []hivev1.ClusterDeployment
	for name, home := range map[string]string{"dev-1": "default", "x-1": "team-a"} {
		cd := hivev1.ClusterDeployment{ObjectMeta: made(name, name, time.Hour)}
		cd.Spec.ClusterPoolRef = &hivev1.ClusterPoolReference{Namespace: home, PoolName: "p"}
		clusters = append(clusters, cd)
	}
	events := []corev1.Event{
		happens("ClusterDeployment dev-1/dev-1 Installed: a", 0), happens("ClusterDeployment x-1/x-1 Installed: b", 0),
		happens("ClusterPool default/p Created: c", 0), happens("ClusterPool team-a/p Created: d", 0),
	}
	got := ""
	for _, e := range SelectNamespaceEvents(events, clusters, "default") {
		got += e.Message
	}
	if want := "ac"; got != want || len(events) != 4 || events[1].Message != "b" {
		t.Errorf("%s, want %s", got, want)
	}
}
