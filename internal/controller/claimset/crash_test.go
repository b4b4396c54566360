package claimset_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/claimset"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/controller/claimpolicy"
	controller "hotspare.io/hotspare/internal/controller/claimset"
	"hotspare.io/hotspare/internal/controller/clusterclaim"
	"hotspare.io/hotspare/internal/controller/clusterpool"
	"hotspare.io/hotspare/internal/controller/namespace"
	"hotspare.io/hotspare/internal/crashtest"
	"hotspare.io/hotspare/internal/crashtest/chaos"
)

type act = func(ctx context.Context, api client.Client) error

var kinds = []client.Object{
	&corev1.Namespace{}, &corev1.Secret{}, &corev1.ConfigMap{}, &rbacv1.Role{}, &rbacv1.RoleBinding{},
	&hivev1.ClusterPool{}, &hivev1.ClusterClaim{}, &hivev1.ClusterDeployment{}, &hivev1.ClusterImageSet{}, &hivev1.ClusterDeploymentCustomization{},
	&v1alpha1.PoolPolicy{}, &v1alpha1.ClusterBootstrap{}, &v1alpha1.ClaimPolicy{}, &v1alpha1.ClaimSet{},
}

// stage is a scenario with the controllers of sets, claims, pools and ClaimPolicies, and a world in which installs succeed
// and machines obey at once.
func stage(t *testing.T, acts ...act) crashtest.Scenario {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), rbacv1.AddToScheme(scheme), hivev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	var ix chaos.Indexes
	if err := errors.Join(clusterpool.AddIndexes(t.Context(), &ix), clusterclaim.AddIndexes(t.Context(), &ix)); err != nil {
		t.Fatal(err)
	}
	serial := 0
	home := create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "pools"}},
		&hivev1.ClusterImageSet{ObjectMeta: metav1.ObjectMeta{Name: "v1"}, Spec: hivev1.ClusterImageSetSpec{ReleaseImage: "x:v1"}})
	return crashtest.Scenario{
		Scheme: scheme, Kinds: kinds, Indexes: &ix, Acts: append([]act{home}, acts...), World: world,
		Always: func(ctx context.Context, api client.Client) error {
			return errors.Join(noTwoSetsShareAPool(ctx, api), noSetIsTooLarge(ctx, api))
		},
		Start: func(cached, live client.Client) []crashtest.Controller {
			now, recorder := clocktesting.NewFakePassiveClock(time.Now()), events.NewFakeRecorder(10000)
			sets := controller.NewLister(cached)
			policies := claimpolicy.NewLister(cached)
			admissions := &claimpolicy.Reconciler{Client: cached, Live: live, Clock: now, Events: recorder}
			return []crashtest.Controller{
				every(cached, &v1alpha1.ClaimSetList{}, &controller.Reconciler{Client: cached, Live: live, Clock: now, Events: recorder}),
				func(ctx context.Context) error {
					_, err := admissions.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "pools"}})
					return err
				},
				every(cached, &hivev1.ClusterPoolList{}, &clusterpool.Reconciler{
					Client: cached, Live: live, Clock: now, Events: recorder, Sets: sets, Policies: policies,
					Suffix: func() string { serial++; return fmt.Sprintf("%05d", serial) },
				}),
				every(cached, &hivev1.ClusterClaimList{}, &clusterclaim.Reconciler{Client: cached, Live: live, Clock: now, Events: recorder, Sets: sets, Policies: policies}),
				every(cached, &corev1.NamespaceList{}, &namespace.Reconciler{Client: cached, Live: live}),
			}
		},
	}
}

// every reconciles all objects of a list's kind.
func every(c client.Client, list client.ObjectList, r reconcile.Reconciler) crashtest.Controller {
	return func(ctx context.Context) error {
		all := list.DeepCopyObject().(client.ObjectList)
		if err := c.List(ctx, all); err != nil {
			return err
		}
		var errs []error
		err := meta.EachListItem(all, func(o runtime.Object) error {
			_, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(o.(client.Object))})
			errs = append(errs, err)
			return nil
		})
		return errors.Join(append(errs, err)...)
	}
}

// world installs clusters, lets their machines do what they are told, and lets destroyed ones go.
func world(ctx context.Context, api client.Client) (bool, error) {
	var list hivev1.ClusterDeploymentList
	if err := api.List(ctx, &list); err != nil {
		return false, err
	}
	changed := false
	for i := range list.Items {
		cd := &list.Items[i]
		power := hivev1.StatusRunning
		if cd.Spec.PowerState == hivev1.PowerHibernating {
			power = hivev1.StatusHibernating
		}
		var err error
		switch before := cd.DeepCopy(); {
		case cd.DeletionTimestamp != nil:
			if !controllerutil.RemoveFinalizer(cd, hivev1.FinalizerDeprovision) {
				continue
			}
			err = api.Patch(ctx, cd, client.MergeFrom(before))
		case !cd.Spec.Installed:
			controllerutil.AddFinalizer(cd, hivev1.FinalizerDeprovision)
			cd.Spec.Installed = true
			cd.Spec.ClusterMetadata = &hivev1.ClusterMetadata{InfraID: cd.Name}
			err = api.Patch(ctx, cd, client.MergeFrom(before))
		case cd.Status.PowerState != power:
			cd.Status.PowerState = power
			err = api.Status().Patch(ctx, cd, client.MergeFrom(before))
		default:
			continue
		}
		if err != nil {
			return false, err
		}
		changed = true
	}
	return changed, nil
}

// noTwoSetsShareAPool: a pool of two clusters never has clusters of two sets of two, which would wait for each other.
func noTwoSetsShareAPool(ctx context.Context, api client.Client) error {
	var list hivev1.ClusterDeploymentList
	if err := api.List(ctx, &list); err != nil {
		return err
	}
	holders := map[string]string{}
	for _, cd := range list.Items {
		ref := cd.Spec.ClusterPoolRef
		set, _, isMember := strings.Cut(ref.ClaimName, "-")
		if !isMember || cd.DeletionTimestamp != nil {
			continue
		}
		if other := holders[ref.PoolName]; other != "" && other != set && ref.PoolName == "small" {
			return fmt.Errorf("sets %s and %s have clusters of pool %s", set, other, ref.PoolName)
		}
		holders[ref.PoolName] = set
	}
	return nil
}

// noSetIsTooLarge: a set never has more claims than its size, and no claims without the finalizer that keeps it until they
// are released.
func noSetIsTooLarge(ctx context.Context, api client.Client) error {
	var sets v1alpha1.ClaimSetList
	var claims hivev1.ClusterClaimList
	if err := errors.Join(api.List(ctx, &sets), api.List(ctx, &claims)); err != nil {
		return err
	}
	for i := range sets.Items {
		set, n, pools := &sets.Items[i], 0, map[string]bool{}
		for j := range claims.Items {
			if c := &claims.Items[j]; claimset.Contains(set, c) {
				n++
				pools[c.Spec.ClusterPoolName] = true
			}
		}
		if n > int(set.Spec.Size) || len(pools) > 1 || n > 0 && !controllerutil.ContainsFinalizer(set, v1alpha1.FinalizerClaimSet) {
			return fmt.Errorf("set %s of %d has %d claims on %d pools, and finalizers %v", set.Name, set.Spec.Size, n, len(pools), set.Finalizers)
		}
	}
	return nil
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
		return client.IgnoreNotFound(api.Delete(ctx, o.DeepCopyObject().(client.Object)))
	}
}

func newPool(name string, size int32, most *int32) *hivev1.ClusterPool {
	return &hivev1.ClusterPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: "pools", Name: name, Labels: map[string]string{"name": name}},
		Spec: hivev1.ClusterPoolSpec{
			Size: size, RunningCount: size, MaxSize: most, BaseDomain: "example.com",
			ImageSetRef: hivev1.ClusterImageSetReference{Name: "v1"}, Platform: hivev1.Platform{Local: &hivev1.LocalPlatform{}},
		},
	}
}

func newClaim(name, pool string) *hivev1.ClusterClaim {
	return &hivev1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "pools", Name: name}, Spec: hivev1.ClusterClaimSpec{ClusterPoolName: pool}}
}

// newSet is a set on a pool, or on several pools, the preferred ones first.
func newSet(name string, size int32, pools ...string) *v1alpha1.ClaimSet {
	set := &v1alpha1.ClaimSet{ObjectMeta: metav1.ObjectMeta{Namespace: "pools", Name: name}, Spec: v1alpha1.ClaimSetSpec{Size: size}}
	if len(pools) == 1 {
		set.Spec.ClusterPoolName = pools[0]
		return set
	}
	set.Spec.PoolSelector = &v1alpha1.ClaimSetPoolSelector{}
	for _, p := range pools {
		set.Spec.PoolSelector.Preferences = append(set.Spec.PoolSelector.Preferences, v1alpha1.PoolPreference{MatchLabels: map[string]string{"name": p}})
	}
	return set
}

// served checks which claims have clusters: "name@pool", sorted. All others have none.
func served(want ...string) act {
	return func(ctx context.Context, api client.Client) error {
		var claims hivev1.ClusterClaimList
		if err := api.List(ctx, &claims); err != nil {
			return err
		}
		var got []string
		for _, c := range claims.Items {
			if c.Spec.Namespace != "" {
				got = append(got, c.Name+"@"+c.Spec.ClusterPoolName)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("claims %v have clusters, want %v", got, want)
		}
		return nil
	}
}

// pends checks the condition Pending of a set: "" if it is not True.
func pends(name, reason string) act {
	return func(ctx context.Context, api client.Client) error {
		var set v1alpha1.ClaimSet
		if err := api.Get(ctx, client.ObjectKey{Namespace: "pools", Name: name}, &set); err != nil {
			return err
		}
		got := ""
		pending := meta.FindStatusCondition(set.Status.Conditions, v1alpha1.ClaimSetPending)
		if pending != nil && pending.Status == metav1.ConditionTrue {
			got = pending.Reason
		}
		if pending == nil || got != reason || (reason == "") != (set.Status.ServedTime != nil) {
			return fmt.Errorf("ClaimSet %s has conditions %+v, want %q pending", name, set.Status.Conditions, reason)
		}
		return nil
	}
}

// gone checks that nothing is left of sets and claims.
func gone(ctx context.Context, api client.Client) error {
	var sets v1alpha1.ClaimSetList
	var claims hivev1.ClusterClaimList
	if err := errors.Join(api.List(ctx, &sets), api.List(ctx, &claims)); err != nil {
		return err
	}
	if len(sets.Items)+len(claims.Items) > 0 {
		return fmt.Errorf("%d sets and %d claims are left", len(sets.Items), len(claims.Items))
	}
	return nil
}

// Two sets want the same clusters, and a claim waits behind them. Wherever the process stops, they are served one after the
// other.
func TestCrashWhileTwoSetsWantTheSameClusters(t *testing.T) {
	t.Parallel()
	s := stage(t,
		create(newPool("small", 2, new(int32(2)))), create(newSet("a", 2, "small")), served("a-0@small", "a-1@small"), pends("a", ""),
		create(newSet("b", 2, "small"), newClaim("x", "small")), served("a-0@small", "a-1@small"), pends("b", v1alpha1.ReasonSetWaiting),
		remove(newClaim("a-0", "")), served("a-1@small"), // one is free, and kept
		remove(newSet("a", 2, "small")), served("b-0@small", "b-1@small"), pends("b", ""),
		remove(newSet("b", 2, "small")), served("x@small"),
		remove(newClaim("x", "")),
	)
	s.Finally = gone
	crashtest.Run(t, s)
}

// A set waits for a pool that is short, and takes another one that can serve it at once.
func TestCrashWhileASetChangesItsPool(t *testing.T) {
	t.Parallel()
	s := stage(t,
		create(newPool("first", 0, new(int32(2))), newClaim("y", "first")), served("y@first"),
		create(newSet("a", 2, "first", "second")), served("y@first"), pends("a", v1alpha1.ReasonSetWaiting),
		create(newPool("second", 2, nil)), served("a-0@second", "a-1@second", "y@first"), pends("a", ""),
		remove(newClaim("y", "")), remove(newSet("a", 2, "first", "second")),
	)
	s.Finally = gone
	crashtest.Run(t, s)
}

// Bad input says what to do, and blocks nobody.
func TestSetsThatCannotBeServed(t *testing.T) {
	t.Parallel()
	malformed := newSet("m", 1, "small", "small")
	malformed.Spec.PoolSelector.Preferences[0].MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Sometimes"}}
	foreign := newClaim("t-1", "elsewhere")
	forged := newClaim("a-7", "small")
	forged.OwnerReferences = []metav1.OwnerReference{{APIVersion: "hotspare.io/v1alpha1", Kind: "ClaimSet", Name: "a", UID: "guessed"}}
	s := stage(t,
		create(newPool("small", 2, new(int32(2))), foreign, forged,
			newSet("big", 3, "small"), newSet("p", 1, "nowhere"), newSet("n", 1, "nowhere", "neither"), malformed, newSet("t", 2, "small"), newClaim("x", "small")),
		served("x@small"),
		pends("big", v1alpha1.ReasonSetTooLarge), pends("p", hivev1.ReasonPoolNotFound), pends("n", v1alpha1.ReasonNoPoolMatches),
		pends("m", v1alpha1.ReasonInvalidSelector), pends("t", v1alpha1.ReasonClaimNameTaken),
		remove(foreign), pends("t", v1alpha1.ReasonSetWaiting), remove(newClaim("x", "")), served("t-0@small", "t-1@small"),
		remove(newClaim("t-0", "")), pends("t", ""), remove(newPool("small", 2, nil)), remove(newClaim("t-1", "")), // the set ends with its last claim
		create(newSet("late", 1, "small")), pends("late", hivev1.ReasonPoolNotFound),
	)
	s.Finally = func(ctx context.Context, api client.Client) error {
		var set v1alpha1.ClaimSet
		if err := api.Get(ctx, client.ObjectKey{Namespace: "pools", Name: "t"}, &set); client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Errorf("ClaimSet t is left: %w, %+v", err, set.Status)
		}
		var c hivev1.ClusterClaim
		if err := api.Get(ctx, client.ObjectKey{Namespace: "pools", Name: "a-7"}, &c); err != nil {
			return err
		}
		return nil
	}
	crashtest.Run(t, s)
}

// A claim that only names a set gets no cluster, and says why.
func TestAForgedClaimGetsNoCluster(t *testing.T) {
	t.Parallel()
	forged := newClaim("a-7", "small")
	forged.OwnerReferences = []metav1.OwnerReference{{APIVersion: "hotspare.io/v1alpha1", Kind: "ClaimSet", Name: "a", UID: "guessed"}}
	s := stage(t, create(newPool("small", 2, nil), newSet("a", 1, "small"), forged), served("a-0@small"))
	s.Finally = func(ctx context.Context, api client.Client) error {
		var c hivev1.ClusterClaim
		if err := api.Get(ctx, client.ObjectKeyFromObject(forged), &c); err != nil {
			return err
		}
		if pending := condition.Find(c.Status.Conditions, hivev1.ClaimPending); pending == nil || pending.Reason != hivev1.ReasonSetMissing {
			return fmt.Errorf("its conditions are %+v", c.Status.Conditions)
		}
		return nil
	}
	crashtest.Run(t, s)
}

// A ClaimPolicy admits the claims of a set together, as claims of the creator of the set.
func TestCrashWhileClaimPoliciesLimitSets(t *testing.T) {
	t.Parallel()
	policy := &v1alpha1.ClaimPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "pools", Name: "team"},
		Spec:       v1alpha1.ClaimPolicySpec{Subjects: []v1alpha1.ClaimSubject{{Kind: "User", Name: "alice"}}, MaxClaims: new(int32(2))},
	}
	by := func(o client.Object) client.Object {
		o.SetAnnotations(map[string]string{hivev1.AnnotationCreator: "alice"})
		return o
	}
	s := stage(t,
		create(newPool("large", 4, nil), policy, by(newClaim("x", "large"))), served("x@large"),
		create(by(newSet("a", 2, "large")), by(newSet("big", 3, "large")), newSet("nobodys", 1, "large")), served("x@large"),
		pends("a", hivev1.ReasonLimitReached), pends("big", hivev1.ReasonLimitTooLow), pends("nobodys", hivev1.ReasonCreatorUnknown),
		create(by(newClaim("y", "large"))), served("x@large"), // the place is reserved for the set
		remove(newClaim("x", "")), served("a-0@large", "a-1@large"),
		remove(newSet("a", 2, "large")), served("y@large"),
	)
	s.Finally = served("y@large")
	crashtest.Run(t, s)
}
