package fresh_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"hotspare.io/hotspare/internal/fresh"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func object(name, uid, version string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: types.UID(uid), ResourceVersion: version}}
}

func TestNewest(t *testing.T) {
	tests := map[string]struct {
		written, cached *corev1.ConfigMap
		want            string
	}{
		"a cache that is behind shows what was written":      {object("a", "1", "9"), object("a", "1", "8"), "9"},
		"versions are numbers, not words":                    {object("a", "1", "10"), object("a", "1", "9"), "10"},
		"a cache that has caught up is believed":             {object("a", "1", "9"), object("a", "1", "9"), "9"},
		"a cache that is ahead is believed":                  {object("a", "1", "9"), object("a", "1", "12"), "12"},
		"another object of the name is not what was written": {object("a", "1", "9"), object("a", "2", "3"), "3"},
		"versions that cannot be compared: the cache":        {object("a", "1", "x"), object("a", "1", "8"), "8"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var w fresh.Writes[*corev1.ConfigMap]
			w.Note(tc.written, noon)
			if got := w.Newest(tc.cached); got.ResourceVersion != tc.want {
				t.Errorf("got version %s, want %s", got.ResourceVersion, tc.want)
			}
		})
	}
}

func TestWhatTheCacheHasSeenIsForgotten(t *testing.T) {
	var w fresh.Writes[*corev1.ConfigMap]
	w.Note(object("a", "1", "9"), noon)
	w.Newest(object("a", "1", "9"))
	if got := w.Newest(object("a", "1", "8")); got.ResourceVersion != "8" {
		t.Error("it is still remembered")
	}
}

func TestForget(t *testing.T) {
	var w fresh.Writes[*corev1.ConfigMap]
	w.Note(object("a", "1", "9"), noon)
	w.Forget(object("a", "2", "9"))
	w.Forget(object("b", "1", "9"))
	if got := w.Newest(object("a", "1", "8")); got.ResourceVersion != "9" {
		t.Error("another object was meant")
	}
	w.Forget(object("a", "1", "7"))
	if got := w.Newest(object("a", "1", "8")); got.ResourceVersion != "8" {
		t.Error("it is still remembered")
	}
}

func TestUnseen(t *testing.T) {
	var w fresh.Writes[*corev1.ConfigMap]
	w.Note(object("a", "1", "9"), noon)
	w.Note(object("b", "2", "10"), noon)
	w.Note(object("c", "3", "11"), noon)
	seen := func(o *corev1.ConfigMap) bool { return o.Name == "a" }
	mine := func(o *corev1.ConfigMap) bool { return o.Name != "c" }
	if got := w.Unseen(seen, mine, noon.Add(time.Second)); len(got) != 1 || got[0].Name != "b" {
		t.Errorf("got %v, want b", got)
	}
	if got := w.Unseen(seen, mine, noon.Add(2*time.Minute)); len(got) != 0 {
		t.Errorf("after a while it counts as deleted: %v", got)
	}
}
