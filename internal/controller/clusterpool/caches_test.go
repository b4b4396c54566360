package clusterpool

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/pool/facts"
)

// What is remembered is what would be read, whatever changes and whatever the time.
func TestRememberedMembersAreThoseOfFacts(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var all poolCaches
	p := &hivev1.ClusterPool{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p"}}
	clusters := map[string]*hivev1.ClusterDeployment{}
	remembered := 0
	for step := range 20_000 {
		now = now.Add(time.Duration(dice.IntN(5)) * time.Second)
		name := fmt.Sprintf("c%d", dice.IntN(20))
		switch {
		case dice.IntN(3) > 0 && clusters[name] != nil:
		case dice.IntN(8) == 0:
			delete(clusters, name)
		default:
			clusters[name] = someCluster(dice, name, now)
		}
		if dice.IntN(500) == 0 {
			all.remove(types.NamespacedName{Namespace: "n", Name: "p"})
		}
		r := all.getOrAddPool(p)
		for _, cd := range clusters {
			if known := r.members.load(cd.Name); known != nil && known.cluster == cd {
				remembered++
			}
			if got, want := r.getMember(cd, now), facts.ReadMember(cd, now); got != want {
				t.Fatalf("step %d: %s is read as\n%+v\nwant\n%+v", step, cd.Name, got, want)
			}
		}
		if r.removeDeletedClusters(clusters, nil); len(r.members.m) > len(clusters) {
			t.Fatalf("step %d: %d are remembered of %d", step, len(r.members.m), len(clusters))
		}
	}
	if remembered == 0 {
		t.Error("nothing was ever remembered")
	}
}

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

// someCluster is one in any state in which the time may matter.
func someCluster(dice *rand.Rand, name string, now time.Time) *hivev1.ClusterDeployment {
	cd := &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(now)}}
	cd.Spec.Installed, cd.Spec.PowerState = dice.IntN(4) > 0, hivev1.PowerRunning
	if dice.IntN(2) == 0 {
		condition.Set(&cd.Status.Conditions, hivev1.ClusterHibernating, "False", hivev1.ReasonFailedToStart, "", now)
	}
	if dice.IntN(3) > 0 {
		began, deadline := metav1.NewTime(now), metav1.NewTime(now.Add(time.Duration(dice.IntN(60))*time.Second))
		cd.Status.PowerTransition = &hivev1.PowerTransition{Target: hivev1.PowerRunning, StartedAt: began}
		if dice.IntN(4) > 0 {
			cd.Status.PowerTransition.Deadline = &deadline
		}
		if dice.IntN(4) == 0 {
			cd.Status.PowerTransition.FinishedAt = &began
		}
	}
	return cd
}
