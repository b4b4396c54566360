package claimpolicy_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/controller/claimpolicy"
	"hotspare.io/hotspare/internal/crashtest"
	"hotspare.io/hotspare/internal/crashtest/chaos"
)

type act = func(ctx context.Context, api client.Client) error

func newPolicy(most int32) *v1alpha1.ClaimPolicy {
	return &v1alpha1.ClaimPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "pools", Name: "team"},
		Spec:       v1alpha1.ClaimPolicySpec{Subjects: []v1alpha1.ClaimSubject{{Kind: "User", Name: "alice"}}, MaxClaims: &most},
	}
}

func newClaim(name string) *hivev1.ClusterClaim {
	return &hivev1.ClusterClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "pools", Name: name, Annotations: map[string]string{hivev1.AnnotationCreator: "alice"}},
		Spec:       hivev1.ClusterClaimSpec{ClusterPoolName: "p"},
	}
}

func create(objects ...client.Object) act {
	return func(ctx context.Context, api client.Client) error {
		for _, o := range objects {
			if err := api.Create(ctx, o.DeepCopyObject().(client.Object)); err != nil {
				return err
			}
		}
		return nil
	}
}

func remove(o client.Object) act {
	return func(ctx context.Context, api client.Client) error {
		return api.Delete(ctx, o.DeepCopyObject().(client.Object))
	}
}

// describe returns the claims of the namespace: a "+" marks those that are admitted, a "-" those that are
// held.
func describe(ctx context.Context, api client.Client) (text string, admitted int, err error) {
	var list hivev1.ClusterClaimList
	if err := api.List(ctx, &list); err != nil {
		return "", 0, err
	}
	for _, c := range list.Items {
		found := condition.Find(c.Status.Conditions, hivev1.ClaimAdmitted)
		switch {
		case found == nil:
			text += " " + c.Name
		case found.Status == corev1.ConditionTrue:
			admitted++
			text += " +" + c.Name
		default:
			text += " -" + c.Name
		}
	}
	return text, admitted, nil
}

func is(want string) act {
	return func(ctx context.Context, api client.Client) error {
		if got, _, err := describe(ctx, api); err != nil || got != want {
			return fmt.Errorf("claims are %q, %w, want %q", got, err, want)
		}
		return nil
	}
}

// Wherever the process stops, and whatever its cache does not show yet, no limit is exceeded, and every claim
// is served in the end.
func TestCrashWhileClaimsAreAdmitted(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), hivev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	pools := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "pools"}}
	pool := &hivev1.ClusterPool{ObjectMeta: metav1.ObjectMeta{Namespace: "pools", Name: "p"}}
	crashtest.Run(t, crashtest.Scenario{
		Scheme: scheme, Kinds: []client.Object{&corev1.Namespace{}, &v1alpha1.ClaimPolicy{}, &v1alpha1.ClaimSet{}, &hivev1.ClusterClaim{}, &hivev1.ClusterPool{}}, Indexes: &chaos.Indexes{},
		Acts: []act{
			create(pools, pool, newClaim("a")), is(" a"),
			create(newPolicy(2), newClaim("b"), newClaim("c"), newClaim("d")), is(" +a +b -c -d"),
			remove(newClaim("a")), is(" +b +c -d"),
			create(newClaim("a")), is(" -a +b +c -d"),
			remove(pool), is(" -a -b -c -d"),
			create(pool),
			remove(newClaim("c")), remove(newClaim("b")),
			remove(newPolicy(2)),
		},
		World: func(context.Context, client.Client) (bool, error) { return false, nil },
		Always: func(ctx context.Context, api client.Client) error {
			if text, admitted, err := describe(ctx, api); err != nil || admitted > 2 {
				return fmt.Errorf("claims are %q, %w, and 2 may be admitted", text, err)
			}
			return nil
		},
		Finally: is(" a d"),
		Start: func(cached, live client.Client) []crashtest.Controller {
			r := &claimpolicy.Reconciler{Client: cached, Live: live, Clock: clocktesting.NewFakePassiveClock(time.Now()), Events: events.NewFakeRecorder(10000)}
			return []crashtest.Controller{func(ctx context.Context) error {
				_, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "pools"}})
				return err
			}}
		},
	})
}
