package customization

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/inventory/lease"
)

// indexer puts indexes onto a fake client.
type indexer struct{ *fake.ClientBuilder }

func (i indexer) IndexField(_ context.Context, o client.Object, field string, keys client.IndexerFunc) error {
	i.WithIndex(o, field, keys)
	return nil
}

func newReader(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	s, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	b := fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).WithStatusSubresource(newSlot(""))
	if err := AddIndexes(t.Context(), indexer{b}); err != nil {
		t.Fatal(err)
	}
	return b.Build()
}

func leased(slot, cluster string) *hivev1.ClusterDeploymentCustomization {
	c := newSlot(slot)
	lease.Acquire(c, types.NamespacedName{Namespace: cluster, Name: cluster}, types.NamespacedName{Namespace: "pools", Name: "p"}, time.Now(), "")
	return c
}

func names(requests []reconcile.Request) string {
	var out []string
	for _, r := range requests {
		out = append(out, r.String())
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func TestWhatAClusterWakes(t *testing.T) {
	r := &Reconciler{Client: newReader(t, leased("a", "x"), leased("b", "y"))}
	plain := newCluster("z", "p", "")
	plain.Finalizers, plain.Spec.ClusterPoolRef = nil, nil
	bound := newCluster("z", "p", "")
	bound.Spec.ClusterPoolRef.CustomizationRef = nil
	for name, tc := range map[string]struct {
		cluster *hivev1.ClusterDeployment
		want    string
	}{
		"the customization that it names and has":   {newCluster("x", "p", "a"), "pools/a"},
		"the one that it has, and another it names": {newCluster("x", "p", "b"), "pools/a pools/b"},
		"one that does not exist":                   {newCluster("z", "p", "gone"), "pools/gone"},
		"it names none, and waits for us":           {bound, "pools/"},
		"it is none of our business":                {plain, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := names(r.customizationsOfCluster(t.Context(), tc.cluster)); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestANameThatAPoolDropsWakesItsCustomization(t *testing.T) {
	on := (&Reconciler{Client: newReader(t, leased("a", "x"), leased("b", "y"))}).enqueueDroppedPending()
	before, after := newPool("p", 1), newPool("p", 1)
	before.Status.Pending, after.Status.Pending = []string{"x", "y", "z"}, []string{"y", "new"}
	for name, tc := range map[string]struct {
		happens func(q workqueue.TypedRateLimitingInterface[reconcile.Request])
		want    string
	}{
		"of a pool that changes": {func(q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			on.Update(t.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: after}, q)
		}, "pools/a"},
		"of a pool that goes": {func(q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			on.Delete(t.Context(), event.DeleteEvent{Object: before}, q)
		}, "pools/a pools/b"},
	} {
		t.Run(name, func(t *testing.T) {
			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer q.ShutDown()
			tc.happens(q)
			var got []reconcile.Request
			for q.Len() > 0 {
				one, _ := q.Get()
				got = append(got, one)
			}
			if names(got) != tc.want {
				t.Errorf("got %q, want %q", names(got), tc.want)
			}
		})
	}
}

func TestWhichChangesOfAClusterMatter(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*hivev1.ClusterDeployment)
		want   bool
	}{
		"it is destroyed":         {func(cd *hivev1.ClusterDeployment) { controllerutil.RemoveFinalizer(cd, hivev1.FinalizerDeprovision) }, true},
		"it is installed":         {func(cd *hivev1.ClusterDeployment) { cd.Spec.Installed = true }, true},
		"its install is given up": {func(cd *hivev1.ClusterDeployment) { stop(cd, time.Now()) }, true},
		"it names another":        {func(cd *hivev1.ClusterDeployment) { cd.Spec.ClusterPoolRef.CustomizationRef.Name = "b" }, true},
		"it can be read no more":  {func(cd *hivev1.ClusterDeployment) { cd.Unreadable = "x" }, true},
		"it wakes up":             {func(cd *hivev1.ClusterDeployment) { cd.Status.PowerState = hivev1.StatusRunning }, false},
		"it is labelled":          {func(cd *hivev1.ClusterDeployment) { cd.Labels = map[string]string{"a": "b"} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			before := newCluster("x", "p", "a")
			controllerutil.AddFinalizer(before, hivev1.FinalizerDeprovision)
			after := before.DeepCopy()
			tc.change(after)
			if got := clusterChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
