package hub

import (
	"context"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// bindingLimit bounds the wait until the API server applies a new binding.
const bindingLimit = 30 * time.Second

// bindAdminGroup makes AdminGroup the administrators of the cluster that root reaches, and waits until the API server permits
// everything to admin, a user of this group: it applies a binding when its cache has it, some time after it was created. It does
// not change an existing binding: that may have been edited on purpose.
func bindAdminGroup(ctx context.Context, root, admin *rest.Config) error {
	client, err := kubernetes.NewForConfig(root)
	if err != nil {
		return fmt.Errorf("creating a client of the API: %w", err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: AdminGroup},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: AdminGroup}},
	}
	_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("binding %s to cluster-admin: %w", AdminGroup, err)
	}
	return waitForAccess(ctx, admin)
}

// waitForAccess waits until the API server permits everything to the user of a config.
func waitForAccess(ctx context.Context, user *rest.Config) error {
	client, err := kubernetes.NewForConfig(user)
	if err != nil {
		return fmt.Errorf("creating a client of the API: %w", err)
	}
	everything := authorizationv1.ResourceAttributes{Verb: "*", Group: "*", Version: "*", Resource: "*"}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &everything}}
	err = wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, bindingLimit, true, func(ctx context.Context) (bool, error) {
		answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if apierrors.IsForbidden(err) { // the right to ask comes from a binding, too
			return false, nil
		}
		return err == nil && answer.Status.Allowed, err
	})
	if err != nil {
		return fmt.Errorf("waiting until %s has all rights: %w", AdminGroup, err)
	}
	return nil
}
