// Package grant writes Roles and RoleBindings as package rbac wants them, and restores those
// that others have changed or deleted. It does not write objects that are already correct.
//
// Reads come from the caller's cache. If the cache turns out to be stale, the error is a
// fault.Conflict: the caller's next pass sees more.
package grant

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/patch"
	"hotspare.io/hotspare/internal/rbac"
)

// NamespaceState says whether access can be granted in a namespace.
type NamespaceState int

const (
	// Open: the namespace was created for a cluster of the given pool.
	Open NamespaceState = iota
	// Closing: the namespace is being deleted, with everything in it.
	Closing
	// Foreign: the namespace was not created for a cluster of that pool.
	Foreign
)

// CheckNamespace reports whether access can be granted in a cluster's namespace.
func CheckNamespace(ctx context.Context, c client.Reader, cd *hivev1.ClusterDeployment) (NamespaceState, error) {
	if cd.Spec.ClusterPoolRef == nil {
		return Foreign, nil
	}
	var ns corev1.Namespace
	err := c.Get(ctx, types.NamespacedName{Name: cd.Namespace}, &ns)
	switch {
	case apierrors.IsNotFound(err):
		return Closing, fault.New(fault.Conflict, fmt.Errorf("reading namespace %s of a cluster: %w", cd.Namespace, err))
	case err != nil:
		return Closing, fmt.Errorf("reading namespace %s: %w", cd.Namespace, err)
	case ns.DeletionTimestamp != nil:
		return Closing, nil
	case !rbac.IsPoolNamespace(&ns, *cd.Spec.ClusterPoolRef):
		return Foreign, nil
	}
	return Open, nil
}

// EnsureRole creates or updates a Role so that it matches want. It reports whether it wrote.
func EnsureRole(ctx context.Context, c client.Client, want *rbacv1.Role) (bool, error) {
	var have rbacv1.Role
	err := c.Get(ctx, client.ObjectKeyFromObject(want), &have)
	if apierrors.IsNotFound(err) {
		return true, createObject(ctx, c, want.DeepCopy())
	}
	if err != nil {
		return false, fmt.Errorf("reading %s: %w", describeObject(want), err)
	}
	before := have.DeepCopy()
	have.Rules = want.Rules
	copyMetadata(&have, want)
	return patchObject(ctx, c, before, &have)
}

// EnsureRoleBinding creates or updates a RoleBinding so that it matches want. It reports whether
// it wrote.
func EnsureRoleBinding(ctx context.Context, c client.Client, want *rbacv1.RoleBinding) (bool, error) {
	var have rbacv1.RoleBinding
	err := c.Get(ctx, client.ObjectKeyFromObject(want), &have)
	switch {
	case apierrors.IsNotFound(err):
		return true, createObject(ctx, c, want.DeepCopy())
	case err != nil:
		return false, fmt.Errorf("reading %s: %w", describeObject(want), err)
	case have.RoleRef != want.RoleRef: // an API server does not allow changing it (Hive B34)
		if err := deleteObject(ctx, c, &have); err != nil {
			return true, err
		}
		return true, createObject(ctx, c, want.DeepCopy())
	}
	before := have.DeepCopy()
	have.Subjects = want.Subjects
	copyMetadata(&have, want)
	return patchObject(ctx, c, before, &have)
}

// DeleteOurs deletes the Role or RoleBinding with the namespace and name of o, if it exists and
// ours accepts it. It reports whether it did.
func DeleteOurs(ctx context.Context, c client.Client, o client.Object, ours func(metav1.Object) bool) (bool, error) {
	if err := c.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return false, fmt.Errorf("reading %s: %w", describeObject(o), err)
	}
	if o.GetDeletionTimestamp() != nil || !ours(o) {
		return false, nil
	}
	return true, deleteObject(ctx, c, o)
}

func createObject(ctx context.Context, c client.Client, o client.Object) error {
	err := c.Create(ctx, o)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("creating %s: %w", describeObject(o), err)
	if isCacheBehind(err) {
		return fault.New(fault.Conflict, err)
	}
	return markDenied(err)
}

// isCacheBehind reports whether a creation failed because the cache is stale.
func isCacheBehind(err error) bool {
	return apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

func patchObject(ctx context.Context, c client.Client, before, o client.Object) (bool, error) {
	wrote, err := patch.Object(ctx, c, before, o)
	if err != nil {
		return wrote, markDenied(fmt.Errorf("updating %s: %w", describeObject(o), err))
	}
	return wrote, nil
}

func deleteObject(ctx context.Context, c client.Client, o client.Object) error {
	uid := o.GetUID()
	if err := c.Delete(ctx, o, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %s: %w", describeObject(o), err)
	}
	return nil
}

// markDenied marks an error as fault.Denied if the API server will refuse every retry.
func markDenied(err error) error {
	if apierrors.IsInvalid(err) {
		return fault.New(fault.Denied, err)
	}
	return err
}

// copyMetadata sets want's labels and annotations on an object, and leaves others unchanged.
func copyMetadata(o, want client.Object) {
	o.SetLabels(mergeMaps(o.GetLabels(), want.GetLabels()))
	o.SetAnnotations(mergeMaps(o.GetAnnotations(), want.GetAnnotations()))
}

func mergeMaps(have, more map[string]string) map[string]string {
	for k, v := range more {
		if have == nil {
			have = map[string]string{}
		}
		have[k] = v
	}
	return have
}

func describeObject(o client.Object) string {
	kind := "RoleBinding"
	if _, ok := o.(*rbacv1.Role); ok {
		kind = "Role"
	}
	return kind + " " + client.ObjectKeyFromObject(o).String()
}
