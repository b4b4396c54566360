package facts

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/inventory"
)

func TestWhatCouldNotBeReadIsPassedOn(t *testing.T) {
	why := hivev1.Reading{Unreadable: "spec.x: 7 is not a string"}
	s, err := Objects{
		Pool:     &hivev1.ClusterPool{},
		Clusters: map[string]*hivev1.ClusterDeployment{"a": {ObjectMeta: metav1.ObjectMeta{Name: "a"}, Reading: why}},
		Claims:   map[string]*hivev1.ClusterClaim{"x": {ObjectMeta: metav1.ObjectMeta{Name: "x"}, Reading: why}},
	}.PoolSnapshot(inventory.Plan{}, time.Time{})
	if err != nil || s.Members[0].Unreadable != why.Unreadable || !s.Claims[0].Unreadable {
		t.Errorf("got %+v, %v", s, err)
	}
	n := Dependency{Kind: ImageSet, Name: "v1", Role: "cluster image set"}
	if got, want := n.UnreadableMessage(why.Unreadable), `cluster image set: ClusterImageSet "v1" cannot be read: spec.x: 7 is not a string: correct it, or change `; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := n.UnreadableMessage(""); got != "" {
		t.Errorf("of what was read it says %q", got)
	}
}
