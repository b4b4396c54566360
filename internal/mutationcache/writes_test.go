package mutationcache_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"hotspare.io/hotspare/internal/mutationcache"
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
			var w mutationcache.Writes[*corev1.ConfigMap]
			w.RecordWrite(tc.written, noon)
			if got := w.NewestVersion(tc.cached); got.ResourceVersion != tc.want {
				t.Errorf("got version %s, want %s", got.ResourceVersion, tc.want)
			}
		})
	}
}

func TestWhatTheCacheHasSeenIsForgotten(t *testing.T) {
	var w mutationcache.Writes[*corev1.ConfigMap]
	w.RecordWrite(object("a", "1", "9"), noon)
	w.NewestVersion(object("a", "1", "9"))
	if got := w.NewestVersion(object("a", "1", "8")); got.ResourceVersion != "8" {
		t.Error("it is still remembered")
	}
}

func TestForget(t *testing.T) {
	var w mutationcache.Writes[*corev1.ConfigMap]
	w.RecordWrite(object("a", "1", "9"), noon)
	w.ForgetWrite(object("a", "2", "9"))
	w.ForgetWrite(object("b", "1", "9"))
	if got := w.NewestVersion(object("a", "1", "8")); got.ResourceVersion != "9" {
		t.Error("another object was meant")
	}
	w.ForgetWrite(object("a", "1", "7"))
	if got := w.NewestVersion(object("a", "1", "8")); got.ResourceVersion != "8" {
		t.Error("it is still remembered")
	}
}

func TestAnOldWriteIsForgottenWithALaterOne(t *testing.T) {
	var w mutationcache.Writes[*corev1.ConfigMap]
	w.RecordWrite(object("a", "1", "9"), noon)
	w.RecordWrite(object("b", "2", "9"), noon.Add(time.Minute))
	if got := w.NewestVersion(object("a", "1", "8")); got.ResourceVersion != "9" {
		t.Error("it is forgotten after a minute")
	}
	w.RecordWrite(object("c", "3", "9"), noon.Add(time.Minute+time.Second))
	if got := w.NewestVersion(object("a", "1", "8")); got.ResourceVersion != "8" {
		t.Error("it is still remembered")
	}
	if got := w.NewestVersion(object("b", "2", "8")); got.ResourceVersion != "9" {
		t.Error("a newer one is forgotten")
	}
}

func TestForgetKey(t *testing.T) {
	var w mutationcache.Writes[*corev1.ConfigMap]
	w.RecordWrite(object("a", "1", "9"), noon)
	w.ForgetKey(types.NamespacedName{Namespace: "n", Name: "a"})
	if got := w.NewestVersion(object("a", "1", "8")); got.ResourceVersion != "8" {
		t.Error("it is still remembered")
	}
}

func TestAhead(t *testing.T) {
	var w mutationcache.Writes[*corev1.ConfigMap]
	for _, o := range []*corev1.ConfigMap{
		object("behind", "1", "10"), object("caught-up", "2", "9"), object("further", "3", "9"), object("another", "4", "9"),
		object("unseen", "5", "10"), object("not-mine", "6", "11"), object("not-mine-unseen", "7", "11"),
	} {
		w.RecordWrite(o, noon)
	}
	cache := map[string]*corev1.ConfigMap{
		"behind": object("behind", "1", "9"), "caught-up": object("caught-up", "2", "9"), "further": object("further", "3", "12"),
		"another": object("another", "44", "3"), "not-mine": object("not-mine", "6", "8"), "unwritten": object("unwritten", "8", "8"),
	}
	cached := func(o *corev1.ConfigMap) (*corev1.ConfigMap, bool) { c, found := cache[o.Name]; return c, found }
	mine := func(o *corev1.ConfigMap) bool { return !strings.HasPrefix(o.Name, "not-mine") }
	for range 2 { // what the cache has is forgotten; what it is behind of is not
		newer, unseen := w.AheadOfCache(cached, mine, noon.Add(time.Second))
		if len(newer) != 1 || newer[0].Name != "behind" || newer[0].ResourceVersion != "10" {
			t.Errorf("newer is %v, want behind", newer)
		}
		if len(unseen) != 1 || unseen[0].Name != "unseen" {
			t.Errorf("unseen is %v, want unseen", unseen)
		}
	}
	for name, version := range map[string]string{"caught-up": "8", "further": "8", "not-mine": "11"} {
		if got := w.NewestVersion(object(name, cacheUID(cache, name), "8")); got.ResourceVersion != version {
			t.Errorf("%s: version %s is remembered, want %s", name, got.ResourceVersion, version)
		}
	}
	if newer, unseen := w.AheadOfCache(cached, mine, noon.Add(2*time.Minute)); len(newer)+len(unseen) != 0 {
		t.Errorf("after a while what was not seen counts as deleted: %v %v", newer, unseen)
	}
}

func cacheUID(cache map[string]*corev1.ConfigMap, name string) string { return string(cache[name].UID) }
