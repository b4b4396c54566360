package manager

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/rbac"
)

// cacheOptions returns what the controllers cache of a hub that is not dedicated to pools: only the
// Roles named hivev1.ClaimOwnerRole, and of RoleBindings that hotspare does not use (see
// access.IsAccessBinding) little more than the name. A selector cannot exclude these bindings,
// because a RoleBinding of any name can make a pool admin.
func cacheOptions() cache.Options {
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&rbacv1.Role{}:        {Field: fields.OneTermEqualSelector("metadata.name", hivev1.ClaimOwnerRole)},
			&rbacv1.RoleBinding{}: {Transform: stripUnrelatedBinding},
		},
	}
}

func stripUnrelatedBinding(o any) (any, error) {
	b, ok := o.(*rbacv1.RoleBinding)
	if !ok {
		return o, nil // the tombstone of an object whose deletion event was missed
	}
	if !rbac.IsAccessBinding(b) {
		return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{
			Namespace: b.Namespace, Name: b.Name, UID: b.UID, ResourceVersion: b.ResourceVersion,
		}}, nil
	}
	b.ManagedFields = nil
	return b, nil
}
