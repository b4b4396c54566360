package clusterpool_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/controller/clusterclaim"
	"hotspare.io/hotspare/internal/controller/clusterpool"
)

// line is a pool that makes no clusters, so that claims on it wait.
type line struct {
	client.Client
	pools *clusterpool.Reconciler
	clock *clocktesting.FakePassiveClock
}

func newLine(t *testing.T, objects ...client.Object) *line {
	t.Helper()
	b := fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(withHomes(objects)...).
		WithStatusSubresource(&hivev1.ClusterPool{}, &hivev1.ClusterClaim{}, &hivev1.ClusterDeployment{}, &hivev1.ClusterDeploymentCustomization{})
	if err := errors.Join(clusterpool.AddIndexes(t.Context(), indexer{b}), clusterclaim.AddIndexes(t.Context(), indexer{b})); err != nil {
		t.Fatal(err)
	}
	serial := 0
	l := &line{Client: b.Build(), clock: clocktesting.NewFakePassiveClock(noon)}
	l.pools = &clusterpool.Reconciler{
		Client: l.Client, Live: l.Client, Clock: l.clock, Events: events.NewFakeRecorder(100),
		Suffix: func() string { serial++; return fmt.Sprintf("%05d", serial) },
	}
	return l
}

// withHomes adds the namespaces that hotspare has made for the clusters among objects,
// unless they are among them.
func withHomes(objects []client.Object) []client.Object {
	there := map[string]bool{}
	for _, o := range objects {
		if ns, ok := o.(*corev1.Namespace); ok {
			there[ns.Name] = true
		}
	}
	out := slices.Clone(objects)
	for _, o := range objects {
		cd, ok := o.(*hivev1.ClusterDeployment)
		if !ok || cd.Spec.ClusterPoolRef == nil || there[cd.Namespace] {
			continue
		}
		there[cd.Namespace] = true
		out = append(out, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cd.Namespace, Labels: map[string]string{
			hivev1.LabelPoolName: cd.Spec.ClusterPoolRef.PoolName, hivev1.LabelPoolNamespace: cd.Spec.ClusterPoolRef.Namespace,
		}}})
	}
	return out
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// pass lets time go by, then the pool's controller look. It returns what the
// claims were told, and when it wants to look again.
func (l *line) pass(t *testing.T, after time.Duration) string {
	t.Helper()
	l.clock.SetTime(l.clock.Now().Add(after))
	res, err := l.pools.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(newPool(0, 0))})
	if err != nil {
		t.Fatal(err)
	}
	var list hivev1.ClusterClaimList
	if err := l.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	out := ""
	for _, c := range list.Items {
		out += c.Name
		if p := c.Status.Position; p != nil {
			out += fmt.Sprint("=", *p)
		}
		if at := c.Status.EstimatedReadyTime; at != nil {
			out += fmt.Sprint(" at +", at.Sub(noon))
		}
		out += " "
	}
	return fmt.Sprint(out, res.RequeueAfter)
}

func waitingSince(name string, age time.Duration) client.Object {
	c := claim(name)
	c.SetCreationTimestamp(metav1.NewTime(noon.Add(-age)))
	return c
}

func TestClaimsThatWaitAreToldTheirPlace(t *testing.T) {
	none := int32(0)
	p := newPool(0, 0)
	p.Spec.MaxSize = &none
	l := newLine(t, p, imageSet(), waitingSince("a", 0), waitingSince("b", 0))
	steps := []struct{ what, got, want string }{
		{"a new claim is not told yet", l.pass(t, 0), "a b 5s"},
		{"after a while it is", l.pass(t, 5*time.Second), "a=1 b=2 0s"},
		{"what it knows it is not told again", l.pass(t, time.Minute), "a=1 b=2 0s"},
	}
	if err := l.Delete(t.Context(), claim("a")); err != nil {
		t.Fatal(err)
	}
	steps = append(steps, struct{ what, got, want string }{"when one goes the others move up", l.pass(t, 0), "b=1 0s"})
	if err := l.Create(t.Context(), waitingSince("0", time.Hour)); err != nil {
		t.Fatal(err)
	}
	steps = append(steps,
		struct{ what, got, want string }{"but not more often than is good for anybody", l.pass(t, time.Second), "0 b=1 9s"},
		struct{ what, got, want string }{"then they are told", l.pass(t, 9*time.Second), "0=1 b=2 0s"})
	for _, s := range steps {
		if diff := cmp.Diff(s.want, s.got); diff != "" {
			t.Errorf("%s: %s", s.what, diff)
		}
	}
}

func TestAnEstimateGoesByWhatThePoolsClustersTook(t *testing.T) {
	served := &hivev1.ClusterDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "p-1", Name: "p-1", CreationTimestamp: metav1.NewTime(noon.Add(-2 * time.Hour))},
		Spec: hivev1.ClusterDeploymentSpec{
			Installed:      true,
			ClusterPoolRef: &hivev1.ClusterPoolReference{Namespace: "pools", PoolName: "p", ClaimName: "z"},
		},
	}
	at := metav1.NewTime(noon.Add(-90 * time.Minute))
	served.Status.InstalledTimestamp = &at
	z := claim("z").(*hivev1.ClusterClaim)
	z.Spec.Namespace = "p-1"
	l := newLine(t, newPool(0, 0), imageSet(), served, z, waitingSince("a", time.Minute))
	if got, want := l.pass(t, 0), "a=1 at +30m0s z 0s"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Membership is not what a ClusterDeployment says of itself: anybody may write one.
func TestAClusterInANamespaceThatHotspareDidNotMakeIsNotThePools(t *testing.T) {
	for name, labels := range map[string]map[string]string{
		"no labels":                 nil,
		"the labels of another one": {hivev1.LabelPoolName: "p", hivev1.LabelPoolNamespace: "others"},
	} {
		t.Run(name, func(t *testing.T) {
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: labels}}
			l := newLine(t, newPool(0, 0), stored("a", awake), ns, waitingSince("x", 0))
			if _, err := l.look(t); err != nil {
				t.Fatal(err)
			}
			p, x := newPool(0, 0), claim("x").(*hivev1.ClusterClaim)
			if err := errors.Join(l.Get(t.Context(), client.ObjectKeyFromObject(p), p), l.Get(t.Context(), client.ObjectKeyFromObject(x), x)); err != nil {
				t.Fatal(err)
			}
			if x.Spec.Namespace != "" || p.Status.Size != 0 || p.Status.Ready != 0 {
				t.Errorf("the claim has %q, the pool counts %d clusters, %d ready", x.Spec.Namespace, p.Status.Size, p.Status.Ready)
			}
		})
	}
}
