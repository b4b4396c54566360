package poolplan_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/claimset"
	"hotspare.io/hotspare/internal/explain/poolplan"
)

// A set says where it is in the queue and what it lacks, and a claim behind it for whom running clusters are kept.
func TestASetInTheQueue(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	created := metav1.NewTime(at.Add(-time.Hour))
	most := int32(2)
	set := v1alpha1.ClaimSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ci", Name: "s", UID: "u", CreationTimestamp: created}, Spec: v1alpha1.ClaimSetSpec{Size: 2}}
	format := func(_, text string, _ ...any) string { return text }
	explain := func(most *int32, size int32) (poolplan.Set, string) {
		set.Spec.Size = size
		p := &hivev1.ClusterPool{ObjectMeta: metav1.ObjectMeta{Namespace: "ci", Name: "p"}, Spec: hivev1.ClusterPoolSpec{MaxSize: most}}
		cd := hivev1.ClusterDeployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "c", Name: "c", CreationTimestamp: created},
			Spec: hivev1.ClusterDeploymentSpec{
				Installed: true, PowerState: hivev1.PowerRunning, ClusterPoolRef: &hivev1.ClusterPoolReference{Namespace: "ci", PoolName: "p"},
			},
			Status: hivev1.ClusterDeploymentStatus{PowerState: hivev1.StatusRunning},
		}
		later := metav1.NewTime(created.Add(time.Minute))
		claims := []hivev1.ClusterClaim{{ObjectMeta: metav1.ObjectMeta{Namespace: "ci", Name: "x", CreationTimestamp: later}, Spec: hivev1.ClusterClaimSpec{ClusterPoolName: "p"}}}
		for i := range int(size) {
			claims = append(claims, hivev1.ClusterClaim{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "ci", Name: claimset.ClaimName("s", i), CreationTimestamp: later, OwnerReferences: []metav1.OwnerReference{claimset.NewOwnerReference(&set)},
				},
				Spec: hivev1.ClusterClaimSpec{ClusterPoolName: "p"},
			})
		}
		f := poolplan.New(p, claims, []hivev1.ClusterDeployment{cd}, nil)
		f.Sets, f.SetsUnknown = claimset.ByUID([]v1alpha1.ClaimSet{set}), false
		if err := f.Decide(at); err != nil {
			t.Fatal(err)
		}
		return f.ExplainSet("s", int(size)), f.ExplainClaim(&claims[0], format).Message
	}
	got, behind := explain(&most, 2)
	if want := "it needs 2 clusters at once, and is the first in the queue; running clusters kept for it: 1; on the way: a new one is created"; got.Message != want || got.Position != 1 {
		t.Errorf("got %+v, want %q", got, want)
	}
	if want := "running clusters kept for ClaimSet s, which is before it: 1; "; !strings.HasPrefix(behind, want) {
		t.Errorf("the claim behind it: %q", behind)
	}
	got, behind = explain(&most, 3)
	if want := "the pool cannot serve it, and serves the claims behind it: it needs 3 clusters, and maxSize is 2"; got.Message != want || behind != "cluster c runs, and is bound to it now" {
		t.Errorf("got %+v and %q, want %q", got, behind, want)
	}
}
