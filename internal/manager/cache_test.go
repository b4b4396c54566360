package manager

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

func TestRoleBindingsThatDoNotConcernUsTakeNoMemory(t *testing.T) {
	for name, tc := range map[string]struct {
		binding, role string
		kept          bool
	}{
		"of another's":          {"team", "edit", false},
		"that make pool admins": {"team", hivev1.PoolAdminClusterRole, true},
		"of owners":             {hivev1.ClaimOwnerRole, "whatever it was edited to", true},
		"of admins":             {hivev1.PoolAdminBinding, "whatever it was edited to", true},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := stripUnrelatedBinding(&rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: tc.binding, UID: "u", ResourceVersion: "1", ManagedFields: []metav1.ManagedFieldsEntry{{}}},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: tc.role},
				Subjects:   []rbacv1.Subject{{Kind: "User", Name: "alice"}},
			})
			if err != nil {
				t.Fatal(err)
			}
			b := out.(*rbacv1.RoleBinding)
			if kept := len(b.Subjects) > 0 && b.RoleRef.Name != ""; kept != tc.kept || b.Name != tc.binding || b.UID != "u" || b.ManagedFields != nil {
				t.Errorf("kept %+v", b)
			}
		})
	}
}
