package grant_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/rbac/grant"
)

// server is an API with these objects, that refuses to change a roleRef, as a real one does.
func server(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(s), rbacv1.AddToScheme(s), hivev1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if b, ok := o.(*rbacv1.RoleBinding); ok {
				var have rbacv1.RoleBinding
				if err := c.Get(ctx, client.ObjectKeyFromObject(o), &have); err != nil {
					return err
				}
				if have.RoleRef != b.RoleRef {
					return apierrors.NewInvalid(schema.GroupKind{Kind: "RoleBinding"}, o.GetName(), nil)
				}
			}
			return c.Patch(ctx, o, p, opts...)
		},
	}).Build()
}

func about() metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "a", Name: "ours", Labels: map[string]string{"l": "v"}, Annotations: map[string]string{"a": "v"}}
}

func role(verb string) *rbacv1.Role {
	return &rbacv1.Role{ObjectMeta: about(), Rules: []rbacv1.PolicyRule{{Verbs: []string{verb}, APIGroups: []string{""}, Resources: []string{"pods"}}}}
}

func binding(ref, who string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: about(),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: ref},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: who}},
	}
}

func TestABindingIsSetRight(t *testing.T) {
	foreign := binding("r", "alice")
	foreign.Labels = map[string]string{"theirs": "1"}
	tests := map[string]struct {
		have  *rbacv1.RoleBinding
		wrote bool
	}{
		"that is missing":                       {nil, true},
		"that is right is not written":          {binding("r", "alice"), false},
		"that binds another":                    {binding("r", "eve"), true},
		"that has lost its label":               {foreign, true},
		"that binds to another Role (Hive B34)": {binding("cluster-admin", "alice"), true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := server(t)
			if tc.have != nil {
				c = server(t, tc.have.DeepCopy())
			}
			want := binding("r", "alice")
			if wrote, err := grant.EnsureRoleBinding(t.Context(), c, want); err != nil || wrote != tc.wrote {
				t.Fatalf("wrote %t, %v", wrote, err)
			}
			var got rbacv1.RoleBinding
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(want), &got); err != nil {
				t.Fatal(err)
			}
			if got.RoleRef != want.RoleRef || !cmp.Equal(got.Subjects, want.Subjects) || got.Labels["l"] != "v" || got.Annotations["a"] != "v" {
				t.Errorf("it is %+v", got)
			}
			if tc.have != nil && got.Labels["theirs"] != tc.have.Labels["theirs"] {
				t.Errorf("a foreign label was taken away: %v", got.Labels)
			}
			if wrote, err := grant.EnsureRoleBinding(t.Context(), c, want); err != nil || wrote {
				t.Errorf("the second time: wrote %t, %v", wrote, err)
			}
		})
	}
}

func TestARoleIsSetRight(t *testing.T) {
	for name, tc := range map[string]struct {
		have  *rbacv1.Role
		wrote bool
	}{
		"that is missing":              {nil, true},
		"that is right is not written": {role("get"), false},
		"that allows more":             {role("*"), true},
	} {
		t.Run(name, func(t *testing.T) {
			c := server(t)
			if tc.have != nil {
				c = server(t, tc.have.DeepCopy())
			}
			if wrote, err := grant.EnsureRole(t.Context(), c, role("get")); err != nil || wrote != tc.wrote {
				t.Fatalf("wrote %t, %v", wrote, err)
			}
			var got rbacv1.Role
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(role("")), &got); err != nil || !cmp.Equal(got.Rules, role("get").Rules) {
				t.Errorf("it is %+v, %v", got, err)
			}
		})
	}
}

func TestOnlyOursIsRemoved(t *testing.T) {
	c := server(t, binding("r", "alice"))
	gone := func() *rbacv1.RoleBinding { return &rbacv1.RoleBinding{ObjectMeta: about()} }
	for _, tc := range []struct{ ours, want bool }{{false, false}, {true, true}, {true, false}} {
		wrote, err := grant.DeleteOurs(t.Context(), c, gone(), func(metav1.Object) bool { return tc.ours })
		if err != nil || wrote != tc.want {
			t.Errorf("ours %t: removed %t, %v", tc.ours, wrote, err)
		}
	}
}

// blind is a client whose cache has nothing yet.
type blind struct{ client.Client }

func (blind) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func TestACacheThatIsBehindIsAQuietRetry(t *testing.T) {
	c := blind{server(t, role("get"), binding("r", "alice"))}
	_, err := grant.EnsureRole(t.Context(), c, role("get"))
	if fault.KindOf(err) != fault.Conflict {
		t.Errorf("the Role: %v", err)
	}
	_, err = grant.EnsureRoleBinding(t.Context(), c, binding("r", "alice"))
	if fault.KindOf(err) != fault.Conflict {
		t.Errorf("the RoleBinding: %v", err)
	}
	cd := &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "a"}}
	cd.Spec.ClusterPoolRef = &hivev1.ClusterPoolReference{Namespace: "pools", PoolName: "p"}
	if _, err = grant.CheckNamespace(t.Context(), c, cd); fault.KindOf(err) != fault.Conflict {
		t.Errorf("the namespace: %v", err)
	}
}

func TestWhatIsInvalidIsNotTriedAgain(t *testing.T) {
	c := interceptor.NewClient(server(t).(client.WithWatch), interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return apierrors.NewInvalid(schema.GroupKind{Kind: "RoleBinding"}, "ours", nil)
		},
	})
	if _, err := grant.EnsureRoleBinding(t.Context(), c, binding("r", "alice")); fault.KindOf(err) != fault.Denied {
		t.Errorf("got %v", err)
	}
}

func TestANamespaceIsLookedAtBeforeAnythingIsGiven(t *testing.T) {
	made := map[string]string{hivev1.LabelPoolNamespace: "pools", hivev1.LabelPoolName: "p"}
	now := metav1.Now()
	ref := &hivev1.ClusterPoolReference{Namespace: "pools", PoolName: "p"}
	for name, tc := range map[string]struct {
		ns   metav1.ObjectMeta
		ref  *hivev1.ClusterPoolReference
		want grant.NamespaceState
	}{
		"the pool's":              {metav1.ObjectMeta{Name: "a", Labels: made}, ref, grant.Open},
		"the pool's, and going":   {metav1.ObjectMeta{Name: "a", Labels: made, DeletionTimestamp: &now, Finalizers: []string{"x/y"}}, ref, grant.Closing},
		"made by hand":            {metav1.ObjectMeta{Name: "a"}, ref, grant.Foreign},
		"of a cluster in no pool": {metav1.ObjectMeta{Name: "a", Labels: made}, nil, grant.Foreign},
	} {
		t.Run(name, func(t *testing.T) {
			cd := &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "a"}}
			cd.Spec.ClusterPoolRef = tc.ref
			got, err := grant.CheckNamespace(t.Context(), server(t, &corev1.Namespace{ObjectMeta: tc.ns}), cd)
			if err != nil || got != tc.want {
				t.Errorf("got %d, %v, want %d", got, err, tc.want)
			}
		})
	}
}
