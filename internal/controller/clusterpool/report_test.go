package clusterpool_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/pool/facts"
)

// While claims are served, counts are told once a second; whatever else there is
// to tell, at once.
func TestCountsAreToldOnceASecondWhileClaimsAreServed(t *testing.T) {
	none := int32(0)
	p := newPool(8, 8)
	p.Spec.MaxConcurrent = &none // nothing is made
	set, err := facts.ReadSettings(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	objects := []client.Object{p, imageSet()}
	for i := range 8 {
		name := fmt.Sprintf("p-%d", i)
		objects = append(objects, &hivev1.ClusterDeployment{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: name, Name: name, CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour)),
				Annotations: map[string]string{hivev1.AnnotationPoolVersion: set.Version},
			},
			Spec: hivev1.ClusterDeploymentSpec{
				Installed: true, PowerState: hivev1.PowerRunning,
				ClusterPoolRef: &hivev1.ClusterPoolReference{Namespace: p.Namespace, PoolName: p.Name},
			},
			Status: hivev1.ClusterDeploymentStatus{PowerState: hivev1.StatusRunning},
		})
	}
	l := newLine(t, objects...)
	p = p.DeepCopy()
	told := func(after time.Duration) string {
		t.Helper()
		l.clock.SetTime(l.clock.Now().Add(after))
		res, err := l.pools.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(p)})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%d of generation %d, again after %v", p.Status.Ready, p.Status.ObservedGeneration, res.RequeueAfter)
	}
	claimed := func(name string) {
		t.Helper()
		if err := l.Create(t.Context(), waitingSince(name, 0)); err != nil {
			t.Fatal(err)
		}
	}
	check := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	check("at first", told(0), "8 of generation 0, again after 0s")
	claimed("a")
	check("the first claim", told(time.Minute), "7 of generation 0, again after 0s")
	claimed("b")
	check("the next, soon after it", told(300*time.Millisecond), "7 of generation 0, again after 700ms")
	check("nothing new, still soon after it", told(699*time.Millisecond), "7 of generation 0, again after 1ms")
	check("a second has passed", told(time.Millisecond), "6 of generation 0, again after 0s")
	claimed("c")
	p.Spec.RunningCount, p.Generation = 7, 2
	if err := l.Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	check("an edit is told at once", told(time.Millisecond), "5 of generation 2, again after 0s")
}
