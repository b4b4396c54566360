package manager

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/access"
)

// cacheOptions says what the controllers keep in memory of a hub that has more than pools:
// of its Roles those of our name, and of RoleBindings that do not concern us little
// more than the name. They cannot be selected, since any name can make a pool admin.
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
		return o, nil // the mark of an object that was missed going
	}
	if !access.IsAccessBinding(b) {
		return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{
			Namespace: b.Namespace, Name: b.Name, UID: b.UID, ResourceVersion: b.ResourceVersion,
		}}, nil
	}
	b.ManagedFields = nil
	return b, nil
}
