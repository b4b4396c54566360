package condition_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestSet(t *testing.T) {
	var list []hivev1.Condition
	set := func(status corev1.ConditionStatus, reason, message string, at time.Duration) bool {
		return condition.Set(&list, "Ready", status, reason, message, noon.Add(at))
	}
	if !set(corev1.ConditionFalse, "Waiting", "not yet", 0) {
		t.Error("a new condition is a change")
	}
	if set(corev1.ConditionFalse, "Waiting", "not yet", time.Hour) {
		t.Error("the same again is none")
	}
	if !set(corev1.ConditionFalse, "Waiting", "soon", time.Hour) {
		t.Error("another message is a change")
	}
	c := condition.Find(list, "Ready")
	if !c.LastTransitionTime.Equal(ptrTo(noon)) || !c.LastProbeTime.Equal(ptrTo(noon.Add(time.Hour))) {
		t.Errorf("only the probe time moves while the status stays: %+v", c)
	}
	set(corev1.ConditionTrue, "Done", "", 2*time.Hour)
	if c := condition.Find(list, "Ready"); !c.LastTransitionTime.Equal(ptrTo(noon.Add(2 * time.Hour))) {
		t.Errorf("the transition time moves with the status: %+v", c)
	}
	if !condition.IsTrue(list, "Ready") || condition.IsTrue(list, "Other") {
		t.Error("True is for what is there and true")
	}
}

func TestConditionsAreSortedByType(t *testing.T) {
	var list []hivev1.Condition
	for _, typ := range []string{"B", "C", "A"} {
		condition.Set(&list, typ, corev1.ConditionTrue, "R", "", noon)
	}
	var got []string
	for _, c := range list {
		got = append(got, c.Type)
	}
	if strings.Join(got, "") != "ABC" {
		t.Errorf("got %v", got)
	}
}

func TestALongMessageIsCut(t *testing.T) {
	var list []hivev1.Condition
	condition.Set(&list, "A", corev1.ConditionTrue, "R", strings.Repeat("é", 5000), noon)
	if got := list[0].Message; len(got) > 4100 || !strings.HasSuffix(got, "é…") {
		t.Errorf("%d bytes, ending in %q", len(got), got[len(got)-6:])
	}
}

func ptrTo(t time.Time) *metav1.Time { at := metav1.NewTime(t); return &at }

func TestApply(t *testing.T) {
	var list []hivev1.Condition
	if condition.Apply(&list, "Ready", condition.Value{}, noon) || len(list) > 0 {
		t.Errorf("a value that says nothing changed the list: %+v", list)
	}
	for _, v := range []condition.Value{condition.True("Done", "a"), condition.False("Failed", "b"), condition.Unknown("Waiting", "c")} {
		if !condition.Apply(&list, "Ready", v, noon) || condition.Apply(&list, "Ready", v, noon) {
			t.Errorf("%+v is a change the first time, and none the second", v)
		}
		c := condition.Find(list, "Ready")
		if got := (condition.Value{Status: c.Status, Reason: c.Reason, Message: c.Message}); got != v || got.IsTrue() != (v.Reason == "Done") {
			t.Errorf("Apply of %+v wrote %+v", v, got)
		}
	}
}
