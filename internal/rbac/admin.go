package rbac

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// GrantsPoolAdmin reports whether a RoleBinding makes its subjects admins of the pools in its
// namespace. It returns false for the RoleBindings that pass this access on to a cluster's
// namespace: otherwise such a binding could keep itself alive.
func GrantsPoolAdmin(b *rbacv1.RoleBinding) bool {
	return b.RoleRef == adminRole() && b.Labels[hivev1.LabelAccess] != hivev1.AccessPoolAdmin
}

// IsAccessBinding reports whether a RoleBinding concerns hotspare at all.
func IsAccessBinding(b *rbacv1.RoleBinding) bool {
	return b.Name == hivev1.ClaimOwnerRole || b.Name == hivev1.PoolAdminBinding || GrantsPoolAdmin(b)
}

// DecideAdminBinding returns the RoleBinding that the admins of pools should have in a cluster's
// namespace; nil if there are no admins. pools is the namespace of the cluster's pool, bindings
// are the RoleBindings there.
func DecideAdminBinding(pools string, bindings []rbacv1.RoleBinding, cluster string) *rbacv1.RoleBinding {
	var who []rbacv1.Subject
	for i := range bindings {
		b := &bindings[i]
		if b.Namespace == pools && b.DeletionTimestamp == nil && GrantsPoolAdmin(b) {
			who = append(who, b.Subjects...)
		}
	}
	if len(who) == 0 {
		return nil
	}
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cluster, Name: hivev1.PoolAdminBinding,
			Labels: map[string]string{hivev1.LabelAccess: hivev1.AccessPoolAdmin},
		},
		RoleRef:  adminRole(),
		Subjects: normalizeSubjects(who, pools),
	}
}

func adminRole() rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: hivev1.PoolAdminClusterRole}
}
