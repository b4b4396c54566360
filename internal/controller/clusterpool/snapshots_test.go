package clusterpool_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/controller/clusterpool"
	"hotspare.io/hotspare/internal/metrics"
	"hotspare.io/hotspare/internal/pool"
)

// member is a cluster of a pool that runs, changed.
func member(poolName, name string, change func(*hivev1.ClusterDeployment)) *hivev1.ClusterDeployment {
	cd := &hivev1.ClusterDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name},
		Spec: hivev1.ClusterDeploymentSpec{
			Installed: true, PowerState: hivev1.PowerRunning,
			ClusterPoolRef: &hivev1.ClusterPoolReference{Namespace: "pools", PoolName: poolName},
		},
		Status: hivev1.ClusterDeploymentStatus{PowerState: hivev1.StatusRunning},
	}
	change(cd)
	return cd
}

func TestSnapshotsAreThoseOfEachPool(t *testing.T) {
	q := newPool(1, 0)
	q.Name = "q"
	strange := claim("strange").(*hivev1.ClusterClaim)
	strange.Spec.ClusterPoolName = "q"
	elsewhere := claim("elsewhere")
	elsewhere.SetNamespace("other")
	c := cacheOf(t, newPool(3, 1), q, claim("a"), strange, elsewhere,
		member("p", "p-1", func(*hivev1.ClusterDeployment) {}),
		member("p", "p-2", func(cd *hivev1.ClusterDeployment) { cd.Spec.ClusterPoolRef.ClaimName = "gone" }),
		member("p", "p-3", func(cd *hivev1.ClusterDeployment) { cd.Spec.Installed = false }),
		member("q", "q-1", func(cd *hivev1.ClusterDeployment) { cd.Spec.PowerState = hivev1.PowerHibernating }),
		member("q", "alone", func(cd *hivev1.ClusterDeployment) { cd.Spec.ClusterPoolRef = nil }),
	)
	got, err := clusterpool.ListSnapshots(t.Context(), c, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	type counts struct {
		Size, Given, Waiting int
		Members              map[pool.Phase]int
	}
	seen := map[types.NamespacedName]counts{}
	for p, s := range got {
		census := s.CountMembersAndClaims()
		seen[p] = counts{s.Settings.Size, census.Given, census.Waiting, census.Members}
	}
	want := map[types.NamespacedName]counts{
		{Namespace: "pools", Name: "p"}: {3, 1, 1, map[pool.Phase]int{pool.Assignable: 1, pool.Claimed: 1, pool.Installing: 1}},
		{Namespace: "pools", Name: "q"}: {1, 0, 1, map[pool.Phase]int{pool.Standby: 1}},
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
}

func TestInventoriesAreThoseOfPoolsThatHaveOne(t *testing.T) {
	p, q := newPool(3, 1), newPool(1, 0)
	q.Name = "q"
	p.Status.Inventory = map[string]hivev1.InventoryEntryStatus{
		"a": {Status: hivev1.InventoryReserved}, "b": {Status: hivev1.InventoryMissing}, "c": {Status: hivev1.InventoryMissing},
	}
	got, err := clusterpool.CountInventories(t.Context(), cacheOf(t, p, q))
	if err != nil {
		t.Fatal(err)
	}
	want := map[types.NamespacedName]metrics.Inventory{
		{Namespace: "pools", Name: "p"}: {hivev1.InventoryReserved: 1, hivev1.InventoryMissing: 2},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// cacheOf is a client with the indexes of a manager's.
func cacheOf(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	b := fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(objects...)
	if err := clusterpool.AddIndexes(t.Context(), indexer{b}); err != nil {
		t.Fatal(err)
	}
	return b.Build()
}

// indexer gives a fake client the indexes that controllers ask for.
type indexer struct{ *fake.ClientBuilder }

func (i indexer) IndexField(_ context.Context, o client.Object, field string, keys client.IndexerFunc) error {
	i.WithIndex(o, field, keys)
	return nil
}
