package clusterclaim_test

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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/controller/clusterclaim"
	"hotspare.io/hotspare/internal/crashtest"
	"hotspare.io/hotspare/internal/crashtest/chaos"
)

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(s), rbacv1.AddToScheme(s), hivev1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	return s
}

// Claim x, of pool p in namespace pools, has cluster a, whose namespace the pool has made.
var about = client.ObjectKey{Namespace: "pools", Name: "x"}

func newClaim(who ...string) *hivev1.ClusterClaim {
	c := &hivev1.ClusterClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "pools", Name: "x", Finalizers: []string{hivev1.FinalizerClaim}},
		Spec:       hivev1.ClusterClaimSpec{ClusterPoolName: "p", Namespace: "a"},
	}
	for _, name := range who {
		c.Spec.Subjects = append(c.Spec.Subjects, rbacv1.Subject{Kind: "User", Name: name})
	}
	return c
}

func home() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{
		hivev1.LabelPoolNamespace: "pools", hivev1.LabelPoolName: "p",
	}}}
}

func newCluster() *hivev1.ClusterDeployment {
	claimed := metav1.NewTime(time.Now().Truncate(time.Second))
	return &hivev1.ClusterDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "a", Finalizers: []string{hivev1.FinalizerDeprovision}},
		Spec: hivev1.ClusterDeploymentSpec{
			Installed:       true,
			PowerState:      hivev1.PowerRunning,
			ClusterPoolRef:  &hivev1.ClusterPoolReference{Namespace: "pools", PoolName: "p", ClaimName: "x", ClaimedTimestamp: &claimed},
			ClusterMetadata: &hivev1.ClusterMetadata{AdminKubeconfigSecretRef: corev1.LocalObjectReference{Name: "kubeconfig"}},
		},
	}
}

// readers returns the subjects of the RoleBinding in a namespace, with the Secrets that its Role
// names, such as "alice: kubeconfig". Without the RoleBinding or the Role it returns "nobody".
func readers(ctx context.Context, api client.Reader, namespace string) (string, error) {
	var b rbacv1.RoleBinding
	var r rbacv1.Role
	for _, o := range []client.Object{&b, &r} {
		err := api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: hivev1.ClaimOwnerRole}, o)
		if apierrors.IsNotFound(err) {
			return "nobody", nil
		}
		if err != nil {
			return "", err
		}
	}
	var who, what []string
	for _, s := range b.Subjects {
		who = append(who, s.Name)
	}
	for _, rule := range r.Rules {
		what = append(what, rule.ResourceNames...)
	}
	return strings.Join(who, ",") + " as " + b.RoleRef.Kind + " " + b.RoleRef.Name + ": " + strings.Join(what, ","), nil
}

type act = func(context.Context, client.Client) error

var kinds = []client.Object{
	&corev1.Namespace{}, &rbacv1.Role{}, &rbacv1.RoleBinding{},
	&hivev1.ClusterPool{}, &hivev1.ClusterClaim{}, &hivev1.ClusterDeployment{},
}

// can is an act that looks who can read what by then.
func can(want string) act {
	return func(ctx context.Context, api client.Client) error {
		got, err := readers(ctx, api, "a")
		if err == nil && got != want {
			err = fmt.Errorf("access has %q, want %q", got, want)
		}
		return err
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

func edit[T client.Object](o T, change func(T)) act {
	return func(ctx context.Context, api client.Client) error {
		now := o.DeepCopyObject().(T)
		if err := api.Get(ctx, client.ObjectKeyFromObject(o), now); err != nil {
			return err
		}
		before := now.DeepCopyObject().(T)
		change(now)
		return api.Patch(ctx, now, client.MergeFrom(before))
	}
}

func remove(o client.Object) act {
	return func(ctx context.Context, api client.Client) error {
		return api.Delete(ctx, o.DeepCopyObject().(client.Object))
	}
}

// stage is a scenario with the controller of claims, in which machines run and
// destroyed clusters go at once.
func stage(t *testing.T, acts ...act) crashtest.Scenario {
	t.Helper()
	var ix chaos.Indexes
	if err := clusterclaim.AddIndexes(t.Context(), &ix); err != nil {
		t.Fatal(err)
	}
	pools := create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "pools"}})
	return crashtest.Scenario{
		Scheme: newScheme(t), Kinds: kinds, Indexes: &ix, Acts: append([]act{pools}, acts...), World: world,
		Always: func(ctx context.Context, api client.Client) error {
			return errors.Join(grantedBeforeTold(ctx, api), withdrawnBeforeDestroyed(ctx, api))
		},
		Finally: func(context.Context, client.Client) error { return nil },
		Start: func(cached, _ client.Client) []crashtest.Controller {
			claims := newReconciler(cached)
			return []crashtest.Controller{func(ctx context.Context) error {
				var all hivev1.ClusterClaimList
				if err := cached.List(ctx, &all); err != nil {
					return err
				}
				var errs []error
				for i := range all.Items {
					_, err := claims.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&all.Items[i])})
					errs = append(errs, err)
				}
				return errors.Join(errs...)
			}}
		},
	}
}

func newReconciler(c client.Client) *clusterclaim.Reconciler {
	return &clusterclaim.Reconciler{Client: c, Live: c, Clock: clocktesting.NewFakePassiveClock(time.Now()), Events: events.NewFakeRecorder(10000)}
}

func world(ctx context.Context, api client.Client) (bool, error) {
	var list hivev1.ClusterDeploymentList
	if err := api.List(ctx, &list); err != nil {
		return false, err
	}
	changed := false
	for i := range list.Items {
		cd := &list.Items[i]
		before := cd.DeepCopy()
		switch {
		case cd.DeletionTimestamp != nil:
			controllerutil.RemoveFinalizer(cd, hivev1.FinalizerDeprovision)
			if err := api.Patch(ctx, cd, client.MergeFrom(before)); err != nil {
				return false, err
			}
			changed = true
		case cd.Status.PowerState == "":
			cd.Status.PowerState = hivev1.StatusRunning
			if err := api.Status().Patch(ctx, cd, client.MergeFrom(before)); err != nil {
				return false, err
			}
			changed = true
		}
	}
	return changed, nil
}

// told ends the look at what comes before the claim's conditions: after them,
// subjects come and go.
func told() act {
	return edit(newClaim(), func(c *hivev1.ClusterClaim) { c.Annotations = map[string]string{"told": "yes"} })
}

// grantedBeforeTold: who waits for the claim's conditions can read the Secrets.
func grantedBeforeTold(ctx context.Context, api client.Client) error {
	var claims hivev1.ClusterClaimList
	if err := api.List(ctx, &claims); err != nil {
		return err
	}
	for _, c := range claims.Items {
		pending := condition.Find(c.Status.Conditions, hivev1.ClaimPending)
		says := condition.IsTrue(c.Status.Conditions, hivev1.ClaimClusterRunning) || pending != nil && pending.Status == corev1.ConditionFalse
		if !says || len(c.Spec.Subjects) == 0 || c.DeletionTimestamp != nil || c.Annotations["told"] != "" {
			continue
		}
		who, err := readers(ctx, api, c.Spec.Namespace)
		if err != nil {
			return err
		}
		if who == "nobody" {
			return fmt.Errorf("claim %s says that its cluster runs, but %s may read nothing", c.Name, c.Spec.Subjects[0].Name)
		}
	}
	return nil
}

// withdrawnBeforeDestroyed checks that nobody has access to a cluster that is being destroyed.
func withdrawnBeforeDestroyed(ctx context.Context, api client.Client) error {
	var clusters hivev1.ClusterDeploymentList
	if err := api.List(ctx, &clusters); err != nil {
		return err
	}
	for _, cd := range clusters.Items {
		if cd.DeletionTimestamp == nil {
			continue
		}
		who, err := readers(ctx, api, cd.Namespace)
		if err != nil {
			return err
		}
		if who != "nobody" {
			return fmt.Errorf("cluster %s is being destroyed, and %s still have access", cd.Name, who)
		}
	}
	return nil
}

func TestCrashWhileSubjectsGetAndLoseAccess(t *testing.T) { // B33
	t.Parallel()
	subjects := func(who ...string) act {
		return edit(newClaim(), func(c *hivev1.ClusterClaim) { c.Spec.Subjects = newClaim(who...).Spec.Subjects })
	}
	crashtest.Run(t, stage(t,
		create(home(), newCluster(), newClaim("alice")), can("alice as Role hive-claim-owner: kubeconfig"), told(),
		subjects("bob", "alice"), can("alice,bob as Role hive-claim-owner: kubeconfig"),
		subjects(), can("nobody"),
		subjects("bob"), can("bob as Role hive-claim-owner: kubeconfig"),
		remove(newClaim()), can("nobody"),
	))
}

func TestCrashWhileAccessFollowsTheClusterAndMeddlers(t *testing.T) { // B34
	t.Parallel()
	owner := metav1.ObjectMeta{Namespace: "a", Name: hivev1.ClaimOwnerRole}
	const right = "alice as Role hive-claim-owner: kubeconfig,password"
	unnamed := newCluster()
	unnamed.Spec.ClusterMetadata = nil
	crashtest.Run(t, stage(t,
		create(home(), unnamed, newClaim("alice")), can("alice as Role hive-claim-owner: "),
		edit(newCluster(), func(cd *hivev1.ClusterDeployment) {
			cd.Spec.ClusterMetadata = &hivev1.ClusterMetadata{
				AdminKubeconfigSecretRef: corev1.LocalObjectReference{Name: "kubeconfig"},
				AdminPasswordSecretRef:   &corev1.LocalObjectReference{Name: "password"},
			}
		}), can(right), told(),
		remove(&rbacv1.Role{ObjectMeta: owner}), can(right),
		remove(&rbacv1.RoleBinding{ObjectMeta: owner}), can(right),
		edit(&rbacv1.Role{ObjectMeta: owner}, func(r *rbacv1.Role) { r.Rules[1].ResourceNames = nil }), can(right),
		edit(&rbacv1.RoleBinding{ObjectMeta: owner}, func(b *rbacv1.RoleBinding) { b.RoleRef.Name, b.Subjects[0].Name = "admin", "eve" }), can(right),
	))
}

// rig is an API with these objects, and a count of what is written.
func rig(t *testing.T, refuse func(client.Object) error, objects ...client.Object) (client.Client, *[]string) {
	t.Helper()
	writes := &[]string{}
	b := fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(objects...).
		WithStatusSubresource(&hivev1.ClusterClaim{}, &hivev1.ClusterDeployment{})
	if err := clusterclaim.AddIndexes(t.Context(), indexer{b}); err != nil {
		t.Fatal(err)
	}
	do := func(verb string, o client.Object, write func() error) error {
		*writes = append(*writes, fmt.Sprintf("%s %T", verb, o))
		if refuse != nil {
			if err := refuse(o); err != nil {
				return err
			}
		}
		return write()
	}
	return b.WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return do("create", o, func() error { return c.Create(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return do("patch", o, func() error { return c.Patch(ctx, o, p, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return do("delete", o, func() error { return c.Delete(ctx, o, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return do("patch "+sub+" of", o, func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
	}).Build(), writes
}

// indexer gives a fake client the indexes that the controller asks for.
type indexer struct{ *fake.ClientBuilder }

func (i indexer) IndexField(_ context.Context, o client.Object, field string, keys client.IndexerFunc) error {
	i.WithIndex(o, field, keys)
	return nil
}

func runningCondition() *hivev1.ClusterDeployment {
	cd := newCluster()
	cd.Status.PowerState = hivev1.StatusRunning
	return cd
}

func TestAClaimWithoutSubjectsCostsNoWriteMore(t *testing.T) {
	c, writes := rig(t, nil, home(), runningCondition(), newClaim())
	for range 2 {
		if _, err := newReconciler(c).Reconcile(t.Context(), ctrl.Request{NamespacedName: about}); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"patch status of *v1.ClusterClaim"}; !slices.Equal(*writes, want) {
		t.Errorf("it wrote %v, want %v", *writes, want)
	}
}

func TestAPassThatFindsEverythingRightWritesNothing(t *testing.T) {
	c, writes := rig(t, nil, home(), runningCondition(), newClaim("alice"))
	for range 3 {
		if _, err := newReconciler(c).Reconcile(t.Context(), ctrl.Request{NamespacedName: about}); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"create *v1.Role", "create *v1.RoleBinding", "patch status of *v1.ClusterClaim"}; !slices.Equal(*writes, want) {
		t.Errorf("it wrote %v, want %v", *writes, want)
	}
}

// B16: a lifetime begins, and waiting ends, whether or not access could be given.
func TestAccessThatCannotBeGivenHidesNothing(t *testing.T) {
	bare := home()
	bare.Labels = nil
	forbid := func(o client.Object) error {
		if _, ok := o.(*rbacv1.RoleBinding); ok {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "rolebindings"}, o.GetName(), errors.New("not you"))
		}
		return nil
	}
	for name, tc := range map[string]struct {
		refuse func(client.Object) error
		home   *corev1.Namespace
		says   string
	}{
		"the API server refuses it":  {forbid, home(), "creating RoleBinding a/hive-claim-owner"},
		"no pool made the namespace": {nil, bare, "label it " + hivev1.LabelPoolNamespace + "=pools"},
	} {
		t.Run(name, func(t *testing.T) {
			claim := newClaim("alice")
			lifetime := hivev1.Duration("8h")
			claim.Spec.Lifetime = &lifetime
			c, _ := rig(t, tc.refuse, tc.home, runningCondition(), claim)
			if _, err := newReconciler(c).Reconcile(t.Context(), ctrl.Request{NamespacedName: about}); err == nil {
				t.Error("it is not tried again")
			}
			if err := c.Get(t.Context(), about, claim); err != nil {
				t.Fatal(err)
			}
			pending := condition.Find(claim.Status.Conditions, hivev1.ClaimPending)
			if pending == nil || pending.Status != corev1.ConditionFalse || !strings.Contains(pending.Message, tc.says) {
				t.Errorf("Pending is %+v", pending)
			}
			if !condition.IsTrue(claim.Status.Conditions, hivev1.ClaimClusterRunning) || claim.Status.Lifetime == nil {
				t.Errorf("the rest is %+v", claim.Status)
			}
		})
	}
}

// B15, B17: whatever a claim names, others lose and it gains nothing; it is told.
func TestAClaimThatNamesAClusterOfOthersTouchesNothing(t *testing.T) {
	theirs := metav1.ObjectMeta{Namespace: "a", Name: hivev1.ClaimOwnerRole}
	for name, change := range map[string]func(*hivev1.ClusterDeployment){
		"in no pool":       func(cd *hivev1.ClusterDeployment) { cd.Spec.ClusterPoolRef = nil },
		"another claim's":  func(cd *hivev1.ClusterDeployment) { cd.Spec.ClusterPoolRef.ClaimName = "y" },
		"a namesake's":     func(cd *hivev1.ClusterDeployment) { cd.Spec.ClusterPoolRef.Namespace = "others" },
		"without metadata": func(cd *hivev1.ClusterDeployment) { cd.Spec.ClusterPoolRef, cd.Spec.ClusterMetadata = nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			cd := runningCondition()
			change(cd)
			c, writes := rig(t, nil, home(), cd, newClaim("mallory"), &rbacv1.Role{ObjectMeta: theirs}, &rbacv1.RoleBinding{ObjectMeta: theirs})
			if _, err := newReconciler(c).Reconcile(t.Context(), ctrl.Request{NamespacedName: about}); err != nil {
				t.Fatal(err)
			}
			if want := []string{"patch status of *v1.ClusterClaim"}; !slices.Equal(*writes, want) {
				t.Errorf("it wrote %v", *writes)
			}
			var claim hivev1.ClusterClaim
			if err := c.Get(t.Context(), about, &claim); err != nil || condition.Find(claim.Status.Conditions, hivev1.ClaimPending).Reason != hivev1.ReasonConflict {
				t.Errorf("it says %+v, %v", claim.Status.Conditions, err)
			}
		})
	}
}

// A cluster is deleted before its claim has given access, or after.
func TestNobodyGetsAccessToAClusterThatIsBeingDeleted(t *testing.T) {
	going := runningCondition()
	going.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	for name, tc := range map[string]struct {
		before []client.Object
		want   string
	}{
		"nobody had any":         {[]client.Object{going.DeepCopy()}, "nobody"},
		"those who have keep it": {[]client.Object{runningCondition()}, "alice as Role hive-claim-owner: kubeconfig"},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := rig(t, nil, append(tc.before, home(), newClaim("alice"))...)
			r := newReconciler(c)
			for range 2 {
				if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: about}); err != nil {
					t.Fatal(err)
				}
				if err := c.Delete(t.Context(), runningCondition()); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := readers(t.Context(), c, "a"); err != nil || got != tc.want {
				t.Errorf("access has %s, want %s: %v", got, tc.want, err)
			}
		})
	}
}

func TestAClaimWhoseClusterCannotHibernateRuns(t *testing.T) {
	cd := runningCondition()
	cd.Spec.PowerState = hivev1.PowerHibernating
	condition.Set(&cd.Status.Conditions, hivev1.ClusterHibernating, corev1.ConditionFalse, hivev1.ReasonUnsupported, "", time.Now())
	c, _ := rig(t, nil, home(), cd, newClaim())
	if _, err := newReconciler(c).Reconcile(t.Context(), ctrl.Request{NamespacedName: about}); err != nil {
		t.Fatal(err)
	}
	var claim hivev1.ClusterClaim
	if err := c.Get(t.Context(), about, &claim); err != nil || !condition.IsTrue(claim.Status.Conditions, hivev1.ClaimClusterRunning) {
		t.Errorf("%+v, %v", claim.Status.Conditions, err)
	}
}

func TestAccessThatAClaimGaveGoesWithWhatItGaveItFor(t *testing.T) { // B33
	given := metav1.ObjectMeta{
		Namespace: "a", Name: hivev1.ClaimOwnerRole,
		Annotations: map[string]string{hivev1.AnnotationClaim: "pools/x"},
	}
	other := runningCondition()
	other.Spec.ClusterPoolRef.ClaimName = "y"
	for name, tc := range map[string][]client.Object{
		"the cluster is another's by now":            {home(), other, newClaim("alice")},
		"the cluster is gone":                        {home(), newClaim("alice")},
		"the claim went without waiting for its end": {home(), runningCondition()},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := rig(t, nil, append(tc, &rbacv1.Role{ObjectMeta: given}, &rbacv1.RoleBinding{ObjectMeta: given})...)
			if _, err := newReconciler(c).Reconcile(t.Context(), ctrl.Request{NamespacedName: about}); err != nil {
				t.Fatal(err)
			}
			for _, o := range []client.Object{&rbacv1.Role{}, &rbacv1.RoleBinding{}} {
				if err := c.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: hivev1.ClaimOwnerRole}, o); !apierrors.IsNotFound(err) {
					t.Errorf("the %T: %v", o, err)
				}
			}
		})
	}
}
