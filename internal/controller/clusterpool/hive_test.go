package clusterpool_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
)

// Hive's defects that the pool's controller is built not to have, as far as a plan
// alone does not show it. All of them, with their tests, are in docs/hive-parity.md.

// stored is an unclaimed cluster of pool p, installed and asleep.
func stored(name string, change func(*hivev1.ClusterDeployment)) *hivev1.ClusterDeployment {
	cd := &hivev1.ClusterDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name, CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour))},
		Spec: hivev1.ClusterDeploymentSpec{
			Installed: true, PowerState: hivev1.PowerHibernating,
			ClusterPoolRef: &hivev1.ClusterPoolReference{Namespace: "pools", PoolName: "p"},
		},
		Status: hivev1.ClusterDeploymentStatus{PowerState: hivev1.StatusHibernating},
	}
	if change != nil {
		change(cd)
	}
	return cd
}

func awake(cd *hivev1.ClusterDeployment) {
	cd.Spec.PowerState, cd.Status.PowerState = hivev1.PowerRunning, hivev1.StatusRunning
}

// look is one pass of the pool's controller.
func (l *line) look(t *testing.T) (ctrl.Result, error) {
	t.Helper()
	return l.pools.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(newPool(0, 0))})
}

// names of the namespaces that were made for clusters, and of the clusters.
func (l *line) names(t *testing.T) (spaces, clusters []string) {
	t.Helper()
	var ns corev1.NamespaceList
	var cds hivev1.ClusterDeploymentList
	if err := errors.Join(l.List(t.Context(), &ns), l.List(t.Context(), &cds)); err != nil {
		t.Fatal(err)
	}
	for _, o := range ns.Items {
		spaces = append(spaces, o.Name)
	}
	for _, o := range cds.Items {
		clusters = append(clusters, o.Name)
	}
	return spaces, clusters
}

// B2, B3: what fails in the middle is tried again soon, under the same names.
func TestACreationThatFailsLeavesNothingBehindAndIsTriedAgain(t *testing.T) {
	l := newLine(t, newPool(2, 0), imageSet())
	refused := errors.New("the admission of others is down")
	down := true
	l.pools.Client = interceptor.NewClient(l.Client.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if _, ok := o.(*hivev1.ClusterDeployment); ok && down {
				return refused
			}
			return c.Create(ctx, o, opts...)
		},
	})
	serial := 0
	l.pools.Suffix = func() string { serial++; return fmt.Sprintf("%05d", serial) }
	want := []string{"p-00001", "p-00002"}
	for range 5 {
		if res, err := l.look(t); !errors.Is(err, refused) {
			t.Fatalf("a pass that failed wants to be repeated: got %+v, %v", res, err)
		}
		if spaces, _ := l.names(t); !slices.Equal(spaces, want) {
			t.Fatalf("there are namespaces %v, want %v", spaces, want)
		}
	}
	down = false
	if _, err := l.look(t); err != nil {
		t.Fatal(err)
	}
	if spaces, clusters := l.names(t); !slices.Equal(spaces, want) || !slices.Equal(clusters, want) {
		t.Errorf("there are namespaces %v and clusters %v, want %v", spaces, clusters, want)
	}
}

// B2, B3, B29: a pool with a missing dependency checks again without an event.
func TestAPoolThatLacksSomethingLooksAgain(t *testing.T) {
	l := newLine(t, newPool(1, 0))
	res, err := l.look(t)
	if err != nil || res.RequeueAfter <= 0 || res.RequeueAfter > 5*time.Second {
		t.Fatalf("got %+v, %v", res, err)
	}
	if err := l.Create(t.Context(), imageSet()); err != nil {
		t.Fatal(err)
	}
	l.clock.SetTime(noon.Add(6 * time.Second))
	if _, err := l.look(t); err != nil {
		t.Fatal(err)
	}
	if _, clusters := l.names(t); len(clusters) != 1 {
		t.Errorf("there are clusters %v", clusters)
	}
}

// B29, B30: missing dependencies are reported even if no cluster must be created, and keep no claim
// from its cluster.
func TestAFullPoolTellsWhatIsMissingAndServes(t *testing.T) {
	l := newLine(t, newPool(1, 1), stored("a", awake), waitingSince("x", 0))
	if _, err := l.look(t); err != nil {
		t.Fatalf("what is missing is a condition, no failure: %v", err)
	}
	p, x := newPool(0, 0), claim("x").(*hivev1.ClusterClaim)
	if err := errors.Join(l.Get(t.Context(), client.ObjectKeyFromObject(p), p), l.Get(t.Context(), client.ObjectKeyFromObject(x), x)); err != nil {
		t.Fatal(err)
	}
	if c := condition.Find(p.Status.Conditions, hivev1.PoolMissingDependencies); c == nil || c.Status != corev1.ConditionTrue {
		t.Errorf("MissingDependencies is %+v", c)
	}
	if x.Spec.Namespace != "a" {
		t.Errorf("the claim has %q", x.Spec.Namespace)
	}
}

// B31: the counts are those after what the pass gave away, and tell of which spec.
func TestThePassThatServesAClaimCountsIt(t *testing.T) {
	p := newPool(1, 1)
	p.Generation = 3
	l := newLine(t, p, imageSet(), stored("a", awake), waitingSince("x", 0))
	if _, err := l.look(t); err != nil {
		t.Fatal(err)
	}
	if err := l.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
		t.Fatal(err)
	}
	if st := p.Status; st.Ready != 0 || st.Size != 0 || st.ObservedGeneration != 3 {
		t.Errorf("size %d, ready %d, observedGeneration %d", st.Size, st.Ready, st.ObservedGeneration)
	}
}

// B11: no event tells the pool that the timeout has elapsed.
func TestAResumeThatTakesTooLongWakesThePool(t *testing.T) {
	p := newPool(1, 1)
	p.Spec.HibernationConfig = &hivev1.HibernationConfig{ResumeTimeout: "20m"}
	began := metav1.NewTime(noon.Add(-19 * time.Minute))
	slow := stored("a", func(cd *hivev1.ClusterDeployment) {
		cd.Spec.PowerState, cd.Status.PowerState = hivev1.PowerRunning, hivev1.ReasonWaitingForNodes
		cd.Status.PowerTransition = &hivev1.PowerTransition{Target: hivev1.PowerRunning, StartedAt: began}
	})
	l := newLine(t, p, imageSet(), slow)
	if res, err := l.look(t); err != nil || res.RequeueAfter != time.Minute {
		t.Fatalf("the timeout is a minute away: got %+v, %v", res, err)
	}
	l.clock.SetTime(noon.Add(time.Minute))
	if _, err := l.look(t); err != nil {
		t.Fatal(err)
	}
	if _, clusters := l.names(t); slices.Contains(clusters, "a") || len(clusters) != 1 {
		t.Errorf("there are %v, want another one instead of a", clusters)
	}
}

// B22: a cluster is told what its pool says by now, in writes that are made anyway.
func TestAnEditReachesTheClustersThatExist(t *testing.T) {
	p := newPool(2, 1)
	p.Spec.Labels = map[string]string{"team": "b"}
	after := hivev1.Duration("9h")
	p.Spec.HibernateAfter = &after
	given, woken := stored("a", awake), stored("b", nil)
	l := newLine(t, p, imageSet(), given, woken, waitingSince("x", 0))
	if _, err := l.look(t); err != nil {
		t.Fatal(err)
	}
	for _, cd := range []*hivev1.ClusterDeployment{given, woken} {
		if err := l.Get(t.Context(), client.ObjectKeyFromObject(cd), cd); err != nil {
			t.Fatal(err)
		}
		if cd.Labels["team"] != "b" || cd.Spec.HibernateAfter == nil || *cd.Spec.HibernateAfter != "9h" {
			t.Errorf("cluster %s has labels %v and hibernateAfter %v", cd.Name, cd.Labels, cd.Spec.HibernateAfter)
		}
	}
}

// B10: no platform and no count keeps a deleted pool from going.
func TestAPoolOfAnyPlatformGoes(t *testing.T) {
	raw := func() *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte("{}")} }
	for _, platform := range []hivev1.Platform{{OpenStack: raw()}, {VSphere: raw()}, {AWS: raw()}} {
		t.Run(platform.Name(), func(t *testing.T) {
			p := newPool(3, 1)
			p.Spec.Platform = platform
			controllerutil.AddFinalizer(p, hivev1.FinalizerPool)
			l := newLine(t, p, stored("a", nil), stored("b", awake))
			if err := l.Delete(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if _, err := l.look(t); err != nil {
					t.Fatal(err)
				}
			}
			if _, clusters := l.names(t); len(clusters) > 0 {
				t.Errorf("it has clusters %v", clusters)
			}
			if err := l.Get(t.Context(), client.ObjectKeyFromObject(p), p); client.IgnoreNotFound(err) != nil || err == nil {
				t.Errorf("the pool is still there: %v, %v", p.Finalizers, err)
			}
		})
	}
}
