package pooladmin_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/controller/pooladmin"
	"hotspare.io/hotspare/internal/crashtest"
	"hotspare.io/hotspare/internal/crashtest/chaos"
)

type act = func(context.Context, client.Client) error

func space(name string, labels map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

// cluster is a cluster of pool p in a namespace, and the namespace that the pool has created for it.
func cluster(pools, name string) []client.Object {
	return []client.Object{
		space(name, map[string]string{
			hivev1.LabelPoolNamespace: pools, hivev1.LabelPoolName: "p", hivev1.LabelNamespacePoolName: "p",
		}),
		&hivev1.ClusterDeployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name},
			Spec:       hivev1.ClusterDeploymentSpec{ClusterPoolRef: &hivev1.ClusterPoolReference{Namespace: pools, PoolName: "p"}},
		},
	}
}

func admins(pools, name string, who ...string) *rbacv1.RoleBinding {
	b := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pools, Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: hivev1.PoolAdminClusterRole},
	}
	for _, w := range who {
		b.Subjects = append(b.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: w})
	}
	return b
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

// have is an act that looks who are admins in a cluster's namespace by then.
func have(namespace string, want ...string) act {
	return func(ctx context.Context, api client.Client) error {
		got, err := in(ctx, api, namespace)
		if err == nil && !slices.Equal(got, want) {
			err = fmt.Errorf("namespace %s has admins %v, want %v", namespace, got, want)
		}
		return err
	}
}

func in(ctx context.Context, api client.Reader, namespace string) ([]string, error) {
	var b rbacv1.RoleBinding
	err := api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: hivev1.PoolAdminBinding}, &b)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	var out []string
	if b.RoleRef != admins("", "").RoleRef {
		out = append(out, "as "+b.RoleRef.Name)
	}
	for _, s := range b.Subjects {
		out = append(out, s.Name)
	}
	return out, nil
}

// stage is a scenario with pools in namespaces one and two.
func stage(t *testing.T, always act, acts ...act) crashtest.Scenario {
	t.Helper()
	s := runtime.NewScheme()
	var ix chaos.Indexes
	if err := errors.Join(corev1.AddToScheme(s), rbacv1.AddToScheme(s), hivev1.AddToScheme(s), pooladmin.AddIndexes(t.Context(), &ix)); err != nil {
		t.Fatal(err)
	}
	pools := create(space("one", nil), space("two", nil))
	return crashtest.Scenario{
		Scheme: s, Kinds: []client.Object{&corev1.Namespace{}, &rbacv1.RoleBinding{}, &hivev1.ClusterDeployment{}}, Indexes: &ix,
		Acts: append([]act{pools}, acts...), Always: always,
		World:   func(context.Context, client.Client) (bool, error) { return false, nil },
		Finally: func(context.Context, client.Client) error { return nil },
		Start: func(cached, _ client.Client) []crashtest.Controller {
			r := &pooladmin.Reconciler{Client: cached}
			return []crashtest.Controller{func(ctx context.Context) error {
				var all hivev1.ClusterDeploymentList
				if err := cached.List(ctx, &all); err != nil {
					return err
				}
				var errs []error
				for i := range all.Items {
					_, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&all.Items[i])})
					errs = append(errs, err)
				}
				return errors.Join(errs...)
			}}
		},
	}
}

func TestSamePoolNameInTwoNamespacesKeepsAdminsApart(t *testing.T) { // B12
	t.Parallel()
	apart := func(ctx context.Context, api client.Client) error {
		one, err := in(ctx, api, "p-1")
		two, err2 := in(ctx, api, "p-2")
		if slices.Contains(one, "bob") || slices.Contains(two, "alice") {
			err = fmt.Errorf("the cluster of one has admins %v, that of two %v", one, two)
		}
		return errors.Join(err, err2)
	}
	crashtest.Run(t, stage(t, apart,
		create(append(cluster("one", "p-1"), cluster("two", "p-2")...)...),
		create(admins("one", "a", "alice"), admins("two", "a", "bob")), have("p-1", "alice"), have("p-2", "bob"),
		create(cluster("two", "p-3")...), have("p-3", "bob"),
		remove(admins("one", "a")), have("p-1"), have("p-2", "bob"),
	))
}

func TestTheLastAdminBindingTakesAccessAlong(t *testing.T) { // B33
	t.Parallel()
	never := func(context.Context, client.Client) error { return nil }
	crashtest.Run(t, stage(t, never,
		create(append(cluster("one", "p-1"), admins("one", "a", "alice"), admins("one", "b", "carol", "alice"))...), have("p-1", "alice", "carol"),
		remove(admins("one", "a")), have("p-1", "alice", "carol"),
		remove(admins("one", "b")), have("p-1"),
	))
}

func TestMeddlingIsPutRight(t *testing.T) { // B34
	t.Parallel()
	never := func(context.Context, client.Client) error { return nil }
	ours := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "p-1", Name: hivev1.PoolAdminBinding}}
	meddle := func(change func(*rbacv1.RoleBinding)) act {
		return func(ctx context.Context, api client.Client) error {
			now := ours.DeepCopy()
			if err := api.Get(ctx, client.ObjectKeyFromObject(ours), now); err != nil {
				return err
			}
			before := now.DeepCopy()
			change(now)
			return api.Patch(ctx, now, client.MergeFrom(before))
		}
	}
	crashtest.Run(t, stage(t, never,
		create(append(cluster("one", "p-1"), admins("one", "a", "alice"))...), have("p-1", "alice"),
		remove(ours), have("p-1", "alice"),
		meddle(func(b *rbacv1.RoleBinding) { b.Subjects[0].Name = "eve" }), have("p-1", "alice"),
		meddle(func(b *rbacv1.RoleBinding) { b.RoleRef.Name = "cluster-admin" }), have("p-1", "alice"),
		meddle(func(b *rbacv1.RoleBinding) { b.Labels = nil }), have("p-1", "alice"),
	))
}

func TestNamespacesThatNoPoolMadeAreLeftAlone(t *testing.T) {
	t.Parallel()
	nowhere := func(ctx context.Context, api client.Client) error {
		var b rbacv1.RoleBinding
		for _, ns := range []string{"byhand", "going"} {
			if err := api.Get(ctx, client.ObjectKey{Namespace: ns, Name: hivev1.PoolAdminBinding}, &b); !apierrors.IsNotFound(err) {
				return fmt.Errorf("namespace %s has %v; %w", ns, b.Subjects, err)
			}
		}
		return nil
	}
	byHand := cluster("one", "byhand")
	byHand[0].SetLabels(map[string]string{hivev1.LabelNamespacePoolName: "p"}) // as Hive marks them
	going := cluster("one", "going")
	going[1].SetFinalizers([]string{"example.com/hold"})
	single := &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "one", Name: "one"}}
	crashtest.Run(t, stage(t, nowhere,
		create(append(append(append(byHand, going...), cluster("one", "p-1")...), single)...), remove(going[0]),
		create(admins("one", "a", "alice")), have("p-1", "alice"), have("byhand"), have("going"),
	))
}
