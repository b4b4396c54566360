package claimset

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// The controller must see each heartbeat, and no other change of the metadata.
func TestARenewalStartsAPass(t *testing.T) {
	set := func(timeout, value, other string) *v1alpha1.ClaimSet {
		return &v1alpha1.ClaimSet{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			hivev1.AnnotationHeartbeatTimeout: timeout, hivev1.AnnotationHeartbeat: value, "other": other,
		}}}
	}
	before := set("90s", "1", "a")
	for name, c := range map[string]struct {
		after *v1alpha1.ClaimSet
		want  bool
	}{
		"nothing":            {set("90s", "1", "a"), false},
		"a heartbeat":        {set("90s", "2", "a"), true},
		"another timeout":    {set("60s", "1", "a"), true},
		"another annotation": {set("90s", "1", "b"), false},
		"all are removed":    {&v1alpha1.ClaimSet{}, true},
	} {
		if got := heartbeatChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: c.after}); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
