package clusterpool

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

func TestANewPoolOfTheSameNameIsNotRemembered(t *testing.T) {
	var all poolCaches
	p := &hivev1.ClusterPool{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p", UID: "1"}}
	all.getOrAddPool(p).version = "7"
	all.getOrAddPool(p).waiting.Store(true)
	key := types.NamespacedName{Namespace: "n", Name: "p"}
	if all.getOrAddPool(p).version != "7" || !all.hasWaitingClaims(key) {
		t.Error("the pool is not remembered")
	}
	next := p.DeepCopy()
	next.UID = "2"
	if all.getOrAddPool(next).version != "" || all.hasWaitingClaims(key) {
		t.Error("a new pool has the memory of the one before")
	}
	all.remove(key)
	if all.load(key) != nil {
		t.Error("a pool that is gone is remembered")
	}
}
