package clusterclaim

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/claim"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/rbac"
	"hotspare.io/hotspare/internal/rbac/grant"
)

// An API server lets no client grant rights that the client does not have. So the controllers have
// all rights over hive.openshift.io, which owners get in one namespace: that is less than the right
// to escalate, which is unlimited. Controller dataplane holds the right to patch and to delete
// Roles and RoleBindings, for all controllers.
//
// +kubebuilder:rbac:groups=hive.openshift.io,resources=*,verbs=*
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=roles;rolebindings,verbs=create
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=roles,resourceNames=hive-claim-owner,verbs=list;watch
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=rolebindings,verbs=get;list;watch

// reconcileAccess grants the claim's subjects access to its cluster, or revokes it. It runs before
// any status is written or anything is destroyed: a user who sees that the cluster runs can read
// its Secrets. It adds refused grants to the message in p, without hiding that message.
func (r *Reconciler) reconcileAccess(ctx context.Context, s *observation, p *claim.Plan) error {
	c, cd := s.claim, s.cluster
	if c.DeletionTimestamp == nil && (c.Unreadable != "" || cd != nil && cd.Unreadable != "") {
		return nil // the unreadable part may be the list of subjects
	}
	want := rbac.DecideOwnerAccess(c, cd)
	for _, why := range want.Refused {
		appendPendingMessage(p, why)
	}
	var err error
	if want.Binding != nil {
		err = r.grantAccess(ctx, c, cd, want)
	} else {
		err = r.revokeAccess(ctx, c, cd)
	}
	if err != nil && fault.KindOf(err) != fault.Conflict {
		appendPendingMessage(p, "access of spec.subjects could not be updated: "+err.Error())
	}
	return err
}

func (r *Reconciler) grantAccess(ctx context.Context, c *hivev1.ClusterClaim, cd *hivev1.ClusterDeployment, want rbac.OwnerAccess) error {
	switch place, err := grant.CheckNamespace(ctx, r.Client, cd); {
	case err != nil:
		return err
	case place == grant.Closing:
		return nil
	case cd.DeletionTimestamp != nil:
		// Subjects who have access can watch the deletion of the cluster; nobody else gets access
		// any more.
		if err := r.Client.Get(ctx, client.ObjectKeyFromObject(want.Binding), &rbacv1.RoleBinding{}); err != nil {
			return client.IgnoreNotFound(err)
		}
	case place == grant.Foreign:
		ref := cd.Spec.ClusterPoolRef
		return fmt.Errorf("namespace %s was not created for a cluster of ClusterPool %s: if it belongs to one, label it %s=%s and %s=%s", cd.Namespace, ref.PoolName,
			hivev1.LabelPoolNamespace, ref.Namespace, hivev1.LabelPoolName, ref.PoolName)
	}
	// The Role comes first: a RoleBinding needs an existing Role.
	role, err := grant.EnsureRole(ctx, r.Client, want.Role)
	if err != nil {
		return err
	}
	binding, err := grant.EnsureRoleBinding(ctx, r.Client, want.Binding)
	if err == nil && (role || binding) {
		r.Events.Eventf(c, nil, corev1.EventTypeNormal, "AccessGranted", "Grant", "spec.subjects have access to cluster %s", cd.Name)
	}
	return err
}

// revokeAccess revokes the access of the claim's subjects. In a cluster that is not the claim's, it
// revokes only what was granted for this claim.
func (r *Reconciler) revokeAccess(ctx context.Context, c *hivev1.ClusterClaim, cd *hivev1.ClusterDeployment) error {
	home := c.Spec.Namespace
	if cd != nil {
		home = cd.Namespace
	}
	if home == "" {
		return nil
	}
	mine := rbac.HasCluster(c, cd)
	gone, err := r.deleteAccess(ctx, home, func(o metav1.Object) bool { return mine || rbac.IsMadeForClaim(c, o) })
	if err == nil && gone {
		r.Events.Eventf(c, nil, corev1.EventTypeNormal, "AccessWithdrawn", "Withdraw", "spec.subjects no longer have access to cluster %s", home)
	}
	return err
}

// revokeOrphanedAccess revokes the access of the subjects of a claim that was deleted before its
// cluster was.
func (r *Reconciler) revokeOrphanedAccess(ctx context.Context, key types.NamespacedName) error {
	var given hivev1.ClusterDeploymentList
	if err := r.Client.List(ctx, &given, client.MatchingFields{byClaim: key.String()}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("looking for the cluster of deleted claim %s: %w", key, err)
	}
	was := &hivev1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	for i := range given.Items {
		if _, err := r.deleteAccess(ctx, given.Items[i].Namespace, func(o metav1.Object) bool { return rbac.IsMadeForClaim(was, o) }); err != nil {
			return err
		}
	}
	return nil
}

// deleteAccess deletes the RoleBinding, which grants access, and then the Role. It reports whether
// there was any.
func (r *Reconciler) deleteAccess(ctx context.Context, namespace string, ours func(metav1.Object) bool) (bool, error) {
	about := metav1.ObjectMeta{Namespace: namespace, Name: hivev1.ClaimOwnerRole}
	binding, err := grant.DeleteOurs(ctx, r.Client, &rbacv1.RoleBinding{ObjectMeta: about}, ours)
	if err != nil {
		return false, err
	}
	role, err := grant.DeleteOurs(ctx, r.Client, &rbacv1.Role{ObjectMeta: about}, ours)
	return binding || role, err
}
