package tracker

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newClaim(uid, timeout, value string) *hivev1.ClusterClaim {
	c := &hivev1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "pools", Name: "x", UID: types.UID(uid)}}
	for key, value := range map[string]string{hivev1.AnnotationHeartbeatTimeout: timeout, hivev1.AnnotationHeartbeat: value} {
		if value != "" {
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, key, value)
		}
	}
	return c
}

// Only the first sight of a value counts, by the clock of this process.
func TestObserve(t *testing.T) {
	var h Heartbeats
	for i, step := range []struct {
		uid, timeout, value string
		at, seen            int // seconds; seen is negative if there is no heartbeat
	}{
		{"u", "90s", "", 0, 0},
		{"u", "90s", "", 10, 0},
		{"u", "90s", "first", 20, 20},
		{"u", "90s", "first", 30, 20},
		{"u", "60s", "first", 40, 40}, // somebody has changed the timeout
		{"v", "60s", "first", 50, 50}, // another object of that name
		{"v", "", "first", 60, -1},
		{"v", "60s", "first", 70, 70},
	} {
		c := newClaim(step.uid, step.timeout, step.value)
		got := h.Observe(c, time.Time{}, noon.Add(time.Duration(step.at)*time.Second))
		if want := noon.Add(time.Duration(step.seen) * time.Second); (got == nil) != (step.seen < 0) || got != nil && !got.SeenAt.Equal(want) {
			t.Errorf("step %d: %+v, want it to be seen at %s", i, got, want)
		}
	}
	h.Forget(client.ObjectKeyFromObject(newClaim("v", "", "")))
	if got := h.Observe(newClaim("v", "60s", "first"), noon, noon.Add(time.Hour)); !got.SeenAt.Equal(noon.Add(time.Hour)) || !got.MissingSince.Equal(noon) {
		t.Errorf("a forgotten object: %+v", got)
	}
}

// A condition that is True must be withdrawn, so the object is decided about without a timeout, too.
func TestAnObjectWithoutAHeartbeatWhoseStatusReportsOne(t *testing.T) {
	var h Heartbeats
	if got := h.Observe(newClaim("u", "", ""), noon, noon); got == nil || got.Timeout != "" || !got.MissingSince.Equal(noon) {
		t.Errorf("%+v", got)
	}
}
