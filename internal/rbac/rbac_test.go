package rbac_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/rbac"
)

// alice's claim x, of pool p in namespace pools, has cluster a.
func claim(change func(*hivev1.ClusterClaim)) *hivev1.ClusterClaim {
	c := &hivev1.ClusterClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "pools", Name: "x"},
		Spec:       hivev1.ClusterClaimSpec{ClusterPoolName: "p", Namespace: "a", Subjects: []rbacv1.Subject{{Kind: "User", Name: "alice"}}},
	}
	if change != nil {
		change(c)
	}
	return c
}

func cluster(change func(*hivev1.ClusterDeployment)) *hivev1.ClusterDeployment {
	cd := &hivev1.ClusterDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "a"},
		Spec: hivev1.ClusterDeploymentSpec{
			ClusterPoolRef: &hivev1.ClusterPoolReference{Namespace: "pools", PoolName: "p", ClaimName: "x"},
			ClusterMetadata: &hivev1.ClusterMetadata{
				AdminKubeconfigSecretRef: corev1.LocalObjectReference{Name: "kubeconfig"},
				AdminPasswordSecretRef:   &corev1.LocalObjectReference{Name: "password"},
				MetadataJSONSecretRef:    &corev1.LocalObjectReference{Name: "metadata"},
			},
		},
	}
	if change != nil {
		change(cd)
	}
	return cd
}

// brief writes what a claim's subjects have in one line.
func brief(o rbac.OwnerAccess) string {
	if o.Binding == nil && o.Role == nil {
		return strings.Join(append([]string{"nothing"}, o.Refused...), "; ")
	}
	var can []string
	for _, r := range o.Role.Rules {
		what := strings.Join(r.Verbs, ",") + " " + strings.Join(r.APIGroups, ",") + "/" + strings.Join(r.Resources, ",")
		if len(r.ResourceNames) > 0 {
			what += " " + strings.Join(r.ResourceNames, ",")
		}
		can = append(can, what)
	}
	return strings.Join(append([]string{people(o.Binding.Subjects) + ": " + strings.Join(can, " and ")}, o.Refused...), "; ")
}

func people(in []rbacv1.Subject) string {
	var out []string
	for _, s := range in {
		out = append(out, fmt.Sprintf("%s/%s %s/%s", s.APIGroup, s.Kind, s.Namespace, s.Name))
	}
	return strings.Join(out, ", ")
}

func TestAnOwnerMayReadTheSecretsThatAreNamed(t *testing.T) {
	const alice, all = "rbac.authorization.k8s.io/User /alice: ", "* hive.openshift.io/*"
	metadata := func(change func(*hivev1.ClusterMetadata)) *hivev1.ClusterDeployment {
		return cluster(func(cd *hivev1.ClusterDeployment) { change(cd.Spec.ClusterMetadata) })
	}
	now := metav1.NewTime(time.Unix(0, 0))
	tests := map[string]struct {
		claim *hivev1.ClusterClaim
		cd    *hivev1.ClusterDeployment
		want  string
	}{
		"all three":                  {claim(nil), cluster(nil), alice + all + " and get /secrets kubeconfig,metadata,password"},
		"no password is named (B16)": {claim(nil), metadata(func(m *hivev1.ClusterMetadata) { m.AdminPasswordSecretRef = nil }), alice + all + " and get /secrets kubeconfig,metadata"},
		"no metadata is named (B16)": {claim(nil), metadata(func(m *hivev1.ClusterMetadata) { m.MetadataJSONSecretRef = nil }), alice + all + " and get /secrets kubeconfig,password"},
		"the names are empty, and that is not every Secret": {claim(nil), metadata(func(m *hivev1.ClusterMetadata) {
			*m = hivev1.ClusterMetadata{AdminPasswordSecretRef: &corev1.LocalObjectReference{}}
		}), alice + all},
		"there is no metadata at all (B16)":                             {claim(nil), cluster(func(cd *hivev1.ClusterDeployment) { cd.Spec.ClusterMetadata = nil }), alice + all},
		"there is no cluster":                                           {claim(nil), nil, "nothing"},
		"the cluster is in no pool (B15)":                               {claim(nil), cluster(func(cd *hivev1.ClusterDeployment) { cd.Spec.ClusterPoolRef = nil }), "nothing"},
		"the cluster is nobody's (B15)":                                 {claim(nil), cluster(func(cd *hivev1.ClusterDeployment) { cd.Spec.ClusterPoolRef.ClaimName = "" }), "nothing"},
		"the cluster is another claim's":                                {claim(nil), cluster(func(cd *hivev1.ClusterDeployment) { cd.Spec.ClusterPoolRef.ClaimName = "y" }), "nothing"},
		"the cluster is that of a claim with this name elsewhere (B15)": {claim(nil), cluster(func(cd *hivev1.ClusterDeployment) { cd.Spec.ClusterPoolRef.Namespace = "others" }), "nothing"},
		"the claim goes (B33)":                                          {claim(func(c *hivev1.ClusterClaim) { c.DeletionTimestamp = &now }), cluster(nil), "nothing"},
		"nobody is named (B33)":                                         {claim(func(c *hivev1.ClusterClaim) { c.Spec.Subjects = nil }), cluster(nil), "nothing"},
		"the list is empty (B33)":                                       {claim(func(c *hivev1.ClusterClaim) { c.Spec.Subjects = []rbacv1.Subject{} }), cluster(nil), "nothing"},
		"only nonsense is named":                                        {claim(func(c *hivev1.ClusterClaim) { c.Spec.Subjects[0].Kind = "user" }), cluster(nil), `nothing; spec.subjects[0] has no access: its kind "user" is not User, Group or ServiceAccount`},
		"nonsense hides no others": {claim(func(c *hivev1.ClusterClaim) {
			c.Spec.Subjects = append([]rbacv1.Subject{{Kind: "ServiceAccount", Name: "bot", APIGroup: rbacv1.GroupName}, {Kind: "Group"}}, c.Spec.Subjects...)
		}), cluster(nil), alice + all + " and get /secrets kubeconfig,metadata,password" +
			`; spec.subjects[0] has no access: its apiGroup "rbac.authorization.k8s.io" should be ""; spec.subjects[1] has no access: it has no name`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := brief(rbac.DecideOwnerAccess(tc.claim, tc.cd)); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// As an API server stores them: otherwise they would be written for ever.
func TestSubjectsAreWrittenAsTheyAreStored(t *testing.T) {
	c := claim(func(c *hivev1.ClusterClaim) {
		c.Spec.Subjects = []rbacv1.Subject{
			{Kind: "User", Name: "bob"},
			{Kind: "ServiceAccount", Name: "bot"},
			{Kind: "User", APIGroup: rbacv1.GroupName, Name: "alice"},
			{Kind: "ServiceAccount", Namespace: "ci", Name: "bot"},
			{Kind: "Group", Name: "devs"},
			{Kind: "User", Name: "alice"},
		}
	})
	const want = "rbac.authorization.k8s.io/Group /devs, /ServiceAccount ci/bot, /ServiceAccount pools/bot, " +
		"rbac.authorization.k8s.io/User /alice, rbac.authorization.k8s.io/User /bob"
	for range len(c.Spec.Subjects) {
		c.Spec.Subjects = append(c.Spec.Subjects[1:], c.Spec.Subjects[0])
		if got := people(rbac.DecideOwnerAccess(c, cluster(nil)).Binding.Subjects); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestWhatIsGivenTellsWhoseItIs(t *testing.T) {
	o := rbac.DecideOwnerAccess(claim(nil), cluster(nil))
	for _, got := range []metav1.Object{o.Role, o.Binding} {
		if got.GetName() != "hive-claim-owner" || got.GetNamespace() != "a" || got.GetLabels()[hivev1.LabelAccess] != hivev1.AccessClaimOwner {
			t.Errorf("%T is %s/%s with labels %v", got, got.GetNamespace(), got.GetName(), got.GetLabels())
		}
		other := claim(func(c *hivev1.ClusterClaim) { c.Namespace = "others" })
		if !rbac.IsMadeForClaim(claim(nil), got) || rbac.IsMadeForClaim(other, got) {
			t.Errorf("%T has annotations %v", got, got.GetAnnotations())
		}
	}
	if want := (rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "hive-claim-owner"}); o.Binding.RoleRef != want {
		t.Errorf("it binds to %+v", o.Binding.RoleRef)
	}
}

func TestANamespaceIsHomeToThePoolThatMadeIt(t *testing.T) { // B12
	labels := func(namespace, name string) map[string]string {
		return map[string]string{hivev1.LabelPoolNamespace: namespace, hivev1.LabelPoolName: name, hivev1.LabelNamespacePoolName: name}
	}
	tests := map[string]struct {
		labels map[string]string
		ref    hivev1.ClusterPoolReference
		want   bool
	}{
		"its own":                          {labels("one", "p"), hivev1.ClusterPoolReference{Namespace: "one", PoolName: "p"}, true},
		"one of that name elsewhere":       {labels("one", "p"), hivev1.ClusterPoolReference{Namespace: "two", PoolName: "p"}, false},
		"another of the same namespace":    {labels("one", "p"), hivev1.ClusterPoolReference{Namespace: "one", PoolName: "q"}, false},
		"a namespace that no pool made":    {nil, hivev1.ClusterPoolReference{Namespace: "one", PoolName: "p"}, false},
		"a namespace that no pool made, 2": {nil, hivev1.ClusterPoolReference{}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Labels: tc.labels}}
			if got := rbac.IsPoolNamespace(ns, tc.ref); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// admins is a RoleBinding in namespace pools that makes pool admins.
func admins(name string, who ...string) rbacv1.RoleBinding {
	b := rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "pools", Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "hive-cluster-pool-admin"},
	}
	for _, w := range who {
		kind, name, _ := strings.Cut(w, ":")
		b.Subjects = append(b.Subjects, rbacv1.Subject{Kind: kind, Name: name})
	}
	return b
}

func TestPoolAdmins(t *testing.T) {
	edit := func(b rbacv1.RoleBinding, change func(*rbacv1.RoleBinding)) rbacv1.RoleBinding { change(&b); return b }
	const alice = "rbac.authorization.k8s.io/User /alice"
	now := metav1.NewTime(time.Unix(0, 0))
	tests := map[string]struct {
		in   []rbacv1.RoleBinding
		want string
	}{
		"none (B33)": {nil, "nobody"},
		"one":        {[]rbacv1.RoleBinding{admins("a", "User:alice")}, alice},
		"those of all bindings, each once, in order":  {[]rbacv1.RoleBinding{admins("a", "User:bob", "User:alice"), admins("b", "User:alice", "Group:ops")}, "rbac.authorization.k8s.io/Group /ops, " + alice + ", rbac.authorization.k8s.io/User /bob"},
		"a service account is the pool's namespace's": {[]rbacv1.RoleBinding{admins("a", "ServiceAccount:bot")}, "/ServiceAccount pools/bot"},
		"a binding without subjects makes none (B33)": {[]rbacv1.RoleBinding{admins("a")}, "nobody"},
		"a binding that goes makes none":              {[]rbacv1.RoleBinding{edit(admins("a", "User:eve"), func(b *rbacv1.RoleBinding) { b.DeletionTimestamp = &now })}, "nobody"},
		"another ClusterRole makes none":              {[]rbacv1.RoleBinding{edit(admins("a", "User:eve"), func(b *rbacv1.RoleBinding) { b.RoleRef.Name = "view" })}, "nobody"},
		"a Role of that name makes none":              {[]rbacv1.RoleBinding{edit(admins("a", "User:eve"), func(b *rbacv1.RoleBinding) { b.RoleRef.Kind = "Role" })}, "nobody"},
		"another namespace's make none (B12)":         {[]rbacv1.RoleBinding{edit(admins("a", "User:eve"), func(b *rbacv1.RoleBinding) { b.Namespace = "others" })}, "nobody"},
		"a binding of ours keeps itself not alive":    {[]rbacv1.RoleBinding{*rbac.DecideAdminBinding("pools", []rbacv1.RoleBinding{admins("a", "User:eve")}, "pools")}, "nobody"},
		"a user's binding of our binding's name does": {[]rbacv1.RoleBinding{admins("hive-cluster-pool-admin-binding", "User:alice")}, alice},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				got := "nobody"
				if b := rbac.DecideAdminBinding("pools", tc.in, "a"); b != nil {
					got = people(b.Subjects)
				}
				if got != tc.want {
					t.Errorf("got  %s\nwant %s", got, tc.want)
				}
				slices.Reverse(tc.in)
			}
		})
	}
	b := rbac.DecideAdminBinding("pools", []rbacv1.RoleBinding{admins("x", "User:alice")}, "a")
	if b.Namespace != "a" || b.Name != "hive-cluster-pool-admin-binding" || b.RoleRef != admins("x").RoleRef {
		t.Errorf("got %s/%s to %+v", b.Namespace, b.Name, b.RoleRef)
	}
}
