package pool

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/explain/poolplan"
	"hotspare.io/hotspare/internal/manifest"
	"hotspare.io/hotspare/internal/pool"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestManyCreationsAreOneLine(t *testing.T) {
	f := manifestPlan{Evaluation: poolplan.Evaluation{Plan: pool.Decide(pool.Snapshot{Settings: pool.Settings{Size: 2_000_000}, Now: now})}}
	if rows := BuildStepTable(f.Evaluation).Rows; len(rows) != 1 || rows[0][0] != "create 10000 clusters: size is 2000000" {
		t.Errorf("got %v", rows)
	}
}

func TestOnlyAPoolThatIsNotBeingDeletedLacksAnything(t *testing.T) {
	p := &hivev1.ClusterPool{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p"}}
	p.Spec.ImageSetRef.Name = "v1"
	key := types.NamespacedName{Namespace: "n", Name: "p"}
	set := &manifest.Set{Pools: map[types.NamespacedName]*hivev1.ClusterPool{key: p}}
	q := &planOptions{complete: true, now: now}
	for _, deleted := range []bool{false, true} {
		if deleted {
			p.DeletionTimestamp = &metav1.Time{Time: now}
		}
		f, err := q.planPool(set, key)
		if err != nil || (len(f.Missing) == 0) != deleted {
			t.Errorf("deleted %t: missing %q, %v", deleted, f.Missing, err)
		}
	}
}
