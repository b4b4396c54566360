package clusterclaim

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
)

// Who creates a pool and then a claim is not told that the pool does not exist,
// though the watch of claims may be faster.
func TestAClaimIsNotToldThatItsNewPoolDoesNotExist(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := hivev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	now := clocktesting.NewFakePassiveClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	for name, tc := range map[string]struct {
		exists bool
		want   string
	}{
		"a pool that the cache does not show yet": {true, hivev1.ReasonNoClusters},
		"a pool that there is not":                {false, hivev1.ReasonPoolNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &hivev1.ClusterClaim{
				ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "x"}, Spec: hivev1.ClusterClaimSpec{ClusterPoolName: "p"},
			}
			cached := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(claim).WithObjects(claim).Build()
			live := fake.NewClientBuilder().WithScheme(scheme)
			if tc.exists {
				live.WithObjects(&hivev1.ClusterPool{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p"}})
			}
			r := &Reconciler{Client: cached, Live: live.Build(), Clock: now, Events: &events.FakeRecorder{}}
			if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(claim)}); err != nil {
				t.Fatal(err)
			}
			if err := cached.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
				t.Fatal(err)
			}
			c := condition.Find(claim.Status.Conditions, hivev1.ClaimPending)
			if c == nil || c.Reason != tc.want {
				t.Errorf("Pending says %v, want reason %s", c, tc.want)
			}
		})
	}
}
