package clusterpool

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/bootstrap"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/gate"
	"hotspare.io/hotspare/internal/pool"
)

// observedHub returns a hub with a pool that has these clusters and a claim, and an execution that has observed them.
func observedHub(t *testing.T, clusters ...*hivev1.ClusterDeployment) (client.Client, *execution) {
	t.Helper()
	s := runtime.NewScheme()
	if err := hivev1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	p := &hivev1.ClusterPool{ObjectMeta: metav1.ObjectMeta{Namespace: "pools", Name: "p"}}
	claim := &hivev1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "pools", Name: "x"}, Spec: hivev1.ClusterClaimSpec{ClusterPoolName: "p"}}
	objects := []client.Object{p, claim}
	for _, cd := range clusters {
		cd.Labels = map[string]string{hivev1.LabelPoolNamespace: "pools", hivev1.LabelPoolName: "p"}
		objects = append(objects, cd)
	}
	c := fakeclient.NewClientBuilder().WithScheme(s).WithObjects(objects...).WithStatusSubresource(&hivev1.ClusterDeployment{}).Build()
	seen := &observation{pool: p, clusters: map[string]*hivev1.ClusterDeployment{}, claims: map[string]*hivev1.ClusterClaim{"x": claim}, cache: &poolCache{}}
	for _, o := range objects {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			t.Fatal(err)
		}
	}
	for _, cd := range clusters {
		seen.clusters[cd.Name] = cd.DeepCopy()
	}
	r := &Reconciler{Client: c, Live: c, Clock: clocktesting.NewFakePassiveClock(noon), Events: events.NewFakeRecorder(10)}
	return c, newExecution(r, seen)
}

func spare(name string) *hivev1.ClusterDeployment {
	cd := &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name}}
	cd.Spec.ClusterPoolRef = &hivev1.ClusterPoolReference{Namespace: "pools", PoolName: "p"}
	return cd
}

// A spare that is older than the steps begins them by one write, after which no verdict of its gates counts.
func TestThePoolLetsASpareBeginTheSteps(t *testing.T) {
	a := spare("a")
	a.Status.Gates = &hivev1.GateRecord{Version: "g", Passed: true}
	condition.Set(&a.Status.Conditions, hivev1.ClusterGatesPassed, "True", hivev1.ReasonGatesPassed, "", noon)
	c, e := observedHub(t, a, spare("b"))
	e.seen.required.Steps = bootstrap.Requirement{Version: "v"}
	plan := pool.Plan{Steps: []pool.Step{{Verb: pool.Bootstrap, Cluster: "a"}}}
	if err := e.applySteps(t.Context(), plan, stagesBeforeStatus); err != nil {
		t.Fatal(err)
	}
	var got hivev1.ClusterDeployment
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(a), &got); err != nil {
		t.Fatal(err)
	}
	if r := got.Status.Bootstrap; r == nil || r.Version != "v" || gate.PassedVersion(&got) != "" || condition.IsTrue(got.Status.Conditions, hivev1.ClusterGatesPassed) {
		t.Errorf("its status is %+v", got.Status)
	}
}

// Another process has let a cluster begin the steps, and the cache does not show that, or not even the cluster. A cluster that
// only has the labels of the pool does not matter.
func TestThePoolLetsNoSpareBeginTheStepsBesideAnotherProcess(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*execution, *hivev1.ClusterDeployment)
		begins bool
	}{
		"a cluster that it has seen":     {func(*execution, *hivev1.ClusterDeployment) {}, false},
		"a cluster that it has not seen": {func(e *execution, b *hivev1.ClusterDeployment) { delete(e.seen.clusters, b.Name) }, false},
		"a cluster without a pool":       {func(_ *execution, b *hivev1.ClusterDeployment) { b.Spec.ClusterPoolRef = nil }, true},
	} {
		c, e := observedHub(t, spare("a"), spare("b"))
		e.seen.required.Steps = bootstrap.Requirement{Version: "v"}
		b := e.seen.clusters["b"].DeepCopy()
		tc.change(e, b)
		if err := c.Update(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		b.Status.Bootstrap = &hivev1.BootstrapRecord{Version: "v"}
		if err := c.Status().Update(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		plan := pool.Plan{Steps: []pool.Step{{Verb: pool.Bootstrap, Cluster: "a"}}}
		if err := e.applySteps(t.Context(), plan, stagesBeforeStatus); (fault.KindOf(err) == fault.Conflict) == tc.begins {
			t.Errorf("%s: the error is %v", name, err)
		}
		var got hivev1.ClusterDeployment
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "a"}, &got); err != nil || (got.Status.Bootstrap != nil) != tc.begins {
			t.Errorf("%s: a has begun: %+v, %v", name, got.Status.Bootstrap, err)
		}
	}
}

// The hub has refused for a while to write into a claim which cluster it has: the lifetime of the claim counts from when it
// gets the cluster.
func TestALongReservationIsRenewed(t *testing.T) {
	for reserved, want := range map[time.Duration]time.Duration{30 * time.Second: 30 * time.Second, 3 * time.Hour: 0} {
		a := spare("a")
		a.Spec.ClusterPoolRef.ClaimName = "x"
		a.Spec.ClusterPoolRef.ClaimedTimestamp = &metav1.Time{Time: noon.Add(-reserved)}
		c, e := observedHub(t, a)
		if err := e.bindCluster(t.Context(), pool.Step{Verb: pool.Bind, Cluster: "a", Claim: "x"}); err != nil {
			t.Fatal(err)
		}
		var got hivev1.ClusterDeployment
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(a), &got); err != nil {
			t.Fatal(err)
		}
		if at := got.Spec.ClusterPoolRef.ClaimedTimestamp; !at.Time.Equal(noon.Add(-want)) {
			t.Errorf("reserved for %s: claimed at %s", reserved, at)
		}
		var claim hivev1.ClusterClaim
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "pools", Name: "x"}, &claim); err != nil || claim.Spec.Namespace != "a" {
			t.Errorf("the claim has cluster %q, %v", claim.Spec.Namespace, err)
		}
	}
}
